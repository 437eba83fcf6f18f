"""agenteval: the debugger for agent tests, in the terminal."""

__version__ = "0.1.0"
