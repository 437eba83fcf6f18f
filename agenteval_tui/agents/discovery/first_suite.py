"""The suite of an agent that was found: it runs as it is. Its two tests are made of the words of its prompt, its tools
and its project's own code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.discovery.model import AgentCandidate, FoundTool, Sign
from agenteval_tui.core.phrasing import cut
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.new_suite import file_for, write_text
from agenteval_tui.suites.slugs import slug

_TIMEOUT_S = 120


def suite_path(agent: AgentCandidate, root: Path) -> Path:
    """Where its suite is written: in the folder of its project."""
    return root / agent.folder / file_for(agent.name)


def write_first_suite(agent: AgentCandidate, root: Path) -> tuple[Path, LoadedSuite]:
    """Write the suite of an agent that was found in `root`: (its file, the suite as it then is). Nothing is ever
    overwritten. Raises `AgentevalError`."""
    target = suite_path(agent, root)
    config: dict[str, Any] = dict(agent.config)
    head = [f"# {agent.place} has the agent: {_comment(agent.source)}"]
    if is_own_question(agent):
        head.append(
            "# It is a program: it gets the prompt on its standard input. If it asks its model something of its"
        )
        head.append("# own, that is what its runs show.")
    for field in agent.incomplete:
        head.append(f"# Its context needs `{field}`: write `context: package.module:function` to make it.")
    for field in agent.examples:
        option, _, name = field.partition(".")
        head.append(f"# `{name}` in its {option} is only an example: write what your agent needs there.")
    document: dict[str, Any] = {"name": agent.name, "agent": agent.name}
    if agent.services:
        document["services"] = dict(agent.services)
    document["agents"] = {agent.name: config}
    document["defaults"] = {"timeout": _TIMEOUT_S}
    tests = first_tests(agent)
    document["tests"] = [test.document for test in tests]
    for test in tests:
        if test.names_tool:
            head.append(f"# The prompt of `{test.document['id']}` names a tool. Write what a person would ask instead.")
    return target, write_text(target, document, head)


def _comment(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:100]


_WORD = re.compile(r"[A-Za-zÄÖÜäöüßÀ-ÿ]{4,}")
_COMMON = frozenset(
    [
        "about",
        "above",
        "access",
        "according",
        "action",
        "actions",
        "additional",
        "after",
        "agent",
        "agents",
        "allow",
        "also",
        "always",
        "another",
        "answer",
        "answers",
        "appropriate",
        "asked",
        "assist",
        "assistant",
        "available",
        "based",
        "because",
        "been",
        "before",
        "being",
        "below",
        "best",
        "between",
        "call",
        "called",
        "calls",
        "cannot",
        "carefully",
        "check",
        "clear",
        "clearly",
        "complete",
        "concise",
        "content",
        "context",
        "correct",
        "could",
        "create",
        "current",
        "data",
        "default",
        "description",
        "detailed",
        "different",
        "does",
        "done",
        "each",
        "either",
        "else",
        "ensure",
        "every",
        "exactly",
        "example",
        "examples",
        "expert",
        "final",
        "find",
        "first",
        "follow",
        "following",
        "format",
        "from",
        "function",
        "functions",
        "general",
        "generate",
        "given",
        "gives",
        "good",
        "greet",
        "have",
        "help",
        "helpful",
        "here",
        "highly",
        "identify",
        "include",
        "including",
        "individual",
        "information",
        "input",
        "instead",
        "instruction",
        "instructions",
        "into",
        "just",
        "keep",
        "know",
        "language",
        "like",
        "list",
        "main",
        "make",
        "many",
        "meaning",
        "message",
        "messages",
        "more",
        "most",
        "must",
        "name",
        "need",
        "needed",
        "never",
        "next",
        "none",
        "note",
        "number",
        "numbers",
        "once",
        "only",
        "other",
        "otherwise",
        "output",
        "over",
        "part",
        "perform",
        "person",
        "please",
        "possible",
        "primary",
        "prompt",
        "properly",
        "provide",
        "provided",
        "question",
        "questions",
        "rather",
        "relevant",
        "reply",
        "request",
        "required",
        "respond",
        "response",
        "responses",
        "result",
        "results",
        "return",
        "returns",
        "role",
        "rule",
        "rules",
        "same",
        "shall",
        "should",
        "show",
        "single",
        "skilled",
        "some",
        "something",
        "specific",
        "start",
        "step",
        "steps",
        "such",
        "sure",
        "system",
        "take",
        "tasks",
        "task",
        "tell",
        "text",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "thing",
        "things",
        "this",
        "those",
        "through",
        "times",
        "tool",
        "tools",
        "turn",
        "type",
        "under",
        "understand",
        "until",
        "upon",
        "used",
        "user",
        "users",
        "using",
        "value",
        "values",
        "very",
        "want",
        "well",
        "what",
        "when",
        "where",
        "whether",
        "which",
        "while",
        "will",
        "with",
        "within",
        "without",
        "word",
        "words",
        "work",
        "works",
        "would",
        "write",
        "your",
        "yourself",
    ]
)
_MOST_WORDS = 6
_SHORT = 60
_ENOUGH = 0.15
"""Of the words: one of up to six."""


class FirstTest(Struct):
    """A test with the keys that a suite has. `tool`: the one that it shall call. `names_tool`: its prompt names that
    tool, as no person would."""

    document: dict[str, Any]
    tool: FoundTool | None = None
    names_tool: bool = False


def first_tests(agent: AgentCandidate) -> list[FirstTest]:
    """Two tests."""
    # What code gives its own function can be one word.
    asked = agent.prompts[:1] if agent.sign in (Sign.METHOD, Sign.FUNCTION) else ()
    prompts = [text for text in agent.prompts if _is_usable(text)] or [_literally(text) for text in asked]
    tests: list[FirstTest] = []
    asks_itself = agent.config.get("kind") == "command"
    for text in prompts[: 1 if asks_itself else 2]:
        tests.append(_test(text, _tool_for(agent.tools, text)))
    called = [test.tool for test in tests]
    described = [
        tool for tool in agent.tools if _is_usable(tool.description) and all(tool is not other for other in called)
    ]
    if len(tests) < 2 and described and not asks_itself and not agent.variables:
        tests.append(_uses(described[0]))
    if len(tests) < 2 and not _takes_parts(agent):
        tests.append(FirstTest(_about_itself(agent, asks_itself)))
    if len(tests) < 2:
        tests.append(FirstTest(_brief(agent)))
    for test in tests:
        if agent.variables:
            test.document["variables"] = {
                name: _literally(value) if isinstance(value, str) else value for name, value in agent.variables.items()
            }
        test.document["criteria"] = test.document.pop("criteria")  # the last key, as people write it
    return _with_own_ids(tests)


def _takes_parts(agent: AgentCandidate) -> bool:
    """Whether the prompt is one of several parameters, so that any other text than the project's own makes no sense."""
    return agent.sign in (Sign.METHOD, Sign.FUNCTION) and "input" in agent.config and bool(agent.prompts)


def _test(prompt: str, tool: FoundTool | None) -> FirstTest:
    criteria = []
    if tool is not None:
        criteria.append(
            _criterion(f"Calls {tool.name}", "ToolResponse", {"type": "ToolCheck", "tools": [{"name": tool.name}]})
        )
    words = _words([prompt])
    if words:
        metric = {"type": "Keywords", "keywords": words, "min_fraction": _ENOUGH}
        criteria.append(_criterion("Speaks of what was asked", "TextResponse", metric))
    criteria.append(_criterion("Answers", "TextResponse", {"type": "Length", "min_words": 1}))
    document = {"id": slug(cut(prompt, 40)), "name": cut(prompt, _SHORT), "prompt": prompt, "criteria": criteria}
    return FirstTest(document, tool)


def _uses(tool: FoundTool) -> FirstTest:
    """Nothing says what people ask of it: the tool is named, and the model chooses what is not known."""
    prompt = f"Use your tool {tool.name}: {tool.description}"
    if tool.example and _is_usable(tool.example):
        prompt += f" For example: {tool.example}"
    elif tool.parameters:
        prompt += f" Choose {' and '.join(tool.parameters)} yourself, and ask nothing back."
    test = _test(tool.description, tool)
    test.document |= {"id": slug(f"uses {tool.name}"), "name": f"Uses {tool.name}", "prompt": prompt}
    test.names_tool = True
    return test


def _about_itself(agent: AgentCandidate, asks_itself: bool) -> dict[str, Any]:
    """What it says that it is for, in the words of its instructions."""
    words = _words([agent.instructions, *(tool.description for tool in agent.tools)])
    criteria = []
    # A docstring that only repeats the name says nothing.
    if any(word not in agent.name.replace("-", "") for word in words):
        metric = {"type": "Keywords", "keywords": words, "min_fraction": _ENOUGH}
        criteria.append(_criterion("Speaks of what its instructions say", "TextResponse", metric))
    criteria.append(_criterion("Answers", "TextResponse", {"type": "Length", "min_words": 1}))
    prompt = "What can you help me with?"
    if agent.variables:
        prompt = str(next(iter(agent.variables.values())))[:200].strip() or prompt
    name = "Does its work" if asks_itself or agent.variables else "Says what it is for"
    return {"id": slug(name), "name": name, "prompt": _literally(prompt), "criteria": criteria}


def _brief(agent: AgentCandidate) -> dict[str, Any]:
    criteria = [
        _criterion("Answers", "TextResponse", {"type": "Length", "min_words": 1, "max_words": 60}),
    ]
    prompt = "Answer in one sentence: what do you do?"
    if _takes_parts(agent):
        prompt = agent.prompts[0]
    elif agent.variables:
        prompt = str(next(iter(agent.variables.values())))[:200].strip() or prompt
    return {"id": "answers-briefly", "name": "Answers briefly", "prompt": _literally(prompt), "criteria": criteria}


def _criterion(name: str, prototype: str, metric: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "prototype_class": prototype, "config_uxon": {"metrics": [metric]}}


def _words(texts: Iterable[str]) -> list[str]:
    """The words that say most: those that come often, then those that come first."""
    counts: Counter[str] = Counter()
    for text in texts:
        for word in _WORD.findall(text):
            if word.lower() not in _COMMON and not word.isupper():
                counts[word.lower()] += 1
    return [word for word, _ in counts.most_common(_MOST_WORDS)]


def _tool_for(tools: Iterable[FoundTool], prompt: str) -> FoundTool | None:
    """The tool whose name and description share the most words with the prompt."""
    prompt_stems = {_stem(word) for word in _WORD.findall(prompt)}
    common = {_stem(word) for word in _COMMON}
    best: tuple[int, FoundTool | None] = 0, None
    for tool in tools:
        named = {_stem(word) for word in _WORD.findall(tool.name.replace("_", " "))}
        described = {_stem(word) for word in _WORD.findall(tool.description)}
        shared = 2 * len(prompt_stems & named) + len((prompt_stems & described) - named - common)
        if shared > best[0]:
            best = shared, tool
    return best[1]


def _stem(word: str) -> str:
    return word.lower()[:6]


def _is_usable(text: str) -> bool:
    """Whether a text can be a prompt as it is: a suite reads templates and variables in it."""
    return len(text.split()) > 1 and not any(mark in text for mark in ("{{", "{%", "{#", "${"))


def _literally(text: str) -> str:
    return re.sub(r"\{\{|\{%|\{#|\$\{", lambda match: match[0][0] + " " + match[0][1], text)


def _with_own_ids(tests: list[FirstTest]) -> list[FirstTest]:
    used_ids: set[str] = set()
    for test in tests:
        name = test.document["id"] or "first"
        test.document["id"] = name if name not in used_ids else f"{name}-2"
        used_ids.add(test.document["id"])
    return tests


def is_own_question(agent: AgentCandidate) -> bool:
    """Whether it is a program that may ask its model something of its own: it is not seen where it takes a question."""
    return agent.sign in (Sign.PROGRAM, Sign.SCRIPT) and agent.config.get("input") in ("text", "line")
