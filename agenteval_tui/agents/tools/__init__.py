"""Tools that we answer for a model: canned answers, Python functions, commands, MCP servers."""
