"""Probes: they read what a run leaves behind outside of its conversation, such as files and rows of a database."""
