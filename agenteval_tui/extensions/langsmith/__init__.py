"""Runs and datasets of LangSmith."""
