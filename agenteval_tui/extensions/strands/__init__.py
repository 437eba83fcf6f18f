"""Agents of Strands."""
