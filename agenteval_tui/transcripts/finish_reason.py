"""What ended an answer, where that is worth saying before anything else: cut by a limit, stopped by a filter, empty.

Servers have many words for the same thing; `finish_reason` keeps theirs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agenteval_tui.transcripts.model import Transcript

EndingCode = Literal["length", "content_filter", "malformed_call", "incomplete", "empty"]

_WORDS: dict[str, EndingCode] = {
    **dict.fromkeys(
        (
            *("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_length", "max_new_tokens"),
            *("token_limit", "model_length", "model_context_window_exceeded", "context_window_exceeded"),
            *("context_length_exceeded", "context_length", "output_limit", "truncated"),
        ),
        "length",
    ),
    **dict.fromkeys(
        (
            *("content_filter", "content_filtered", "refusal", "safety", "image_safety", "recitation", "blocklist"),
            *("prohibited_content", "image_prohibited_content", "spii", "guardrail_intervened", "sensitive", "blocked"),
            *("content_policy_violation", "moderation"),
        ),
        "content_filter",
    ),
    **dict.fromkeys(
        ("malformed_function_call", "malformed_tool_call", "malformed_tool_use", "malformed_model_output"),
        "malformed_call",
    ),
    **dict.fromkeys(("incomplete", "pause_turn", "aborted", "abort", "insufficient_system_resource"), "incomplete"),
}
ENDING_SENTENCES: dict[str, str] = {
    "length": "the answer was cut by max_tokens",
    "content_filter": "the answer was stopped by a content filter",
    "malformed_call": "the model made a tool call that its server could not read",
    "incomplete": "the answer is incomplete",
    "empty": "the answer is empty",
}


class Ending(Struct, frozen=True):
    """What ended an answer: the class of it, and the server's own word."""

    code: EndingCode
    finish_reason: str

    @property
    def description(self) -> str:
        """One sentence: `the answer was cut by max_tokens (finish reason: length)`."""
        return describe_ending(self.code, self.finish_reason)


def describe_ending(code: str, finish_reason: str) -> str:
    """The sentence of an ending; of a code that is not known here, the server's word alone."""
    return f"{ENDING_SENTENCES.get(code, 'the answer ended early')} (finish reason: {finish_reason})"


@lru_cache(maxsize=256)
def ending_code(finish_reason: str) -> EndingCode | None:
    """The class of a server's word, in any spelling: `MAX_TOKENS`, `max-tokens`, `FinishReason.MAX_TOKENS`.

    None for one that says that the model ended by itself, or that is not known.
    """
    word = finish_reason.strip().rpartition(".")[2].lower().replace("-", "_").replace(" ", "_")
    return _WORDS.get(word) or _WORDS.get(word.removeprefix("finish_reason_"))


def ending_of(transcript: Transcript) -> Ending | None:
    """What ended the last answer; None where the agent failed, did not say, or ended by itself with an answer."""
    reason = transcript.finish_reason
    if not reason or transcript.error is not None:
        return None
    code = ending_code(reason)
    if code is None and not transcript.final_output:
        code = "empty"
    return None if code is None else Ending(code, reason)


def with_ending(why: str, transcript: Transcript) -> str:
    """One line on why a run ended as it did, starting with why its answer ended. An empty answer needs no reason."""
    ending = ending_of(transcript)
    if ending is None or ending.code == "empty":
        return why
    return f"{ENDING_SENTENCES[ending.code]}; {why}" if why else ENDING_SENTENCES[ending.code]
