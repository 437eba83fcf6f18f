"""Runs that are made again after the agent's code was changed, from their recordings, and what that changes."""
