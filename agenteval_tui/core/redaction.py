"""Secrets are taken out of texts: those that are known by value, in the forms in which they travel, and what looks like
a key (`key_shapes`)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from agenteval_tui.core.json_values import DEEPEST
from agenteval_tui.core.key_shapes import STAND_IN, open_key, without_keys, without_keys_in

SHORTEST = 8
"""Characters. A shorter value would be found in many an innocent word."""
SHORTEST_IN_ERRORS = 4
"""Characters. An error message is not an answer that is judged: there, a shorter value is also looked for, as a word of
its own."""
SHORTEST_BEGINNING = 6
"""Characters. A shorter beginning of a secret at the end of a text is that of many a word, and gives little away."""


class Redactor:
    """Replaces what looks like a key, and every occurrence of the given secrets, by `***`; values of fewer than 8
    characters are left alone.

    Also found are a secret's JSON-escaped (once or twice), URL-encoded and base64 forms; in a base64 text of something
    longer (`user:password`) the secret's part is. A text without a secret comes back as the same object.
    """

    __slots__ = ("_forms", "_longest", "_starts")

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for value in values:
            if len(value) >= SHORTEST:
                forms |= _forms_of(value)
        # Where one contains another, the longer must be found first; one found by its part needs no more looking.
        self._forms = tuple(sorted(forms, key=lambda value: (-len(value), value)))
        self._longest = len(self._forms[0]) if self._forms else 0
        self._starts: dict[str, list[str]] = {}
        for form in self._forms:
            self._starts.setdefault(form[0], []).append(form)

    def text(self, text: str) -> str:
        """`text` without the secrets; the same object where there are none."""
        return without_keys(self._without_known(text))

    def _without_known(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, STAND_IN)
        return text

    def piece(self, text: str) -> tuple[str, str]:
        """A piece of a longer text, of which more is to come: what may be shown of it, without the secrets, and its
        end that may be the beginning of a secret, to be put before the next piece. Of the last one `ending` is
        shown."""
        text = self._without_known(text)
        open_size = self.open_end(text)
        ready, rest = (text[:-open_size], text[-open_size:]) if open_size else (text, "")
        # Keys are not looked for in `rest`: one that has begun may go on in the next piece.
        return without_keys(ready), rest

    def ending(self, rest: str) -> str:
        """What may be shown of an end that was kept back, when no more comes."""
        return self.cut(self.text(rest))

    def cut(self, text: str) -> str:
        """A text that may have been cut off in the middle of a secret: a beginning of one, of at least 6 characters, at
        the end of the text becomes `***` too. The same object if there is none."""
        size = self._begun(text)
        return text if size < SHORTEST_BEGINNING else text[:-size] + STAND_IN

    def open_end(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret, of which more is to come."""
        return max(self._begun(text), open_key(text))

    def _begun(self, text: str) -> int:
        """How many characters at the end of a text are the beginning of a secret that is known by value."""
        size = len(text)
        # From the left: the longest beginning is the one that may become a secret.
        for place in range(max(0, size - self._longest + 1), size):
            for form in self._starts.get(text[place], ()):
                if len(form) > size - place and form.startswith(text[place:]):
                    return size - place
        return 0

    def data(self, value: object) -> Any:
        """JSON data without the secrets, in its texts and its keys; the same object where there are none.

        What holds a secret below `DEEPEST` levels becomes `***` as a whole.
        """
        # Looked through first, as data without a secret need not be copied.
        return self._copied(value, DEEPEST) if self.inside(value) else value

    def inside(self, value: object) -> bool:
        """Whether a secret is in a text or a key of JSON data."""
        # Without recursion: data from elsewhere may be nested deeper than Python can call.
        waiting = [value]
        while waiting:
            current = waiting.pop()
            if isinstance(current, str):
                if self.text(current) is not current:
                    return True
            elif isinstance(current, Mapping):
                if without_keys_in(current):
                    return True
                waiting.extend(current)
                waiting.extend(current.values())
            elif isinstance(current, list | tuple):
                waiting.extend(current)
        return False

    def _copied(self, value: object, levels: int) -> object:
        if isinstance(value, str):
            return self.text(value)
        if not levels:
            return STAND_IN if self.inside(value) else value
        if isinstance(value, Mapping):
            named = without_keys_in(value)
            return {
                self._copied(key, levels): self._copied(named.get(key, item), levels - 1) for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._copied(item, levels - 1) for item in value]
        return value


def _forms_of(value: str) -> set[str]:
    """The value, and what JSON, URLs and base64 make of it."""
    forms = {value}
    # JSON in JSON, as arguments of tools travel, with and without escapes outside of ASCII.
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1], once.replace("/", "\\/")}
    data = value.encode("utf-8", "surrogatepass")
    for encoded in (quote(data, safe=""), quote(data), quote_plus(data)):
        forms |= {encoded, _lower_escapes(encoded)}
    forms |= {form for form in _base64_forms(data) if len(form) >= SHORTEST}
    return forms


def _lower_escapes(encoded: str) -> str:
    """`%2f` for `%2F`: both are in use."""
    parts = encoded.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _base64_forms(data: bytes) -> set[str]:
    """The characters of a base64 text that depend on the secret alone, whatever is before and after it."""
    forms = set()
    # Base64 takes three bytes at a time: what stands before the secret shifts it by none, one or two.
    for before in range(3):
        encoded = b64encode(b"\0" * before + data).decode()
        first = (before * 8 + 5) // 6  # the first character that no byte before has a part in
        last = (before + len(data)) * 8 // 6  # behind the last one that no byte behind has a part in
        forms.add(encoded[first:last])
    whole = b64encode(data).decode()
    forms |= {whole, whole.rstrip("=")}
    return forms | {form.replace("+", "-").replace("/", "_") for form in forms}
