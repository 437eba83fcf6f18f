"""Serve the history and the suites to a coding agent (MCP, stdio)."""
