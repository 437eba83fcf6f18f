"""Agents of Claude's agent SDK."""
