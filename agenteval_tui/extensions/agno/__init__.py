"""Agents of Agno."""
