"""Agents of CrewAI."""
