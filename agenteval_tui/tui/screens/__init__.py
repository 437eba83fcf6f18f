"""A module and a .tcss a screen."""
