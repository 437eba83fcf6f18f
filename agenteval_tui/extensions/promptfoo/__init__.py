"""Configurations and results of promptfoo."""
