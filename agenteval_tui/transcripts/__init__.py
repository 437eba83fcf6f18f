"""What an agent did: messages, tool calls, timing, usage; read from and written to JSON; formatted as text."""
