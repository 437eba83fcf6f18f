"""Agents of Haystack."""
