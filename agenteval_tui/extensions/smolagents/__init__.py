"""Agents of Smolagents."""
