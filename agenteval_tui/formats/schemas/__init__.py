"""The JSON Schemas of what this program reads and prints."""
