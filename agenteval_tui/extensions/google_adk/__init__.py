"""Agents of Google's Agent Development Kit."""
