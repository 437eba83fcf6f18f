"""Serve an editor: problems, completion and fixes in suites (LSP, stdio)."""
