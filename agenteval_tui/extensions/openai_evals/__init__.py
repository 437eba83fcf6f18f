"""Logs of OpenAI's evals."""
