"""Messages and events of AutoGen."""
