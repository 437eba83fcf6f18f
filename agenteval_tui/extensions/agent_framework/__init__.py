"""Agents of Microsoft's Agent Framework."""
