"""Agents of DSPy."""
