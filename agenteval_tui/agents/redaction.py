"""Keys must not get out: which texts are secret, and taking them out of what an agent yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from agenteval_tui.agents.interface import (
    AgentEvent,
    Done,
    Failed,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from agenteval_tui.agents.secrets import is_secret_name

_STAND_IN = "***"


def secrets_of(
    key: str, headers: Mapping[str, str], query: Mapping[str, str], url: str, config: Any, env: Mapping[str, str]
) -> tuple[str, ...]:
    """What must not be repeated: the key, headers and parameters that look like one, the password in the address, and
    secret variables of the environment that were put into the configuration (`${VAR}`). The longest come first.
    """
    found = {key, urlsplit(url).password or ""}
    for name, value in [*headers.items(), *query.items()]:
        if is_secret_name(name):
            # "Bearer abc": the word before it is none.
            found |= {value, value.rpartition(" ")[2]}
    named = [value for name, value in env.items() if len(value) >= 8 and is_secret_name(name)]
    if named:
        texts = list(_texts(config))
        found |= {value for value in named if any(value in text for text in texts)}
    found |= {form for one in found for form in (unquote(one), quote(one, safe=""))}
    return tuple(sorted((one for one in found if one), key=len, reverse=True))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


class Redactor:
    """Takes secrets out of a run's events, also those that come in several pieces.

    Only what can't be an ordinary word: a local server's key is often "none" or "lm-studio", and an answer that says so
    must stay as it is. The end of a piece that may be the beginning of a secret is kept back until more has come.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(one for one in secrets if _is_unlike_a_word(one))
        # What was kept back, by where it belongs: TextDelta, ReasoningDelta, or the key of a tool call.
        self._kept: dict[type | int, str] = {}

    def clean(self, event: AgentEvent) -> list[AgentEvent]:
        """The events to yield in place of this one."""
        if not self._secrets:
            return [event]
        if isinstance(event, TextDelta | ReasoningDelta):
            text = self._piece(type(event), event.text)
            return [replace(event, text=text)] if text else []
        if isinstance(event, ToolArgumentsDelta):
            text = self._piece(event.key, event.text)
            return [replace(event, text=text)] if text else []
        if isinstance(event, ToolCallStarted):
            return [replace(event, id=self._whole(event.id), name=self._whole(event.name))]
        kept = self._rest()
        if isinstance(event, ToolCallFinished):
            event = replace(event, result=self._whole(event.result))
        elif isinstance(event, Done):
            event = replace(event, finish_reason=self._whole(event.finish_reason), model=self._whole(event.model))
        elif isinstance(event, Failed):
            said = replace(event.error, message=self._whole(event.error.message), mend=self._whole(event.error.mend))
            event = replace(event, error=said)
        return [*kept, event]

    def _piece(self, place: type | int, text: str) -> str:
        text = self._whole(self._kept.pop(place, "") + text)
        for length in range(min(len(text), max(len(one) for one in self._secrets) - 1), 0, -1):
            end = text[-length:]
            if any(one.startswith(end) for one in self._secrets):
                self._kept[place] = end
                return text[:-length]
        return text

    def _rest(self) -> list[AgentEvent]:
        kept, self._kept = self._kept, {}
        made: list[AgentEvent] = []
        for place, text in kept.items():
            if isinstance(place, int):
                made.append(ToolArgumentsDelta(place, text))
            else:
                made.append(TextDelta(text) if place is TextDelta else ReasoningDelta(text))
        return made

    def _whole(self, text: str) -> str:
        for one in self._secrets:
            text = text.replace(one, _STAND_IN)
        return text


def _is_unlike_a_word(text: str) -> bool:
    return len(text) >= 20 or (len(text) >= 10 and any(one.isdigit() for one in text))
