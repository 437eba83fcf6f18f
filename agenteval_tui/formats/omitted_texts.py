"""Which texts of a foreign file are in none of the runs that were made of it.

An importer knows the fields that it reads. What other fields say would be lost in silence, so each run is compared with
the value that it was made of: a text that is nowhere in the run is counted under its field, and the import says so.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import Struct

from agenteval_tui.core.json_values import DEEPEST, parsed_json
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.importers.usage_import import moment_ms

MOST_FIELDS = 30
"""Fields that are named in one note. Where there are more, those of one object are named together: `info.*`."""
MOST_NAMED = 6
"""Fields of one object that are named; of more (the headers of a reply, say) only the object is."""
SHORTENED = 200
"""A text was shortened if its first characters, this many, are in the run; else it was left out."""
MOST_SEARCHED = 300_000_000
"""Characters of a run that are searched for texts. In a run so large that this is not enough, the fields reported until
then represent the rest."""

# What gives a file its structure says nothing on its own. A value with a space in it is no such word, id or moment.
_KINDS = frozenset(
    {
        "role",
        "type",
        "kind",
        "part_kind",
        "message_kind",
        "object",
        "event",
        "run_type",
        "requestor",
        "lc",
        "source.type",
    }
)
_IDS = re.compile(
    r"(^|[_.\- ])(id|ids|uid|uuid|guid|hash|sha|digest|signature|fingerprint|checksum|etag)$|[a-z](Ids?|Uuid)$"
)
_TIMES = re.compile(
    r"time|date|stamp|created|started|ended|completed|finished|updated|modified|processed|(_at|At|_on|On)$",
    re.IGNORECASE,
)
_SEALED = frozenset({"signature", "encrypted_content", "thought_signature", "thoughtSignature", "redacted_data"})
_WORD = re.compile(r"[\w.:/$\-]{1,60}")
_SAY_NOTHING = frozenset((type(None), bool, int, float))


class UnreadTexts:
    """Counts, over the runs of a file, the fields with a text that no run contains."""

    def __init__(self) -> None:
        self._left_out = _Fields()
        self._shortened = _Fields()

    def look(self, recording: Recording) -> None:
        """Compare a run with what it was made of (`Recording.source`)."""
        if not recording.source:
            return
        stored = _Kept(recording)
        missing: set[str] = set()
        left_out: list[str] = []
        shortened: list[str] = []
        for field, value in recording.source:
            if stored.has_all(value, field.rpartition(".")[2]):
                continue  # nearly always: then no field needs a name
            for path, text in texts_of(value, field, stored.texts):
                # Once nothing may be searched any more, only fields that were missing before are reported.
                if stored.has(text) if stored.may_search else path not in missing or stored.is_text(text):
                    continue
                missing.add(path)
                (shortened if len(text) > SHORTENED and stored.has(text[:SHORTENED]) else left_out).append(path)
        self._left_out.add(left_out)
        self._shortened.add(shortened)

    def passed_over(self, fields: Mapping[str, int]) -> None:
        """Fields that were not looked at while the file was read."""
        self._left_out.add_counts(fields)

    def notes(self) -> Iterator[str]:
        """A sentence on what was left out, and one on what was shortened."""
        for fields, name in ((self._left_out, "not kept"), (self._shortened, "shortened")):
            if text := fields.text():
                yield f"{name}: {text}"


def texts_of(value: Any, field: str = "", texts: Container[str] = ()) -> Iterator[tuple[str, str]]:
    """(field, text) of each text in a JSON value that says something: no kinds, ids and moments, none in `texts`.

    The field is a path: `messages[].content`; a list's items have one.
    """
    waiting: list[tuple[str, str, Any, int]] = [(field, field.rpartition(".")[2], value, 0)]
    while waiting:
        path, key, node, depth = waiting.pop()
        if isinstance(node, str):
            if node not in texts and node and not node.isspace() and not _is_structure(key, node):
                yield path, node
        elif depth > DEEPEST:
            continue
        elif isinstance(node, list | tuple):
            waiting.extend((f"{path}[]", key, item, depth + 1) for item in node)
        elif isinstance(node, (dict, Mapping)):  # a dict is known sooner than a mapping
            for inner, item in node.items():
                if item is not None and not isinstance(item, (int, float)):
                    waiting.append((f"{path}.{inner}" if path else str(inner), str(inner), item, depth + 1))


def has_words(value: Any) -> bool:
    """Whether there is a text in a JSON value that says something."""
    return next(texts_of(value), None) is not None


def _is_structure(key: str, text: str) -> bool:
    match _structure_of(key):
        case "sealed":
            return " " not in text
        case "kind":
            return _WORD.fullmatch(text) is not None
        case "id":
            return len(text) <= 200 and not any(char.isspace() for char in text)
        case "time":
            return len(text) < 40 and moment_ms(text) is not None
        case _:
            return False


@lru_cache(maxsize=4096)
def _structure_of(key: str) -> str:
    """What a field of this name holds: files have few names and many values."""
    if key in _SEALED:
        return "sealed"
    if key in _KINDS:
        return "kind"
    if _IDS.search(key) is not None:
        return "id"
    return "time" if _TIMES.search(key) is not None else ""


class _Kept:
    """The texts of a run, for asking whether one is among them."""

    def __init__(self, recording: Recording) -> None:
        self.texts: set[str] = set()
        about = (recording.test_id, recording.test_name, recording.prompt, recording.agent, recording.variation)
        self._add((about, recording.variables, recording.transcript, recording.results))
        self._joined: str | None = None
        self._known: dict[str, bool] = {}
        self._left = MOST_SEARCHED

    @property
    def may_search(self) -> bool:
        """Whether there is time left to search the texts of the run."""
        return self._left > 0

    def is_text(self, text: str) -> bool:
        """Whether this is a text of the run, as a whole."""
        return text in self.texts

    def has_all(self, value: Any, key: str) -> bool:
        """Whether the run says all that the texts in a JSON value say. `key`: the name of the value."""
        texts = self.texts
        waiting: list[tuple[str, Any]] = [(key, [value])]
        while waiting:
            key, node = waiting.pop()
            for name, item in node.items() if node.__class__ is dict else [(key, item) for item in node]:
                kind = item.__class__
                if kind is str:
                    if item in texts or not item or item.isspace() or _is_structure(name, item):
                        continue
                    if not self.may_search or not self.has(item):
                        return False
                elif kind is dict or kind is list or kind is tuple:
                    waiting.append((name, item))
                elif kind not in _SAY_NOTHING:
                    return False  # a mapping of another class, say: to be looked at with care
        return True

    def _add(self, value: Any) -> None:
        add = self.texts.add
        waiting = [value]
        while waiting:
            node = waiting.pop()
            parts = _parts_of(node.__class__)
            for part in () if parts is None else parts(node):
                kind = part.__class__
                if kind is str:
                    add(part)
                elif kind not in _SAY_NOTHING:
                    waiting.append(part)

    def has(self, text: str) -> bool:
        """Whether the run says this: as a text, in one, or (a text that is JSON) part by part."""
        if text in self.texts:
            return True
        is_kept = self._known.get(text)
        if is_kept is None:
            is_kept = self._known[text] = self._is_within(text.strip())
        return is_kept

    def _is_within(self, text: str) -> bool:
        # Its parts first: the arguments of calls are JSON in most files, and are kept as what they say.
        inner = _json_in(text)
        if inner is not None and (
            self.has_all(inner, "") or all(self.has(part) for _, part in texts_of(inner, texts=self.texts))
        ):
            return True
        if self._joined is None:
            # The sign between two texts: nothing may be found across their border.
            self._joined = "\n\0".join(self.texts)
        # A text may be in the run within JSON, once or twice over, or in JSON that is ASCII only.
        once = _escaped(text)
        for written in dict.fromkeys((text, once, _escaped(once), _escaped(text, ascii_only=True))):
            self._left -= len(self._joined)
            if written in self._joined:
                return True
        return False


@lru_cache(maxsize=256)
def _parts_of(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """What gives the parts of a value of this class; None: it has none. A run has few classes and many values."""
    if issubclass(kind, str):  # an enumeration's
        return lambda text: (str.__str__(text),)
    if issubclass(kind, Mapping):
        return lambda mapping: (*map(str, mapping), *mapping.values())
    if issubclass(kind, list | tuple):
        return iter
    if issubclass(kind, Struct):
        names: tuple[str, ...] = kind.__struct_fields__
        return attrgetter(*names) if len(names) > 1 else lambda record: [getattr(record, name) for name in names]
    return None


def _escaped(text: str, *, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _json_in(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or list that a text is; None when it is none."""
    if text[:1] not in ("{", "["):
        return None
    document = parsed_json(text)
    return document if isinstance(document, dict | list) else None


class _Fields:
    """Fields of runs, counted: how often each was found, and in how many runs those of each object were."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()

    def add(self, paths: Sequence[str]) -> None:
        """The fields of one run, one each time."""
        self._times.update(paths)
        self._runs.update({above for path in set(paths) for above in _above(path)})

    def add_counts(self, times_of: Mapping[str, int]) -> None:
        """Fields of which only is known how often each was there."""
        self._times.update(times_of)
        most: dict[str, int] = {}
        for path, times in times_of.items():
            for above in _above(path):
                most[above] = max(most.get(above, 0), times)
        self._runs.update(most)

    def text(self) -> str:
        """The fields in order, each in backquotes with how often it was there; "" for none.

        Of an object that has many the names are counted: `headers.*` (12 names, 40 rows).
        """
        groups = {path: [path] for path in self._times}
        while parents := _crowded(groups):
            joined: dict[str, list[str]] = {}
            for group, paths in groups.items():
                parent = next((above for above in (_plain(group), *_above(_plain(group))) if above in parents), None)
                joined.setdefault(group if parent is None else f"{parent}.*", []).extend(paths)
            groups = joined
        parts = []
        for field, paths in sorted(groups.items())[:MOST_FIELDS]:
            if len(paths) == 1:
                times = self._times[paths[0]]
                parts.append(f"`{paths[0]}`" + (f" ({times:,} times)" if times > 1 else ""))
                continue
            rows = self._runs[_plain(field)]
            parts.append(f"`{field}` ({len(paths):,} names, {count(rows, 'row')})")
        if rest := sorted(groups.items())[MOST_FIELDS:]:
            parts.append(f"and {count(sum(len(paths) for _, paths in rest), 'more field')}")
        return ", ".join(parts)


def _plain(path: str) -> str:
    return path.removesuffix(".*")


def _above(path: str) -> Iterator[str]:
    """The objects and lists that a field is in, the innermost first."""
    while path:
        yield from (path[:at] for at in range(len(path) - 2, 0, -2) if path[at:] == "[]" * ((len(path) - at) // 2))
        path = path.rpartition(".")[0]
        if path:
            yield path


def _crowded(groups: Mapping[str, Sequence[str]]) -> set[str]:
    """The objects whose fields are to be counted instead of named: those with too many, the innermost first; while
    there are too many in all, the one with the most. None: all may be named."""
    parents: Counter[str] = Counter()
    for group in groups:
        if parent := _plain(group).rpartition(".")[0]:
            parents[parent] += 1
    crowded = [parent for parent, several in parents.items() if several > MOST_NAMED]
    if crowded:
        # Innermost first: what is joined there may leave the object around it with few names.
        depth = max(parent.count(".") for parent in crowded)
        return {parent for parent in crowded if parent.count(".") == depth}
    if len(groups) <= MOST_FIELDS or not parents:
        return set()
    parent, several = max(parents.items(), key=lambda item: (item[1], item[0].count("."), item[0]))
    return {parent} if several > 1 else set()
