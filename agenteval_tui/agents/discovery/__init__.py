"""The agents of a folder, found by reading its files. Nothing is imported or run."""
