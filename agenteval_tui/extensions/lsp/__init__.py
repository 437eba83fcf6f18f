"""Suites in editors, by the Language Server Protocol: `agenteval lsp`."""
