"""Traces of OpenAI's Agents SDK."""
