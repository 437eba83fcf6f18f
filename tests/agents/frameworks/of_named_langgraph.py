"""What may be named of LangGraph: run contexts, stores, states of one's own, factories, what must be entered."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from of_named import Deps


def _node(state: MessagesState, runtime: Runtime[Deps]):
    return {"messages": [{"role": "assistant", "content": repr(runtime.context)}]}


def _graph(state: Any, node: Any, memory: Any = None, **more: Any) -> Any:
    builder = StateGraph(state, **more)
    builder.add_node("node", node)
    builder.add_edge("__start__", "node")
    return builder.compile(checkpointer=memory)


graph = _graph(MessagesState, _node, context_schema=Deps)


remembers = _graph(
    MessagesState,
    lambda state: {"messages": [{"role": "assistant", "content": str(len(state["messages"]))}]},
    InMemorySaver(),
)


def _noting(state: MessagesState, runtime: Runtime[None]):
    """As graphs do that LangGraph's server runs, which gives them a store."""
    runtime.store.put(("notes",), "last", {"text": state["messages"][-1].content})
    notes = [item.value["text"] for item in runtime.store.search(("notes",))]
    return {"messages": [{"role": "assistant", "content": str(notes)}]}


notes = _graph(MessagesState, _noting)


class Own(TypedDict, total=False):
    question: str
    documents: list
    answer: str
    talk: list


own = _graph(
    Own,
    lambda state: {
        "answer": "A: " + state["question"],
        "documents": [1, 2],
        "talk": [{"role": "assistant", "content": "I look"}],
    },
)


class Topic(TypedDict):
    topic: str
    depth: int


class Researched(MessagesState):
    topic: str
    depth: int
    info: dict


class Info(TypedDict):
    info: dict


def _researching(state: Researched):
    call = {"name": "search", "args": {"q": state["topic"]}, "id": "1", "type": "tool_call"}
    return {
        "messages": [{"role": "assistant", "content": "I look", "tool_calls": [call]}],
        "info": {"of": state["topic"]},
    }


researches = _graph(Researched, _researching, input_schema=Topic, output_schema=Info)


class Mailed(MessagesState):
    email: dict


def _triage(state: Mailed):
    return {"messages": [{"role": "assistant", "content": "About " + state["email"]["subject"]}]}


mails = _graph(Mailed, _triage)


@dataclasses.dataclass
class Wish:
    text: str
    size: int = 1


class Wishes(TypedDict):
    wish: Wish
    answer: str


wishes = _graph(Wishes, lambda state: {"answer": state["wish"].text + " " + str(state["wish"].size)})


class Chat(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]
    earlier: list[BaseMessage]
    answer: str


def _chatting(state: Chat):
    return {"answer": state["messages"][-1].content + " after " + str(len(state["earlier"]))}


chats = _graph(Chat, _chatting)


def make_graph():
    return graph


@contextlib.asynccontextmanager
async def opened():
    yield graph
