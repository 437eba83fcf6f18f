"""Metrics: a module each, a pydantic model of its properties and a check."""
