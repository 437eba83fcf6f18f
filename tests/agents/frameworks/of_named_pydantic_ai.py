"""What may be named of pydantic-ai: run contexts, factories, what a model answers in fields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from of_named import Deps
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.messages import TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


@dataclass
class Needs:
    customer: str
    limit: int = 3


def _said(messages, info):
    return PydanticResponse(parts=[TextPart(info.instructions or "none")])


def _pydantic(kind):
    agent = Agent(FunctionModel(_said), deps_type=kind)

    @agent.instructions
    def instructions(ctx: RunContext[Any]) -> str:
        return repr(ctx.deps)

    return agent


def _prompts(messages, info):
    parts = [part.content for message in messages for part in message.parts if part.part_kind == "system-prompt"]
    return PydanticResponse(parts=[TextPart(", ".join(parts) or "none")])


prompted = Agent(FunctionModel(_prompts), system_prompt="be kind")


@prompted.system_prompt
def _day() -> str:
    return "it is Monday"


class Database:
    def __init__(self, path: str = "shop.db"):
        self.path = path

    def __repr__(self):
        return "Database(" + repr(self.path) + ")"


@dataclass
class Inner:
    deps: Deps
    database: Database


@dataclass
class Outer:
    database: Database
    inner: Inner


@dataclass
class NeedsPath:
    folder: Path


outer = _pydantic(Outer)


nested = _pydantic(Inner)


needs_path = _pydantic(NeedsPath)


deps = _pydantic(Deps)


needs = _pydantic(Needs)


number = _pydantic(int)


async def make_later(config):
    return _pydantic(Deps) if config is not None else None


def make_deps(settings):
    return Deps("made", [settings["tag"]])


class Order(BaseModel):
    total: int
    note: str


structured = Agent(
    FunctionModel(
        lambda messages, info: PydanticResponse(
            parts=[ToolCallPart(info.output_tools[0].name, {"total": 3, "note": str(messages[-1].parts[-1].content)})]
        )
    ),
    output_type=Order,
)


def _retried(messages, info):
    if len(messages) == 1:
        return PydanticResponse(parts=[TextPart("three")])
    return PydanticResponse(parts=[ToolCallPart(info.output_tools[0].name, {"total": 3, "note": "again"})])


retried = Agent(FunctionModel(_retried), output_type=Order)
