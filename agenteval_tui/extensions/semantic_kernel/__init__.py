"""Agents of Semantic Kernel."""
