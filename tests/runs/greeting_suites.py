"""Suites with one test, whose agent does what a test tells it."""

from __future__ import annotations

ONE = """
name: Greetings
agent: bot
agents:
  bot: {kind: scripted}
tests:
  - id: hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "hello"}]}'
"""
STOP = ONE.replace("    prompt:", "    stop: {when: decided, alpha: 0.05, threshold: 0.8}\n    prompt:")
