"""Serve the bundled agent as an OpenAI-compatible server on this machine."""
