"""An example plug-in for agenteval."""
