"""Trajectories of SWE-agent and mini-swe-agent."""
