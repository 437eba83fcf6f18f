"""What people read about an agent that was found: what it is, and why it is taken for one."""

from __future__ import annotations

from agenteval_tui.agents.discovery.model import AgentCandidate, Findings, Sign
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count

_WORDS = {
    Sign.ROOT: "the root agent",
    Sign.CLASS: "a class that it makes an agent of",
    Sign.OBJECT: "an agent",
    Sign.FACTORY: "makes an agent",
    Sign.APP: "an app",
    Sign.ROUTE: "a route that takes a message",
    Sign.FUNCTION: "a function that asks a model",
    Sign.METHOD: "a method that asks a model",
    Sign.PROGRAM: "a program that asks a model",
    Sign.SCRIPT: "a script that asks a model",
    Sign.SERVER: "a model server",
}


def what_it_is(agent: AgentCandidate) -> str:
    """Its framework and what was seen: "LangGraph, named in langgraph.json"."""
    named = f"named in {one_line(agent.file.rpartition('/')[2], 40)}"
    words = ", ".join(filter(None, (one_line(agent.framework, 40), _WORDS.get(agent.sign, named))))
    if agent.is_part:
        words += ", part of another"
    if agent.incomplete:
        words += f", needs context: {one_line(', '.join(agent.incomplete), 40)}"
    return words


def seen(agent: AgentCandidate) -> str:
    """Where, and the expression there: the file and line, then "graph = builder.compile(…)"."""
    return f"{one_line(agent.place, 80)}  {one_line(agent.source, 60)}"


def unread(findings: Findings) -> str:
    """Why the search did not read everything; "" if it did, or found agents beside notebooks."""
    if not findings.reason:
        if findings.agents or not findings.notebooks:
            return ""
        notebooks = count(findings.notebooks, "notebook")
        return (
            f"{notebooks} not read: an agent must be in a module. "
            "Make one of a notebook with `jupyter nbconvert --to script NOTEBOOK.ipynb`."
        )
    limit = "too many files" if findings.reason == "files" else "it took too long"
    files = count(findings.files, "file")
    return f"The search ended after {files} ({limit}). Name the folder of your agent to search that."
