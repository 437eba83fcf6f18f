"""The difference of two runs: what one did otherwise, and the words that the command line and the screen share."""

from __future__ import annotations

from agenteval_tui.analysis.trajectory_alignment import align
from agenteval_tui.history.records import RunRow
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.tui.presenters.difference import DifferenceDocument
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.views.difference import context_view, difference_view, verdict_text
from agenteval_tui.views.terminal import plain_text


def transcript(answer: str, *, failed: bool = False, thought: str = "", steps: int = 0) -> Transcript:
    call = ToolCall("a", "look", {"at": "it"}, "nothing", status="error" if failed else "ok")
    before = tuple(Message("user", f"question {number}") for number in range(steps))
    return Transcript(
        (*before, Message("assistant", "", tool_calls=(0,)), Message("assistant", answer, thought)), (call,)
    )


def row(run: str, status: str, score: float) -> RunRow:
    known = {"id": run, "suite_name": "Shop", "test_id": "tone", "repetition": 1, "agent": "demo", "variation": ""}
    known |= {"status": status, "score": score}
    return RunRow(**{name: known.get(name) for name in RunRow.__struct_fields__})


LEFT, RIGHT = transcript("Yes.", failed=True, steps=6), transcript("No.", steps=6)


def test_both_runs_then_what_differs() -> None:
    left, right = row("ONE", "failed", 0.0), row("TWO", "passed", 1.0)
    lines = plain_text(difference_view(left, right, align(LEFT, RIGHT))).splitlines()
    assert lines[0].startswith("- ONE  ")
    assert lines[0].endswith("Shop / tone, repetition 1, agent demo")
    assert lines[2:] == [
        "", "  … 6 steps alike", "  tool look  at = \"it\"", "  result of look", "    nothing", "-   it failed",
        "+   it succeeded", "  assistant", "-   Yes.", "+   No.", "2 differences in 9 steps",
    ]  # fmt: skip


def test_the_screen_says_the_same() -> None:
    document = DifferenceDocument(align(LEFT, RIGHT), 80)
    document.settle(0, 100)
    shown = "\n".join(plain(document.line(number)) for number in range(document.height))
    for words in ("6 steps alike", "it failed", "it succeeded"):
        assert words in shown


def test_how_much_differs() -> None:
    assert verdict_text(align(LEFT, LEFT)) == "both runs took the same steps"
    thinking, other = transcript("Yes.", thought="hm"), transcript("Yes.", thought="oh")
    assert verdict_text(align(thinking, other)) == "both runs took the same steps; 1 reasoning differs"


def test_runs_of_the_same_steps_whose_models_were_given_something_else() -> None:
    texts = ["Where is it?", "On its way to you.", "When?", "Tomorrow at noon."]
    messages = tuple(Message("assistant" if number % 2 else "user", words) for number, words in enumerate(texts))

    def asked(*places: int) -> Transcript:
        told = [{"role": message.role, "content": message.content} for message in messages]
        first = ModelRequest(1, 1, messages=tuple(told[:1]), answer=1)
        second = ModelRequest(2, 1, messages=tuple(told[place] for place in places), answer=3)
        return Transcript(messages, requests=ModelRequests.of([first, second]))

    whole, cut = asked(0, 1, 2), asked(1, 2)
    assert verdict_text(align(whole, cut)) == "both runs took the same steps"
    line = plain_text(context_view(whole, cut))
    assert line.startswith("what the models were given differs at step ")
    assert "starts over, without the 1 message before" in line
    assert context_view(whole, whole) == ()
    assert context_view(LEFT, RIGHT) == ()
