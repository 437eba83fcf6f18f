"""Figures over many runs, checks over suites, and re-grading of what is stored."""
