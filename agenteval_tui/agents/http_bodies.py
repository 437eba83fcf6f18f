"""What a server says of an error in the body of its reply: its own words, and the codes in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

_LONGEST = 400  # characters of a server's own words that are passed on
_DEEPEST = 6
_MARKUP = re.compile(
    r"\s*(?:<!--.*?-->\s*|<\?xml[^>]*\?>\s*)*<(?:!doctype|html|head|body|title|center|h[1-6]|p|div)\b", re.I | re.S
)
_XML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>.*</\1\s*>\s*$", re.S)
_WORDS = (
    "error",
    "errors",
    "message",
    "detail",
    "error_message",
    "error_description",
    "msg",
    "reason",
    "title",
    "fault",
)
_CODES = ("code", "type", "status", "error", "reason", "error_code", "object")
_BESIDE = {*_WORDS, *_CODES, "ok", "success", "status_code", "statusCode", "timestamp", "path", "request_id",
           "requestId", "trace_id", "traceId", "id", "param", "details", "help", "documentation_url"}  # fmt: skip
_UNSEEN = {"script", "style", "noscript", "template", "svg"}


def words_in(body: str) -> str:
    """The server's own words in an error's body: the message in its JSON, the title of its page, else its text."""
    if body.startswith(("data:", "event:")):  # an error as the only event of a stream, with a status of its own
        lines = [line for line in body.splitlines() if line.startswith("data:")]
        body = lines[0].removeprefix("data:").strip() if lines else body
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return shortened(words_of_page(body) if is_markup(body) else body)
    for _ in range(_DEEPEST):
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, Mapping):
            break
        value = next((value[key] for key in _WORDS if _says(value.get(key))), _left_of(value))
    if isinstance(value, str) and is_markup(value):
        value = words_of_page(value)
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def codes_in(body: str) -> frozenset[str]:
    """The codes in an error's body (`code`, `type`, `status`, ...), in small letters."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(_codes(value, 0))


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether an object that was sent as a reply says of itself that it is an error."""
    signs = (value.get("object"), value.get("type"), value.get("status"))
    if any(sign in ("error", "failed", "failure") for sign in signs if isinstance(sign, str)):
        return True
    if value.get("success") is False or value.get("ok") is False:
        return True
    return any(_says(value.get(key)) or value.get(key) is True for key in ("error", "errors", "fault"))


def is_only_an_error(value: Mapping[str, Any]) -> bool:
    """Whether an object says that it is an error and holds nothing that could be an answer."""
    return is_error(value) and set(value) <= _BESIDE


def error_in(value: Mapping[str, Any]) -> Any:
    """The error in such an object: what says most."""
    return next((value[key] for key in ("error", "errors", "fault") if _says(value.get(key))), value)


def is_markup(text: str) -> bool:
    """Whether a text is a page of HTML, or XML."""
    start = text[:20_000]
    return _MARKUP.match(start) is not None or (start.lstrip()[:1] == "<" and _XML.match(start) is not None)


def words_of_page(text: str) -> str:
    """A page as one line: its title and its first heading, else the text that a reader would see."""
    page = _Page()
    page.feed(text[:64_000])
    page.close()
    title, heading = (" ".join("".join(one).split()) for one in (page.title, page.heading))
    said = (
        title
        if not heading or heading.casefold() in title.casefold()
        else heading
        if not title
        else f"{title}: {heading}"
    )
    return said or " ".join("".join(page.text).split()) or "a page without any text"


def text_of_page(text: str) -> str:
    """All that a reader of a page would see, as one line."""
    page = _Page()
    page.feed(text[:64_000])
    page.close()
    return " ".join("".join([*page.title, " ", *page.text]).split())


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text as one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _says(value: Any) -> bool:
    return isinstance(value, str | Mapping | list) and bool(value)


def _left_of(value: Mapping[str, Any]) -> Any:
    """An object without words that are known: itself, if there is anything in it."""
    return json.dumps(value, ensure_ascii=False, default=str) if value and list(value) != ["error"] else ""


def _codes(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for one in value[:20]:
            yield from _codes(one, depth + 1)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key in _CODES and isinstance(one, str | int) and not isinstance(one, bool):
                yield str(one)[:200].lower()
            elif isinstance(one, Mapping | list):
                yield from _codes(one, depth + 1)


class _Page(HTMLParser):
    """Gathers a page's title, its first heading and its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.heading: list[str] = []
        self.text: list[str] = []
        self._in = ""
        self._unseen = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if self._unseen:
            return
        if tag in _UNSEEN:
            self._unseen = tag
        elif (tag == "title" and not self.title) or (tag in ("h1", "h2") and not self.heading):
            self._in = tag
        self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._unseen:
            self._unseen = ""
        if tag == self._in:
            self._in = ""
        self.text.append(" ")

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if self._in:
            (self.title if self._in == "title" else self.heading).append(data)
        if self._in != "title":
            self.text.append(data)
