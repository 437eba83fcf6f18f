"""Traces of Langfuse."""
