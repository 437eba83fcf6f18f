"""Graphs of LangGraph, and everything that they give, each as a function of an agent's prompt."""

from __future__ import annotations

from typing import TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

CALLS = [
    {"name": "find", "args": {"q": "socks"}, "id": "a", "type": "tool_call"},
    {"name": "bad", "args": {"x": 1}, "id": "b", "type": "tool_call"},
]
USED = [
    {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_token_details": {"cache_read": 3}},
    {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22, "output_token_details": {"reasoning": 1}},
]


class Fake(BaseChatModel):
    @property
    def _llm_type(self):
        return "fake"

    def _generate(self, messages, stop=None, run_manager=None, **more):
        if messages[-1].type == "human":
            content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "let me see"}]
            about = {"finish_reason": "tool_calls", "model_name": "fake-1"}
            made = AIMessage(content=content, tool_calls=CALLS, usage_metadata=USED[0], response_metadata=about)
        else:
            about = {"finish_reason": "length", "model_name": "fake-1"}
            made = AIMessage(content="3 pairs", usage_metadata=USED[1], response_metadata=about)
        return ChatResult(generations=[ChatGeneration(message=made)])

    def _stream(self, messages, stop=None, run_manager=None, **more):
        if messages[-1].type == "human":
            chunks = [
                AIMessageChunk(content=[{"type": "thinking", "thinking": "hm", "index": 0}]),
                AIMessageChunk(content=[{"type": "text", "text": "let me ", "index": 1}]),
                AIMessageChunk(content=[{"type": "text", "text": "see", "index": 1}]),
                AIMessageChunk(
                    content="", tool_call_chunks=[{"name": "find", "args": '{"q": ', "id": "a", "index": 2}]
                ),
                AIMessageChunk(
                    content="", tool_call_chunks=[{"name": None, "args": '"socks"}', "id": None, "index": 2}]
                ),
                AIMessageChunk(
                    content="", tool_call_chunks=[{"name": "bad", "args": '{"x": 1}', "id": "b", "index": 3}]
                ),
            ]
        else:
            chunks = [AIMessageChunk(content="3 "), AIMessageChunk(content="pairs")]
        second = messages[-1].type != "human"
        about = {"finish_reason": "length" if second else "tool_calls", "model_name": "fake-1"}
        chunks.append(AIMessageChunk(content="", usage_metadata=USED[second], response_metadata=about))
        for chunk in chunks:
            yield ChatGenerationChunk(message=chunk)


@tool
def find(q: str) -> str:
    """Find."""
    return f'["{q}"]'


@tool
def bad(x: int) -> str:
    """Fail."""
    raise ValueError("no such x")


def model(state):
    return {"messages": [Fake().invoke(state["messages"])]}


def build(**options):
    made = StateGraph(MessagesState)
    made.add_node("model", model)
    made.add_node("tools", ToolNode([find, bad], handle_tool_errors=True))
    made.add_edge(START, "model")
    made.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    made.add_edge("tools", "model")
    return made.compile(**options)


not_compiled = StateGraph(MessagesState)
graph = build()
remembering = build(checkpointer=InMemorySaver())


class Other(TypedDict):
    question: str
    answer: str


def build_other():
    made = StateGraph(Other)
    made.add_node("one", lambda state: {"answer": "3 pairs"})
    made.add_edge(START, "one")
    made.add_edge("one", END)
    return made.compile()


other = build_other()


@entrypoint()
def functional(inputs):
    return graph.invoke({"messages": [("user", inputs["question"])]})


@entrypoint()
def of_messages(inputs: dict[str, list[BaseMessage]], *, previous=None):
    return entrypoint.final(value=graph.invoke({"messages": inputs["messages"]}), save=inputs)


@entrypoint()
def of_a_list(messages: list[BaseMessage]):
    return graph.invoke({"messages": messages})["messages"]


@entrypoint()
async def of_a_text(question: str):
    return f"asked {question}"


@entrypoint()
def of_fields(state: Other) -> dict:
    return f"asked {state['question']}"


chat_model = Fake()
chain = ChatPromptTemplate.from_messages([("human", "{question}")]) | RunnableLambda(lambda value: "3 pairs")


def asked(prompt):
    return {"messages": [("user", prompt)]}


def invoke(prompt):
    return graph.invoke(asked(prompt))


async def ainvoke(messages):
    return await graph.ainvoke({"messages": messages})


def messages_alone(prompt):
    return graph.invoke(asked(prompt))["messages"]


def dumped(prompt):
    return {"messages": [one.model_dump() for one in graph.invoke(asked(prompt))["messages"]]}


def values(prompt):
    yield from graph.stream(asked(prompt), stream_mode="values")


def returned_stream(prompt):
    return graph.stream(asked(prompt), stream_mode="values")


def updates(prompt):
    yield from graph.stream(asked(prompt), stream_mode="updates")


def default_mode(prompt):
    yield from graph.stream(asked(prompt))


def as_messages(prompt):
    yield from graph.stream(asked(prompt), stream_mode="messages")


def chunks_alone(prompt):
    for chunk, _ in graph.stream(asked(prompt), stream_mode="messages"):
        yield chunk


def two_modes(prompt):
    yield from graph.stream(asked(prompt), stream_mode=["values", "updates"])


def all_modes(prompt):
    yield from graph.stream(asked(prompt), stream_mode=["messages", "updates", "values", "tasks", "debug"])


def tasks(prompt):
    yield from graph.stream(asked(prompt), stream_mode="tasks")


def debug(prompt):
    yield from graph.stream(asked(prompt), stream_mode=["debug"])


def one_in_a_list(prompt):
    yield from graph.stream(asked(prompt), stream_mode=["updates"])


def subgraphs(prompt):
    yield from graph.stream(asked(prompt), stream_mode="updates", subgraphs=True)


def subgraphs_and_modes(prompt):
    yield from graph.stream(asked(prompt), stream_mode=["messages", "values"], subgraphs=True)


def version_2(prompt):
    yield from graph.stream(asked(prompt), stream_mode=["messages", "updates"], version="v2")


def values_then_state(prompt):
    last = None
    for state in graph.stream(asked(prompt), stream_mode="values"):
        yield state
        last = state
    return last


def growing_lists(prompt):
    for state in graph.stream(asked(prompt), stream_mode="values"):
        yield state["messages"]


def last_messages(prompt):
    for state in graph.stream(asked(prompt), stream_mode="values"):
        yield state["messages"][1:]


async def async_values(prompt):
    async for state in graph.astream(asked(prompt), stream_mode="values"):
        yield state


async def async_messages(prompt):
    async for piece in graph.astream(asked(prompt), stream_mode="messages"):
        yield piece


def returned_async_stream(prompt):
    return graph.astream(asked(prompt), stream_mode=["messages", "values"])


async def stream_events(prompt):
    async for event in graph.astream_events(asked(prompt), version="v2"):
        yield event


SAME = [one.__name__ for one in (invoke, ainvoke, messages_alone, dumped, values, returned_stream, updates)]
SAME += [one.__name__ for one in (default_mode, as_messages, chunks_alone, two_modes, all_modes, tasks, debug)]
SAME += [one.__name__ for one in (one_in_a_list, subgraphs, subgraphs_and_modes, version_2, values_then_state)]
SAME += [one.__name__ for one in (growing_lists, last_messages, async_values, async_messages)]
SAME += [one.__name__ for one in (returned_async_stream, stream_events)]
SAME += ["graph", "remembering"]


def other_values(prompt):
    yield from other.stream({"question": prompt}, stream_mode="values")


def other_updates(prompt):
    yield from other.stream({"question": prompt}, stream_mode="updates")


def other_state(prompt):
    return other.invoke({"question": prompt})


def chain_stream(prompt):
    yield from chain.stream({"question": prompt})


ANSWER = [one.__name__ for one in (other_values, other_updates, other_state, chain_stream)] + ["chain"]


def asks_a_person(prompt):
    made = StateGraph(MessagesState)
    made.add_node("ask", lambda state: {"messages": [("ai", interrupt("which size?"))]})
    made.add_edge(START, "ask")
    compiled = made.compile(checkpointer=InMemorySaver())
    yield from compiled.stream(asked(prompt), {"configurable": {"thread_id": "1"}}, stream_mode="updates")


def odd_custom(prompt):
    yield ("custom", object())
    yield ("values", graph.invoke(asked(prompt)))


def invalid_call(prompt):
    call = {"name": "find", "args": "{oops", "id": "a", "error": "no JSON", "type": "invalid_tool_call"}
    return AIMessage(content="", invalid_tool_calls=[call])


# The last piece of a run alone: what was called before it is not in it.


def answer_alone(prompt):
    return invoke(prompt)["messages"][-1]


def answer_in_a_list(prompt):
    return invoke(prompt)["messages"][-1:]


def answer_in_a_state(prompt):
    return {"messages": invoke(prompt)["messages"][-1:]}


def answer_dumped(prompt):
    return answer_alone(prompt).model_dump()


def answer_as_openai(prompt):
    return {"role": "assistant", "content": invoke(prompt)["messages"][-1].text}


def answer_yielded(prompt):
    yield answer_alone(prompt)


async def chunks_of_the_answer(prompt):
    messages = [HumanMessage(prompt)]
    messages.append(chat_model.invoke(messages))
    messages += [ToolMessage('["socks"]', tool_call_id="a"), ToolMessage("no such x", tool_call_id="b")]
    async for chunk in chat_model.astream(messages):
        yield chunk


def parts_of_the_answer(prompt):
    """As models of Anthropic and of the Responses API give it."""
    answer = invoke(prompt)["messages"][-1].text
    return [{"type": "reasoning", "summary": []}, {"type": "text", "text": answer, "annotations": []}]


def answer_of_a_chain():
    return RunnableLambda(lambda prompt: answer_alone(prompt))


def said_to_bedrock(prompt):
    """The conversation as Bedrock and Strands have it."""
    used = {"toolUse": {"toolUseId": "a", "name": "find", "input": {"q": "socks"}}}
    failing = {"toolUse": {"toolUseId": "b", "name": "bad", "input": {"x": 1}}}
    results = [
        {"toolResult": {"toolUseId": "a", "content": [{"text": '["socks"]'}], "status": "success"}},
        {"toolResult": {"toolUseId": "b", "content": [{"text": "no such x"}], "status": "error"}},
    ]
    thought = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    return [
        {"role": "user", "content": [{"text": prompt}]},
        {"role": "assistant", "content": [thought, {"text": "let me see"}, used, failing]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [{"text": "3 pairs"}]},
    ]


def said_to_anthropic(prompt):
    used = {"type": "tool_use", "id": "a", "name": "find", "input": {"q": "socks"}}
    failing = {"type": "tool_use", "id": "b", "name": "bad", "input": {"x": 1}}
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": '["socks"]'}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "no such x", "is_error": True},
    ]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    return [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "let me see"}, used, failing]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [{"type": "text", "text": "3 pairs"}]},
    ]


def said_to_gemini(prompt):
    find_it = {"function_call": {"id": "a", "name": "find", "args": {"q": "socks"}}}
    failing = {"function_call": {"id": "b", "name": "bad", "args": {"x": 1}}}
    results = [
        {"function_response": {"id": "a", "name": "find", "response": {"result": '["socks"]'}}},
        {"function_response": {"id": "b", "name": "bad", "response": {"error": "no such x"}}},
    ]
    said = [{"text": "hm", "thought": True}, {"text": "let me see"}, find_it, failing]
    return [
        {"role": "user", "parts": [{"text": prompt}]},
        {"role": "model", "parts": said},
        {"role": "user", "parts": results},
        {"role": "model", "parts": [{"text": "3 pairs"}]},
    ]


def hosted_call(prompt):
    """Of the Responses API, as LangChain once kept it."""
    call = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "socks"}}
    return [HumanMessage(prompt), AIMessage("3 pairs", additional_kwargs={"tool_outputs": [call]})]


def build_hiding():
    """A graph whose state does not have what a graph in it did."""
    made = StateGraph(MessagesState)
    made.add_node("shop", lambda state: {"messages": invoke(state["messages"][-1].content)["messages"][-1:]})
    made.add_edge(START, "shop")
    made.add_edge("shop", END)
    return made.compile()


hiding = build_hiding()


def hiding_state(prompt):
    return hiding.invoke(asked(prompt))


def last_update(prompt):
    *_, last = graph.stream(asked(prompt), stream_mode="updates")
    yield last


def answer_in_a_tuple(prompt):
    return answer_alone(prompt), {"pairs": 3}


def answer_in_a_dict(prompt):
    return {"answer": answer_alone(prompt), "pairs": 3}
