"""Sessions of Codex."""
