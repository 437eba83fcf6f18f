"""What a source in JavaScript or TypeScript says of its agent: instructions, tools, and what it is asked."""

from __future__ import annotations

import re
from typing import Any

from agenteval_tui.agents.finding.model import FoundTool

_TEXT = r"""(?:'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"|`([^`$]+)`)"""
_PROMPT = re.compile(rf"\b(?:(?:prompt|content|input)\s*:\s*|run\(\s*\w+\s*,\s*){_TEXT}")
_SYSTEM = re.compile(rf"\b(?:system|instructions?|systemPrompt)\s*:\s*{_TEXT}")
_TOOL = re.compile(rf"\b([A-Za-z_]\w*)\s*[:=]\s*(?:dynamicT|t)ool\(\s*\{{\s*description\s*:\s*{_TEXT}")
_NAMED_TOOL = re.compile(
    rf"""\b(?:name|id)\s*:\s*["']([A-Za-z_][\w-]*)["']\s*,\s*description\s*:\s*(?:\n\s*)?{_TEXT}\s*,"""
    r"\s*(?:strict|parameters|inputSchema|input_schema|outputSchema|schema|needsApproval|execute)\b"
)


def told_in(text: str) -> dict[str, Any]:
    """What a source says of its agent."""
    return {
        "instructions": _first(_SYSTEM, text),
        "tools": tuple(
            FoundTool(_called(m[1], text), next(filter(None, m.groups()[1:]), ""))
            for pattern in (_TOOL, _NAMED_TOOL)
            for m in pattern.finditer(text)
        )[:20],
        "prompts": tuple(dict.fromkeys(" ".join(filter(None, m.groups())) for m in _PROMPT.finditer(text)))[:6],
    }


def _called(name: str, text: str) -> str:
    """What a model calls a tool: the key that it has among the tools of an agent, where that is not its own name."""
    tools = re.search(rf"\btools\s*:\s*\{{[^{{}}]*?\b(\w+)\s*:\s*{name}\b", text)
    return name if tools is None else tools[1]


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return " ".join(filter(None, match.groups())).strip() if match is not None else ""
