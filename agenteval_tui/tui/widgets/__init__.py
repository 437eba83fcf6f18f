"""Widgets show state and send messages."""
