"""A foreign file becomes an execution in the history: once, as a stream, with a word on what was left out."""

from __future__ import annotations

import hashlib
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.core import numbers
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.core.options import Options, limits
from agenteval_tui.formats.detect import detect, format_named, indices_of
from agenteval_tui.formats.importers.derived_criteria import DerivedGrader
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.recording import Described, Recording, Skipped
from agenteval_tui.formats.importers.usage_import import figures_left_out
from agenteval_tui.formats.omitted_texts import UnreadTexts
from agenteval_tui.formats.recorded_run import planned_run, run_end, storable
from agenteval_tui.formats.stream.json_stream import NOT_UTF8
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import IMPORTED, ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.history.write_operations import AlreadyImportedError
from agenteval_tui.suites.projects import project_here
from agenteval_tui.transcripts.impossible_figures import LEFT_OUT, with_possible_figures
from agenteval_tui.transcripts.observed import FORMAT_WITHOUT_CALLS, UNREAD_CALLS


class ImportOptions(Options, frozen=True, kw_only=True):
    """`format`: a name of `detect.formats()`; None: told by each file. `trust` is for tests, `no_derived` for runs."""

    format: Annotated[str, limits("The files' format (default: detected from their content).", "NAME")] | None = None
    dry_run: Annotated[bool, limits("Read everything and say what would be imported; change nothing.")] = False
    trust: Annotated[bool, limits("Let Python functions run that make prompts (promptfoo: prompts.py:name).")] = False
    no_derived: Annotated[bool, limits("Do not grade the runs with the expectations in the file.")] = False


BY_CONTENT = ImportOptions()
"""All as it is without options."""


MOST_NOTES = 40


class ImportReport(Struct, frozen=True):
    """What an import did.

    `read` counts the runs found in the file, `added` those that are in the history now; `skipped` says why some are
    not, `places` where in the file the first of each such reason stands, `notes` what else is to be known of the file.
    `cut_off`: the file ends too early. `already`: the same file was imported before as `execution_id`, and nothing was
    added.
    """

    execution_id: str
    format: str
    read: int
    added: int
    skipped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    cut_off: bool = False
    already: bool = False
    places: Mapping[str, str] = field(default_factory=dict)

    def left_out(self) -> Iterator[str]:
        """What was left out, a line each: `2, the first in line 7: not valid JSON`."""
        yield from _left_out(self.skipped, self.places)


def _left_out(skipped: Iterable[tuple[str, int]], places: Mapping[str, str]) -> Iterator[str]:
    for reason, count in skipped:
        place = places.get(reason, "")
        place = f", {place}" if place and count == 1 else f", the first: {place}" if place else ""
        yield f"{count:,}{place}: {reason}"


def import_file(
    path: Path | str,
    store: Store,
    options: ImportOptions = BY_CONTENT,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Read a recorded file into the history as one execution of kind "import".

    With `dry_run` everything is read, and nothing is stored. Each run is graded by what the file says was expected of
    it (`derived`), beside the foreign verdict, unless `no_derived`. `on_progress` is called now and then with the bytes
    read so far and the size of the file. A file that was imported before adds nothing; what a killed import of it left
    is replaced. Raises `AgentevalError`: the file can't be read, or nothing in it can be imported (then nothing is
    added).
    """
    path = Path(path)
    # Of a folder that is one recording, the file that stands for all of it.
    path = next((index for _, index in indices_of(path)), path)
    chosen = format_named(options.format) if options.format else None
    with open_source(path) as source:
        chosen = chosen or detect(source)
        if chosen.recordings is None:
            raise AgentevalError(
                f"there are tests in this file ({chosen.name}) and no runs",
                where=str(path),
                fix="write them into a suite: --to NAME.suite.yaml",
            )
        digest = _digest(source, chosen.parts(source) if chosen.parts is not None else ())
        # Looked up before anything is read: a large file that is there already costs only its hash.
        before = store.imported(_key(chosen.name, digest))
        if before is not None:
            return _already(store, before, chosen.name)
        return _import(source, digest, store, chosen, options, on_progress)


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """The file at `path`, for reading. Raises `AgentevalError` for what the file system has against it."""
    try:
        if path.is_dir():
            raise IsADirectoryError
        if not stat.S_ISREG(path.stat().st_mode):
            # It is read more than once: to tell its format, to know it again, and for what it holds.
            raise AgentevalError(
                "this is a pipe or a device, and no file", where=str(path), fix="write it into a file first"
            )
        with Source(path) as source:
            yield source
    except AgentevalError as error:
        # A subclass has fields of its own, which would be lost.
        if error.where or type(error) is not AgentevalError:
            raise
        raise AgentevalError(error.what, where=str(path), fix=error.fix) from None  # a reader knows no file
    except FileNotFoundError:
        raise AgentevalError("there is no such file", where=str(path), fix="check the path") from None
    except IsADirectoryError:
        raise AgentevalError("this is a folder", where=str(path), fix="name a file in it") from None
    except PermissionError:
        raise AgentevalError("no permission to read this file", where=str(path)) from None
    except OSError as error:
        raise AgentevalError(f"this file can't be read: {error.strerror or error}", where=str(path)) from None


def _import(
    source: Source,
    digest: str,
    store: Store,
    format_: Format,
    options: ImportOptions,
    on_progress: Callable[[int, int], None] | None,
) -> ImportReport:
    path, derive, dry_run = source.path, not options.no_derived, options.dry_run
    assert format_.recordings is not None
    tally = _Tally()
    # By its name and not its place: the next file of that name is another execution of the same suite.
    key = f"{IMPORTED}{format_.name}:{path.name}"
    record = ExecutionRecord(
        id=new_id(),
        title=f"{path.name} ({format_.name})",
        kind="import",
        source=str(path.resolve()),
        suite_keys=(key,),
        started_ms=now_ms(),
        options={"format": format_.name, "digest": digest},
        project=project_here(),
    )
    recordings = format_.runs(source)
    if source.cut_off:
        cut = Skipped(f"what is packed in it was not unpacked to the end: {source.cut_off}", 0, True, False, path.name)
        recordings = chain([cut], recordings)
    runs = _runs(
        tally.over(chain(recordings, _replaced_in(source)), derive=derive),
        record,
        key,
        path.stem,
        format_.name,
        derive and not dry_run,
    )
    # Before the execution is begun: a file without a run must leave none.
    first = next(runs, None)
    if first is None:
        words = tally.words() or "; ".join(tally.notes)
        raise AgentevalError(
            "nothing in this file can be imported" + (f": {words}" if words else ""),
            where=str(path),
            fix=f"a file in the format {format_.name} is {format_.described}",
        )

    def progress(_: int) -> None:
        if on_progress is not None:
            on_progress(source.done, source.size)

    if dry_run:
        added = 0
        read = 1 + sum(1 for _ in runs)
    else:
        for unfinished in store.unfinished_imports(digest):
            # Its process was killed half-way: what it left is of no use beside the whole.
            store.delete_execution(unfinished).result()
        try:
            read = added = store.import_runs(
                tally.described(replace(record, kind="fork") if first[0].fork_of else record),
                chain([first], runs),
                digest=_key(format_.name, digest),
                path=str(path),
                notes=tally.lines,
                on_progress=progress,
            )
        # Another process has imported the same file meanwhile.
        except AlreadyImportedError as quicker:
            return _already(store, quicker.execution_id, format_.name)
    return ImportReport(
        execution_id="" if dry_run else record.id,
        format=format_.name,
        read=read + sum(tally.skipped.values()),
        added=added,
        skipped=tuple(tally.skipped.most_common()),
        notes=tally.notes,
        cut_off=tally.cut_off,
        places=tally.places,
    )


def _replaced_in(source: Source) -> Iterator[Skipped]:
    """The note after all was read, on bytes that are not text."""
    if source.replaced:
        yield Skipped(NOT_UTF8, counts=False)


def _runs(
    recordings: Iterable[Recording], record: ExecutionRecord, key: str, suite: str, source: str, derive: bool
) -> Iterator[tuple[PlannedRun, RunEnded]]:
    repetitions_of: dict[tuple[str, str, str, int], set[int]] = {}
    deriving = DerivedGrader()
    for position, recording in enumerate(map(storable, recordings)):
        specs: tuple[CriterionSpec, ...] = ()
        # A run of ours that comes back has its own results; of one that broke off an expectation says nothing.
        if derive and recording.expected and recording.stated is None and recording.transcript.error is None:
            recording = replace(
                recording,
                results=(
                    *recording.results,
                    *deriving.results(recording.expected, recording.transcript, recording.variables),
                ),
            )
            specs = deriving.specs(recording.expected)
        repetitions = repetitions_of.setdefault(
            (recording.suite, recording.test_id, recording.variation, recording.row), set()
        )
        repetition = recording.repetition
        # A file may number none of its repetitions, or two alike; in the history each is one of its own.
        if repetition is None or repetition in repetitions:
            repetition = max(repetitions, default=0) + 1
        repetitions.add(repetition)
        planned = planned_run(
            recording,
            record.id,
            position=position,
            suite_key=key,
            suite=suite,
            source=source,
            repetition=repetition,
            specs=specs,
        )
        yield planned, run_end(planned.id, recording)


_FIGURE = "a figure that can't be so was left out"
_NO_BYTES = "of images and files their kind, size and hash are kept; the bytes stay in the file"


_OTHER_EXECUTION = "it is of another execution than the first run, whose name and commits were taken"


class _Tally:
    """Counts what an importer leaves out while its recordings pass by."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.places: dict[str, str] = {}
        self.cut_off = False
        self._noted: Counter[str] = Counter()
        self._noted_at: dict[str, str] = {}
        self._unread = UnreadTexts()
        self._execution: Described | None = None

    def described(self, record: ExecutionRecord) -> ExecutionRecord:
        """The execution with what the first of its runs says of the one that it was of."""
        description = self._execution or Described()
        return replace(
            record, name=description.name, note=description.note, meta=description.meta, commits=description.commits
        )

    def over(self, parts: Iterable[Recording | Skipped], *, derive: bool = False) -> Iterator[Recording]:
        number = 0
        pending = iter(parts)
        while True:
            # A figure is read where the run is made: so what is left out is known to belong to this run.
            with figures_left_out() as figures:
                part = next(pending, None)
            if part is None:
                return
            if isinstance(part, Recording):
                number += 1
                place = f"run {number} ({part.test_name or part.test_id})"
                if number == 1:
                    self._execution = part.execution
                elif part.execution != self._execution:
                    self._note(_OTHER_EXECUTION, place)
                part = replace(part, transcript=with_possible_figures(part.transcript))
                codes = [note.code for note in part.transcript.notes]
                for note in part.notes:
                    self._note(note, place)
                for unseen in part.transcript.notes:
                    if unseen.code in (FORMAT_WITHOUT_CALLS, UNREAD_CALLS):
                        self._note(replace(unseen, place="").description, place)
                figures += [note.place for note in part.transcript.notes if note.code == LEFT_OUT]
                figures += ["usage"] * ("usage" in codes)
                for name in dict.fromkeys(figures):
                    note = f"{_FIGURE}: {name}" if name else _FIGURE
                    self._note(note, place)
                messages = part.transcript.messages
                if any(attachment.sha256 for message in messages for attachment in message.attachments):
                    self._note(_NO_BYTES, place)
                if derive and (unchecked := DerivedGrader.left_out(part.expected)):
                    self._note(unchecked, place)
                self._unread.look(part)
                yield part
                continue
            if part.fields:
                self._unread.passed_over(part.fields)
                continue
            self.cut_off = self.cut_off or part.cut_off
            place = part.place or (f"line {part.line}" if part.line else "")
            if part.counts:
                self.skipped[part.reason] += 1
                self.places.setdefault(part.reason, place)
            else:
                self._note(part.reason, place)

    def _note(self, note: str, place: str) -> None:
        self._noted[note] += 1
        self._noted_at.setdefault(note, place)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the file, each reason once, with its first place; then the fields that were not read."""
        notes = []
        for note, count in self._noted.items():
            place = self._noted_at[note]
            line = f"{place}: {note}" if place else note
            notes.append(f"{line} (and {count - 1:,} more like it)" if count > 1 else line)
        if len(notes) > MOST_NOTES:
            notes[MOST_NOTES:] = [f"and {numbers.count(len(notes) - MOST_NOTES, 'more note')} like this"]
        return (*notes, *self._unread.notes())

    def lines(self) -> tuple[str, ...]:
        """What was left out, and the notes, as they are kept with the execution."""
        left_out = _left_out(self.skipped.most_common(), self.places)
        return (*(f"left out {excluded}" for excluded in left_out), *self.notes)

    def words(self) -> str:
        return "; ".join(
            f"{count:,} x {reason}" if count > 1 else reason for reason, count in self.skipped.most_common(3)
        )


def _digest(source: Source, parts: Sequence[Path]) -> str:
    """Of the file, and of those that belong to it."""
    digest = hashlib.sha256()
    with source.open() as file:
        while block := file.read(1 << 20):
            digest.update(block)
    for part in parts:
        digest.update(b"\0part\0")
        with part.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _key(format_name: str, digest: str) -> str:
    """The same file read as another format is another import."""
    return f"{format_name}:{digest}"


def _already(store: Store, execution_id: str, format_name: str) -> ImportReport:
    row = store.execution(execution_id)
    return ImportReport(execution_id, format_name, read=row.runs, added=0, already=True)
