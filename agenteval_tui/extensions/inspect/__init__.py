"""Logs of Inspect AI, in and out."""
