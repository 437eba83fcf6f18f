"""The Suites screen."""
