"""Chainlit apps as agents: a message is sent to a whole app, and found by `init`."""
