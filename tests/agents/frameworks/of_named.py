"""What may be named without a framework, and the context of those that have one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass
class Deps:
    name: str = "nobody"
    tags: list[str] = field(default_factory=list)


class Bot:
    def __init__(self, greeting="Hi"):
        self.greeting = greeting

    def chat(self, message):
        return self.greeting + " " + message


bot = Bot()


class Wrong:
    pass


def answers():
    return json.dumps("no prompt wanted")


def steps(prompt):
    """Streams what it does, and its state at the end."""
    yield {"type": "tool_call", "id": "1", "name": "find", "arguments": {"q": prompt}}
    yield {"type": "tool_result", "id": "1", "result": "socks"}
    yield "let me see"
    yield {"state": {"answer": "A: " + prompt}}


def ordered(customer, count=1, *, prompt):
    return {"reply": {"text": f"{customer} {count} {prompt}"}}
