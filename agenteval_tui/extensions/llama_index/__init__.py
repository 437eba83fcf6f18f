"""Agents of LlamaIndex."""
