"""Real agents of pydantic-ai, LangGraph and openai-agents through the kind `python`: whatever they give, in whatever
form, the transcript holds what the framework itself reports. One interpreter a framework plays all of its cases: these
imports are slow.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from typing import Any

import pytest
from framework_models import as_openai
from framework_runs import ALLOWED, FOLDER, LATER, REQUEST, assert_continued, play_all
from msgspec.structs import replace
from scripted import ScriptedServer

from agenteval_tui.agents.base import Done, Prepared
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Note, Transcript, Usage


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


def assert_shop(transcript: Transcript, thought: str = "hm", text: str = "let me see") -> None:
    """Two turns: a thought, a text and two calls; one tool answers, one fails; then the answer."""
    assert transcript.notes == ()
    assert [m.role for m in transcript.messages][-5:] == ["user", "assistant", "tool", "tool", "assistant"]
    first = transcript.messages[-4]
    assert (first.content, first.reasoning, first.tool_calls) == (text, thought, (0, 1))
    assert [(c.id, c.name, c.arguments, c.malformed) for c in transcript.tool_calls] == [
        ("a", "find", {"q": "socks"}, False),
        ("b", "bad", {"x": 1}, False),
    ]
    assert transcript.tool_calls[0].result == '["socks"]'
    assert transcript.tool_calls[1].result
    assert transcript.final_output == "3 pairs"


def assert_alone(played: Any) -> None:
    """An answer says nothing of what was called before it. The requests that the framework's hooks tell of do."""
    assert played.raised == ""
    assert (played.told.final_output, played.told.tool_calls) == ("3 pairs", ())
    assert [note.code for note in played.told.notes] in (["unread_calls"], ["text_only"])
    assert {call.name for call in played.transcript.tool_calls} == {"find", "bad"}
    assert (played.transcript.final_output, played.transcript.notes) == ("3 pairs", ())


def authors_of(transcript: Transcript) -> list[str | None]:
    """Which agent wrote each message of the models."""
    return [message.name for message in transcript.messages if message.role == "assistant"]


# pydantic-ai

ODD_PYDANTIC = ("output_alone", "structured", "with_more", "nothing_known", "fails", "not_one", "test_agent")
PYDANTIC = (
    *("result", "later", "all_messages", "new_messages", "all_messages_json", "dumped", "adapted", "one_by_one"),
    *("growing", "messages_then_result", "twice", "events", "text_then_result", "text_then_messages", "nodes"),
    *("run_of_nodes", "handled", "in_a_dict", "in_a_list", "agent", "whole_agent", "agent.run", "agent.run_sync"),
)
PYDANTIC_ERRORS = {
    "retries": (30, "", [("picky", "error"), ("picky", "ok")]),
    "gives_up": (20, "exceeded max retries", [("picky", "error"), ("picky", "error")]),
    "raises": (20, "no such x", [("picky", "ok"), ("breaks", "error")]),
    "raises_in_a_function": (20, "no such x", [("picky", "ok"), ("breaks", "error")]),
    "wrong_output": (20, "Exceeded maximum output retries", [("final_result", "error"), ("final_result", "pending")]),
    "unknown": (30, "", [("nope", "error"), ("picky", "ok")]),
}
STREAMED = ("events", "text_then_result", "text_then_messages", "handled", "agent")


PYDANTIC_ALONE = (
    *("response_alone", "response_dumped", "response_in_a_list", "response_yielded", "text_and_usage"),
    "end_alone",
)


@pytest.fixture(scope="module")
def pydantic_ai() -> Any:
    targets = (*PYDANTIC, *ODD_PYDANTIC, *PYDANTIC_ERRORS, *PYDANTIC_ALONE)
    return asyncio.run(play_all("of_pydantic_ai", targets, {}))


@needs("pydantic_ai")
@pytest.mark.xdist_group("pydantic_ai")
class TestPydanticAI:
    @pytest.mark.parametrize("name", PYDANTIC)
    def test_what_it_gives(self, pydantic_ai: Any, name: str) -> None:
        played, truth = pydantic_ai
        assert played[name].raised == ""
        transcript = played[name].transcript
        if name == "whole_agent":
            assert [note.code for note in transcript.notes] == ["not_streamed"], "its model can't stream"
            transcript = replace(transcript, notes=())
        assert_shop(transcript, text="" if name.startswith("text_") else "let me see")
        assert [c.status for c in transcript.tool_calls] == ["ok", "error"]
        assert "no such x" in transcript.tool_calls[1].result
        usage = transcript.usage
        if name in STREAMED:
            assert usage.input_tokens
            assert usage.output_tokens
        else:
            assert [usage.input_tokens, usage.output_tokens] == truth["usage"]
            assert (transcript.finish_reason, transcript.final_output) == ("length", truth["output"])

    def test_a_run_that_is_continued_from_its_results(self, pydantic_ai: Any) -> None:
        assert_continued(pydantic_ai[0]["agent, continued"])

    def test_a_later_turn(self, pydantic_ai: Any) -> None:
        transcript = pydantic_ai[0]["agent, later"].transcript
        # What was said before is the framework's history; it is told once.
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert transcript.final_output
        assert pydantic_ai[0]["agent, later"].raised == ""

    @pytest.mark.parametrize("name", PYDANTIC_ALONE)
    def test_the_last_piece_alone_says_nothing_of_calls(self, pydantic_ai: Any, name: str) -> None:
        assert_alone(pydantic_ai[0][name])

    def test_structured_output(self, pydantic_ai: Any) -> None:
        assert json.loads(pydantic_ai[0]["output_alone"].transcript.final_output) == {"name": "Bern"}
        transcript = pydantic_ai[0]["structured"].transcript
        assert json.loads(transcript.final_output) == {"name": "Bern"}
        assert [(c.name, c.arguments) for c in transcript.tool_calls] == [("final_result", {"name": "Bern"})]

    @pytest.mark.parametrize("name", PYDANTIC_ERRORS)
    def test_what_goes_wrong_loses_no_usage_and_no_call(self, pydantic_ai: Any, name: str) -> None:
        played = pydantic_ai[0][name]
        tokens, raised, calls = PYDANTIC_ERRORS[name]
        assert raised in played.raised
        assert bool(raised) == bool(played.raised)
        assert played.transcript.usage.input_tokens == tokens
        assert [(call.name, call.status) for call in played.transcript.tool_calls] == calls

    def test_what_can_not_be_read_is_said(self, pydantic_ai: Any) -> None:
        played, _ = pydantic_ai
        assert played["with_more"].transcript.notes == (Note("unread", "object"),)
        assert len(played["with_more"].transcript.tool_calls) == 2
        assert "can't give a list that holds an object" in played["nothing_known"].raised
        assert "ValueError: after all" in played["fails"].raised
        assert played["fails"].transcript.usage.input_tokens
        assert played["not_one"].raised.startswith("of_pydantic_ai:not_one is a dict, not a function or an agent")
        assert played["not_one"].wrong

    async def test_through_the_kind(self) -> None:
        agent = make_agent(
            "a",
            {"kind": "python", "callable": "of_pydantic_ai:test_agent"},
            base_dir=FOLDER,
            env={},
            permission=ALLOWED,
        )
        assert (await agent.check()).ok
        recorder = Recorder(REQUEST.messages)
        async for event in agent.run(REQUEST):
            recorder.apply(event)
        await agent.close()
        transcript = recorder.transcript()
        assert transcript.final_output == "hello"
        setup = [step for step in transcript.timing.steps if step.setup]
        assert [step.name for step in setup] == ["start of the process"]


# LangGraph

SAID = ("said_to_bedrock", "said_to_anthropic", "said_to_gemini")
OF_PROMPT = ("of_a_text", "of_fields")
ODD_GRAPH = ("asks_a_person", "odd_custom", "invalid_call", "other", "not_compiled", "chat_model", "functional")
GRAPH = (
    *("invoke", "ainvoke", "messages_alone", "dumped", "values", "returned_stream", "updates", "default_mode"),
    *("as_messages", "chunks_alone", "two_modes", "all_modes", "tasks", "debug", "one_in_a_list", "subgraphs"),
    *("subgraphs_and_modes", "version_2", "values_then_state", "growing_lists", "last_messages", "async_values"),
    *("async_messages", "returned_async_stream", "stream_events", "graph", "remembering"),
    *("of_messages", "of_a_list"),
)
GRAPH_ALONE = (
    *("answer_alone", "answer_in_a_list", "answer_in_a_state", "answer_dumped", "answer_as_openai"),
    *("answer_yielded", "chunks_of_the_answer", "parts_of_the_answer", "answer_of_a_chain", "answer_in_a_tuple"),
    "answer_in_a_dict",
)
HIDING = ("hiding", "hiding_state", "last_update")
GRAPH_ANSWERS = ("other_values", "other_updates", "other_state", "chain_stream", "chain")


@pytest.fixture(scope="module")
def langgraph() -> Any:
    return asyncio.run(
        play_all(
            "of_langgraph",
            (*GRAPH, *GRAPH_ANSWERS, *GRAPH_ALONE, *SAID, *HIDING, *OF_PROMPT, *ODD_GRAPH, "hosted_call"),
            {},
        )
    )[0]


@needs("langgraph")
@pytest.mark.xdist_group("langgraph")
class TestLangGraph:
    @pytest.mark.parametrize("name", GRAPH)
    def test_what_it_gives(self, langgraph: Any, name: str) -> None:
        assert langgraph[name].raised == ""
        transcript = langgraph[name].transcript
        assert_shop(transcript)
        assert [c.status for c in transcript.tool_calls] == ["ok", "error"]
        assert "no such x" in transcript.tool_calls[1].result
        assert transcript.usage == Usage(30, 7, 3, 1)
        assert (transcript.finish_reason, transcript.model) == ("length", "fake-1")

    @pytest.mark.parametrize("name", GRAPH_ALONE)
    def test_the_last_piece_alone_says_nothing_of_calls(self, langgraph: Any, name: str) -> None:
        assert_alone(langgraph[name])

    @pytest.mark.parametrize("name", OF_PROMPT)
    def test_a_workflow_is_asked_by_the_type_of_its_parameter(self, langgraph: Any, name: str) -> None:
        assert langgraph[name].raised == ""
        assert langgraph[name].transcript.final_output == f"asked {REQUEST.messages[-1].content}"

    @pytest.mark.parametrize("name", SAID)
    def test_messages_as_other_models_have_them(self, langgraph: Any, name: str) -> None:
        assert langgraph[name].raised == ""
        assert_shop(langgraph[name].transcript)
        assert [call.status for call in langgraph[name].transcript.tool_calls] == ["ok", "error"]

    @pytest.mark.parametrize("name", HIDING)
    def test_what_a_state_hides_is_known_by_the_hooks(self, langgraph: Any, name: str) -> None:
        assert langgraph[name].told.tool_calls == ()
        assert [call.name for call in langgraph[name].transcript.tool_calls] == ["find", "bad"]
        assert langgraph[name].transcript.final_output == "3 pairs"

    def test_calls_of_a_server_beside_the_content(self, langgraph: Any) -> None:
        assert [call.name for call in langgraph["hosted_call"].transcript.tool_calls] == ["web_search"]

    @pytest.mark.parametrize("name", GRAPH_ANSWERS)
    def test_states_without_messages(self, langgraph: Any, name: str) -> None:
        assert langgraph[name].raised == ""
        assert langgraph[name].transcript.final_output == "3 pairs"

    def test_a_run_that_is_continued_from_its_results(self, langgraph: Any) -> None:
        assert_continued(langgraph["graph, continued"])

    def test_a_later_turn(self, langgraph: Any) -> None:
        transcript = langgraph["graph, later"].transcript
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert [c.name for c in transcript.tool_calls] == ["find", "find", "bad"]
        assert transcript.final_output == "3 pairs"

    def test_what_can_not_be_read_is_said(self, langgraph: Any) -> None:
        assert langgraph["asks_a_person"].transcript.notes == (Note("interrupted", "which size?"),)
        assert langgraph["odd_custom"].transcript.notes == (Note("left_out", "custom data of a graph: object"),)
        assert len(langgraph["odd_custom"].transcript.tool_calls) == 2
        (call,) = langgraph["invalid_call"].transcript.tool_calls
        assert (call.arguments, call.malformed) == ("{oops", True)
        assert "a graph whose state has no `messages`, but: question, answer" in langgraph["other"].raised
        assert "a graph that does not say what it takes; write that in the agent" in langgraph["functional"].raised
        assert "is a LangGraph graph that is not compiled" in langgraph["not_compiled"].raised
        assert langgraph["chat_model"].transcript.messages[1].content == "let me see"


# openai-agents

OPENAI = (
    *("result", "later", "of_responses", "input_list", "new_items", "items_one_by_one", "inputs_one_by_one"),
    *("list_then_result", "events", "events_of_responses", "events_then_result", "streaming_result"),
    *("items_of_stream", "text_then_list", "agent", "responding"),
)
OPENAI_ANSWERS = ("completion", "completion_message", "completion_chunks", "response")
OPENAI_ALONE = ("item_alone", "input_alone", "response_alone", "output_alone")
OPENAI_HANDED = ("desk", "handed_result", "handed_items")
WITHOUT_USAGE = (
    "input_list",
    "new_items",
    "items_one_by_one",
    "inputs_one_by_one",
    "items_of_stream",
    "text_then_list",
)


@pytest.fixture(scope="module")
def openai_agents() -> Any:
    async def run() -> Any:
        async with ScriptedServer(as_openai) as server:
            cases = (*OPENAI, *OPENAI_ANSWERS, *OPENAI_HANDED, *OPENAI_ALONE, "raw_events", "raw_deltas", "waiting")
            return await play_all("of_openai_agents", cases, {"OPENAI_BASE_URL": server.url})

    return asyncio.run(run())


@needs("agents")
@pytest.mark.xdist_group("openai_agents")
class TestOpenAIAgents:
    @pytest.mark.parametrize("name", OPENAI)
    def test_what_it_gives(self, openai_agents: Any, name: str) -> None:
        played, truth = openai_agents
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert_shop(transcript, thought="")
        usage = transcript.usage
        if name in WITHOUT_USAGE:
            assert usage.input_tokens is None  # these hold none
        else:
            assert [usage.input_tokens, usage.output_tokens] == truth["usage"] == [30, 7]
        assert transcript.final_output == truth["output"]

    @pytest.mark.parametrize("name", OPENAI_ANSWERS)
    def test_the_client_alone(self, openai_agents: Any, name: str) -> None:
        assert openai_agents[0][name].raised == ""
        transcript = openai_agents[0][name].transcript
        assert transcript.final_output == "3 pairs"
        assert [note.code for note in transcript.notes] == ["unread_calls"]
        if name != "completion_message":
            assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (20, 2)
            assert transcript.model == "m"

    @pytest.mark.parametrize("name", OPENAI_ALONE)
    def test_the_last_piece_alone_says_nothing_of_calls(self, openai_agents: Any, name: str) -> None:
        assert_alone(openai_agents[0][name])

    def test_a_call_that_waits_for_a_person_is_one_call(self, openai_agents: Any) -> None:
        transcript = openai_agents[0]["waiting"].transcript
        assert [(call.name, call.status) for call in transcript.tool_calls] == [("find", "ok"), ("bad", "pending")]
        assert transcript.notes == (Note("interrupted", "bad"),)

    def test_what_models_answered_has_their_calls(self, openai_agents: Any) -> None:
        transcript = openai_agents[0]["raw_events"].transcript
        assert [(call.name, call.status) for call in transcript.tool_calls] == [("find", "pending"), ("bad", "pending")]
        assert (transcript.final_output, transcript.notes) == ("3 pairs", ())
        assert [note.code for note in openai_agents[0]["raw_deltas"].told.notes] == ["unread_calls"]

    @pytest.mark.parametrize("name", OPENAI_HANDED)
    def test_after_a_hand_off_each_step_says_who_wrote_it(self, openai_agents: Any, name: str) -> None:
        assert openai_agents[0][name].raised == ""
        transcript = openai_agents[0][name].transcript
        assert authors_of(transcript) == ["desk", "shop", "shop"]
        assert [call.name for call in transcript.tool_calls] == ["transfer_to_shop", "find", "bad"]

    def test_a_run_that_is_continued_from_its_results(self, openai_agents: Any) -> None:
        assert_continued(openai_agents[0]["agent, continued"])

    def test_a_later_turn(self, openai_agents: Any) -> None:
        played = openai_agents[0]["agent, later"]
        assert played.raised == ""
        assert [m.role for m in played.transcript.messages][:6] == [m.role for m in LATER.messages]
        assert played.transcript.final_output == "3 pairs"


def test_a_start_is_not_the_agents_time() -> None:
    now = [0.0]
    recorder = Recorder(REQUEST.messages, clock=lambda: now[0])
    now[0] = 3.0
    recorder.apply(Prepared("start of the interpreter", 1000.0))
    recorder.apply(Prepared("import", 2000.0))
    now[0] = 3.5
    recorder.apply(Done())
    timing = recorder.transcript().timing
    assert timing.total_ms == 500.0
    assert [(step.name, step.started_ms, step.duration_ms, step.setup) for step in timing.steps] == [
        ("start of the interpreter", 0.0, 1000.0, True),
        ("import", 0.0, 2000.0, True),
    ]
