"""The app in a browser: `agenteval serve`."""
