"""Conversations of several agents whose roles are their names: Who&When, AgentRx, Magentic-One."""
