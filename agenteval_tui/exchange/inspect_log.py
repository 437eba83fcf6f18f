"""Inspect's logs, `.eval` and `.json`: samples are tests, epochs are repetitions, scores are criterion results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import IO, Any

from agenteval_tui.exchange.inspect_sample import read_sample, sample_identity
from agenteval_tui.exchange.inspect_zip import Archive, DamagedMember, Member, open_archive
from agenteval_tui.exchange.json_reader import JsonReader
from agenteval_tui.exchange.json_stream import NOT_UTF8, Unreadable
from agenteval_tui.exchange.message_dialects import plain_text
from agenteval_tui.exchange.recorded import Recording, Skipped
from agenteval_tui.exchange.source import Source
from agenteval_tui.exchange.unread import said_of, texts_of
from agenteval_tui.text.problems import AgentevalError

NAME = "inspect"
LOOKS_LIKE = "an Inspect log: `.eval` (a ZIP), or JSON with `version`, `eval` and `samples`"
KNOWN = 3
"""The newest version of the format that is known. A newer one is read all the same, and said."""

LARGEST_HEADER = 16_000_000
_SAMPLES = "samples/"
_HEADER_READ = ("eval.model", "eval.created", "eval.dataset.sample_ids[]")
_READ = (_SAMPLES, "header.json", "_journal/", "summaries.json")  # summaries say again what samples say


def fits(value: Any) -> bool:
    """Whether a file's first value is an Inspect log."""
    evaluation = value.get("eval") if isinstance(value, Mapping) else None
    return isinstance(evaluation, Mapping) and ("version" in value or "status" in value)


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The samples of a log; before them notes on the log as a whole."""
    with source.open() as file:
        packed = file.read(2) == b"PK"
        yield from _packed(file) if packed else _plain(source)


# JSON


def _plain(source: Source) -> Iterator[Recording | Skipped]:
    header, last = _outline(source)
    yield from _said(header)
    if not last and header.get("eval"):
        yield Skipped("there are no samples in this log (Inspect was told not to log them, or stopped before)")
        return
    reader = source.reader()
    index = -1
    try:
        for key in reader.members():
            if key != "samples":
                continue
            for index in reader.elements():
                yield from _sample_at(reader, header, index, last)
    except Unreadable as error:
        yield Skipped(f"from here on the log can't be read: {error.reason}", reader.line, error.cut_off)
    for key in ("version", "status", "eval", "error"):  # read before
        reader.passed_over.pop(key, None)
    yield from said_of(reader)


def _outline(source: Source) -> tuple[dict[str, Any], set[int]]:
    """The log's header, and the indices of its samples, of those with the same id and epoch only the last."""
    header: dict[str, Any] = {}
    last: dict[tuple[str, int], int] = {}
    reader = source.reader()
    try:
        for key in reader.members():
            if key == "samples":
                for index in reader.elements():
                    last[sample_identity(reader)] = index
            elif key in ("version", "status", "eval", "error"):
                header[key] = reader.bounded(LARGEST_HEADER)
    except Unreadable:
        last[("", -1)] = -1  # said when it is read again
    return header, set(last.values())


def _sample_at(
    reader: JsonReader, header: Mapping[str, Any], index: int, last: set[int]
) -> Iterator[Recording | Skipped]:
    line = reader.line
    if index not in last and -1 not in last:
        yield Skipped("a later entry of the same sample and epoch is used", line)
        reader.skip()
        return
    try:
        found, remarks = read_sample(reader, _evaluation(header))
    except AgentevalError as error:
        yield Skipped(error.what, line)
        return
    yield found
    for remark in remarks:
        yield Skipped(remark, counts=False, place=f"line {line}")


# ZIP


def _packed(file: IO[bytes]) -> Iterator[Recording | Skipped]:
    try:
        archive = open_archive(file)
    except DamagedMember as error:
        yield Skipped(error.reason, cut_off=error.cut_off, place="the file")
        return
    samples = [one for name, one in archive.members.items() if name.startswith(_SAMPLES) and name.endswith(".json")]
    header, problem, passed_over = _header(archive)
    if not samples and "eval" not in header:
        raise AgentevalError(
            "this ZIP archive is no Inspect log: it has neither a header nor samples", mend="name the `.eval` file"
        )
    if archive.cut_off:
        yield Skipped("the archive is cut off", cut_off=True, counts=False, place="the log")
    elif problem:
        yield Skipped(problem, counts=False, place="the log")
    if archive.replaced:
        yield Skipped(
            f"{archive.replaced} entries were written again later; the last ones are used", counts=False,
            place="the log",
        )  # fmt: skip
    yield from _said(header)
    yield from passed_over
    if not samples:
        yield Skipped("there are no samples in this log (Inspect was told not to log them, or stopped before)")
    for member in sorted(samples, key=_order(header)):
        yield from _member_sample(member, header)
    others = [name for name in archive.members if not name.startswith(_READ) and not name.endswith("/")]
    if others:
        yield Skipped("", counts=False, fields=dict.fromkeys(others, 1))


def _header(archive: Archive) -> tuple[dict[str, Any], str, tuple[Skipped, ...]]:
    """The log's header, and what is to be said when it had none: Inspect writes it when the evaluation ends. Then what
    of it was passed over."""
    for name in ("header.json", "_journal/start.json"):
        member = archive.members.get(name)
        if member is None:
            continue
        found: dict[str, Any] = {}
        try:
            with member.open() as stream:
                reader = JsonReader(stream)
                for key in reader.members():
                    if key in ("version", "status", "eval", "error"):
                        found[key] = reader.bounded(LARGEST_HEADER)
        except (Unreadable, DamagedMember):
            continue
        if "eval" in found:
            ended = name == "header.json"
            said = "" if ended else "the log has no header: the evaluation did not come to its end"
            return found, said, tuple(said_of(reader, place=name))
    return {}, "nothing says which evaluation this was: its header can't be read", ()


def _member_sample(member: Member, header: Mapping[str, Any]) -> Iterator[Recording | Skipped]:
    try:
        with member.open() as stream:
            reader = JsonReader(stream)
            if reader.kind() != "object":
                yield Skipped("no sample: it is no JSON object", place=member.name)
                return
            found, remarks = read_sample(reader, _evaluation(header))
    except Unreadable as error:
        yield Skipped(f"a sample can't be read: {error.reason}", cut_off=error.cut_off, place=member.name)
        return
    except DamagedMember as error:
        yield Skipped(f"a sample can't be unpacked: {error.reason}", cut_off=error.cut_off, place=member.name)
        return
    except AgentevalError as error:
        yield Skipped(error.what, place=member.name)
        return
    yield found
    if reader.replaced:
        yield Skipped(NOT_UTF8, counts=False, place=member.name)
    for remark in remarks:
        yield Skipped(remark, counts=False, place=member.name)
    yield from said_of(reader, "samples[].", member.name)


def _order(header: Mapping[str, Any]) -> Any:
    """Samples as the dataset has them, then by epoch; the archive has them as they ended."""
    dataset = _evaluation(header).get("dataset")
    ids = dataset.get("sample_ids") if isinstance(dataset, Mapping) else None
    place = {plain_text(one): number for number, one in enumerate(ids)} if isinstance(ids, list) else {}

    def order(member: Member) -> tuple[int, int]:
        name, _, epoch = member.name[len(_SAMPLES) : -len(".json")].rpartition("_epoch_")
        return place.get(name, len(place)), int(epoch) if epoch.isdecimal() and len(epoch) < 10 else 0

    return order


# Both


def _evaluation(header: Mapping[str, Any]) -> Mapping[str, Any]:
    found = header.get("eval")
    return found if isinstance(found, Mapping) else {}


def _said(header: Mapping[str, Any]) -> Iterator[Skipped]:
    """Notes on the log as a whole: its version, and how the evaluation ended."""
    note = replace(Skipped("", place="the log"), counts=False)
    version = header.get("version")
    if isinstance(version, int) and version > KNOWN:
        yield replace(note, reason=f"it is of version {version}, newer than what this program knows ({KNOWN})")
    status = header.get("status")
    error = header.get("error")
    if status == "error" and isinstance(error, Mapping):
        said = plain_text(error.get("message")).strip()[:300]
        yield replace(note, reason=f"the evaluation ended with an error: {said}")
    elif status in ("started", "cancelled"):
        yield replace(note, reason=f"the evaluation was {'cancelled' if status == 'cancelled' else 'not finished'}")
    yield from _told(header)


def _told(header: Mapping[str, Any]) -> Iterator[Skipped]:
    """What the header says of the evaluation: its model and scorers are in the runs, the rest is not."""
    fields = Counter(field for field, _ in texts_of(_evaluation(header), "eval") if field not in _HEADER_READ)
    if fields:
        yield Skipped("", counts=False, fields=fields)
