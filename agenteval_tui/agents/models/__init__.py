"""Model servers: a file a protocol, and the loop that answers tool calls."""
