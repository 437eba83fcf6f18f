"""The history and the suites for a coding agent, by the Model Context Protocol: `agenteval mcp`."""
