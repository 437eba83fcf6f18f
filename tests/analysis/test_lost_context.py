"""Blame names what a failed criterion needs and the model no longer saw, before it blames the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.analysis.blame.free_answer import free_answer
from agenteval_tui.analysis.blame.model import Blame, Clue, ClueCode
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.views.blame import blame_view, clue_text
from agenteval_tui.views.terminal import plain_text

Message = dict[str, Any]
SYSTEM = "You help in a shop.\nNever issue a voucher without a receipt."
QUESTION = "What did I ask first?"


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def call(tool: str, arguments: str = "{}", number: int = 1) -> Message:
    function = {"name": tool, "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "function": function}]}


def result(text: str, number: int = 1) -> Message:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


FIRST = [user("Do you have wool socks?"), said("Yes, in green and blue."), user("And hats?"), said("Hats too, in red.")]


class Program:
    """A program that asks a model, request by request."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def ask(self, messages: Sequence[Message], answer: Message, *, system: str = SYSTEM, tools: str = "find") -> None:
        offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools.split()]
        body = {"model": "m", "messages": [{"role": "system", "content": system}, *messages], "tools": offered}
        reply = {"model": "m", "choices": [{"message": answer, "finish_reason": "stop"}]}
        at = len(self.exchanges) * 10.0
        question = Question("POST", "openai/v1/chat/completions", {}, body)
        self.exchanges.append(Exchange(question, Answer(200, "application/json", reply), "", at, at + 5))

    def grows(self, messages: Sequence[Message], **more: str) -> None:
        """All requests of a conversation that only grows."""
        for place, one in enumerate(messages):
            if one["role"] == "assistant":
                self.ask(messages[:place], one, **more)


def blamed(program: Program, *specs: CriterionSpec) -> Blame:
    transcript = transcript_of(program.exchanges)
    results = [compile_criterion(spec).check(transcript, {}) for spec in specs]
    assert any(one.outcome == "failed" for one in results)
    return free_answer("run", transcript, results, {spec.hash: spec for spec in specs})


def clue(blame: Blame) -> Clue:
    return blame.named[0].clues[0]


def text(**metric: Any) -> CriterionSpec:
    return CriterionSpec("Text", "TextResponse", {"metrics": [{"type": "TextMatch", **metric}]})


def asked_anew(*kept: Message) -> Program:
    program = Program()
    program.grows(FIRST)
    program.ask([*kept, user(QUESTION)], said("You asked about nothing."))
    return program


CONTEXTS = {
    "restarted": (),
    "replaced": (user("Summary so far: they talked about garments."),),
    "dropped": (FIRST[2], FIRST[3]),
}


@pytest.mark.parametrize("change", CONTEXTS)
def test_a_value_that_left_the_models_sight_is_named_with_its_step_and_how_it_went(change: str) -> None:
    blame = blamed(asked_anew(*CONTEXTS[change]), text(contains="socks"))
    assert blame.decisive is not None
    (found,) = [one for one in blame.decisive.clues if one.code is ClueCode.OUT_OF_SIGHT]
    assert found is clue(blame)
    assert (found.fields["change"], found.fields["needed"], found.fields["request"]) == (change, ["socks"], 3)
    assert found.fields["origin_step"] == 1  # the user's first message
    assert 'did not see "socks", which is in step 2' in clue_text(found)
    assert [one.request for one in blame.lost] == [3]


def test_a_value_of_a_masked_result_is_named_also_where_a_pattern_expects_it() -> None:
    run = [user("Order 7?"), call("find"), result("total: 42.10 " + "x" * 90), said("There it is.")]
    program = Program()
    program.grows(run)
    program.ask([*run[:2], result("[removed]"), run[3], user("The total?")], said("I can't tell."))
    pattern = CriterionSpec("Total", "TextResponse", {"metrics": [{"type": "Regex", "pattern": r"\d\d\.10"}]})
    found = clue(blamed(program, pattern))
    assert (found.fields["change"], found.fields["needed"]) == ("masked", ["42.10"])
    assert "a message shortened from 103 characters to 9 characters in request 3" in clue_text(found)


def test_the_step_is_the_first_answer_without_it_and_not_the_last() -> None:
    program = Program()
    program.grows(FIRST)
    later = [FIRST[2], FIRST[3], user("And gloves?")]
    program.ask(later, said("Gloves as well, in black."))
    program.ask([*later, said("Gloves as well, in black."), user(QUESTION)], said("You asked about hats."))
    blame = blamed(program, text(contains="socks"))
    assert blame.decisive is not None
    assert (blame.decisive.step, clue(blame).fields["request"]) == (6, 3)


def test_a_tool_that_vanished_is_named() -> None:
    program = Program()
    program.grows(FIRST, tools="find issue_voucher")
    program.ask([*FIRST, user("A voucher, please.")], said("I can't do that."))
    wanted = {"metrics": [{"type": "Trajectory", "mode": "superset", "calls": [{"name": "issue_voucher"}]}]}
    found = clue(blamed(program, CriterionSpec("Calls", "ToolResponse", wanted)))
    assert found.code is ClueCode.OUT_OF_SIGHT
    assert (found.fields["need"], found.fields["change"]) == ("tool", "tool_removed")
    assert clue_text(found) == (
        'from here on the model could not call "issue_voucher": without the tool issue_voucher in request 3'
    )


def test_an_instruction_that_left_the_system_prompt_is_named() -> None:
    program = Program()
    program.grows(FIRST, tools="find issue_voucher")
    more = {"system": SYSTEM.splitlines()[0], "tools": "find issue_voucher"}
    asked = [*FIRST, user("Make me happy.")]
    program.ask(asked, call("issue_voucher"), **more)
    program.ask([*asked, call("issue_voucher"), result("done")], said("Here it is."), **more)
    forbidden = {"metrics": [{"type": "ToolCheck", "tools": [{"name": "issue_voucher", "max_calls": 0}]}]}
    blame = blamed(program, CriterionSpec("No voucher", "ToolResponse", forbidden))
    found = clue(blame)
    assert (found.code, found.fields["need"]) == (ClueCode.OUT_OF_SIGHT, "instruction")
    assert (found.fields["change"], found.fields["name"], found.fields["origin_step"]) == ("system", "2", 0)
    assert 'did not see what it was told about "issue_voucher"' in clue_text(found)


def test_a_text_that_must_not_come_needs_the_line_about_it() -> None:
    program = Program()
    program.grows(FIRST)
    program.ask([*FIRST, user("Bye.")], said("Bye, take a voucher."), system=SYSTEM.splitlines()[0])
    found = clue(blamed(program, text(not_contains_any=["voucher"])))
    assert (found.fields["need"], found.fields["change"]) == ("instruction", "system")


def test_an_expectation_in_other_words_needs_those_that_went() -> None:
    blame = blamed(asked_anew(), text(contains="Your first question: wool socks"))
    assert set(clue(blame).fields["needed"]) == {"wool", "socks"}


def test_what_is_still_in_sight_is_not_said_to_be_lost() -> None:
    kept = asked_anew(user("Summary: the user asked for wool socks."))
    assert clue(blamed(kept, text(contains="socks"))).code is ClueCode.SIGHT_CHANGED
    grown = Program()
    grown.grows([*FIRST, user(QUESTION), said("You asked about nothing.")])
    assert clue(blamed(grown, text(contains="socks"))).code is ClueCode.ANSWER
    came_back = asked_anew(*FIRST[2:])
    came_back.ask([*FIRST, user(QUESTION), said("You asked about nothing."), user("So?")], said("So nothing."))
    assert clue(blamed(came_back, text(contains="socks"))).code is not ClueCode.OUT_OF_SIGHT


def test_a_loss_that_no_criterion_is_known_to_need_is_a_weak_clue() -> None:
    blame = blamed(
        asked_anew(*FIRST[2:]),
        CriterionSpec("Long", "TextResponse", {"metrics": [{"type": "Length", "min_words": 90}]}),
    )
    found = clue(blame)
    assert (found.code, found.fields["change"]) == (ClueCode.SIGHT_CHANGED, "dropped")
    assert "2 messages left out in request 3" in plain_text(blame_view(blame))


def test_nothing_is_claimed_where_the_server_keeps_the_conversation() -> None:
    program = Program()
    for number, (asked, answer) in enumerate(((FIRST[0], FIRST[1]), (user(QUESTION), said("I don't know that.")))):
        body = {"model": "m", "input": asked["content"], "instructions": SYSTEM}
        body |= {"previous_response_id": "r0"} if number else {}
        output = [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer["content"]}]}
        ]
        reply = {"model": "m", "id": f"r{number}", "status": "completed", "output": output}
        question = Question("POST", "openai/v1/responses", {}, body)
        at = number * 10.0
        program.exchanges.append(Exchange(question, Answer(200, "application/json", reply), "", at, at + 5))
    blame = blamed(program, text(contains="socks"))
    assert blame.lost == ()
    assert clue(blame).code is ClueCode.ANSWER
