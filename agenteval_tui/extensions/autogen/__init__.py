"""Agents of AutoGen; its messages and events as a format."""
