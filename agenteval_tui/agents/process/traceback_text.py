"""Tracebacks in what a program wrote to its standard error, as Python and Node print them."""

from __future__ import annotations

import linecache
import os.path
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.suites.trust import working_copy_of
from agenteval_tui.transcripts.traceback import Frame, RaisedException, Relation, Traceback, bounded

_BEGIN = "Traceback (most recent call last):"
_LINK: dict[str, Relation] = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_PLACE = re.compile(r'File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_RAISED = re.compile(r"(?P<type>[^\W\d][\w.]*)(?:: (?P<message>.*))?$")
_MARGIN = re.compile(r"^ *[|+] ?")
_MEMBER = re.compile(r"^ *(?:\+-)?\+-+ (?P<number>\d+) -+$")
_REPEATED = re.compile(r"\[Previous line repeated (\d+) more times?\]$")
_UNDERLINE = re.compile(r"[\s~^]+$")
_JS_FRAME = re.compile(
    r"^\s+at (?:async )?(?:(?P<function>[^()]+?) \()?(?:file://)?(?P<file>[^()\s]+?):(?P<line>\d+):\d+\)?[\s{]*$"
)
_JS_CALL = re.compile(r"^\s+at \S")
"""A frame, also one without a place: `at Promise.all (index 0)`."""
_JS_FAULT = re.compile(r"^(?:file://)?(?P<file>/?[^\s:]+\.[cm]?[jt]sx?):(?P<line>\d+)(?:$|:\d+(?:: ERROR: | - error ))")
"""Where code can't be read, as Node, esbuild (tsx) and the compiler of TypeScript (ts-node) say it."""
_JS_RAISED = re.compile(
    r"^(?P<cause>\s*\[cause\]: )?(?:Uncaught |Error: (?=(?:[A-Z]\w*)?Error(?: \[\w+\])?: ))?"
    r"(?P<type>[A-Z][\w$.]*)(?: \[\w+\])?(?:: (?P<message>.*))?$"
)
PACKAGES = re.compile(
    r"[\\/](?:site-packages|dist-packages|node_modules)[\\/]|[\\/]lib(?:64)?[\\/]python\d[\d.]*[\\/]|\.zip[\\/]"
)
_FATAL = "Fatal Python error: "
_DUMP = re.compile(r"^(?:Current thread 0x\w+|Stack) .*\(?most recent call first\)?:$")
_DUMPED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')
_HERE = Path(__file__).parent
OWN = (f"{_HERE / 'python_'}", f"{_HERE.parents[1] / 'extensions'}{os.sep}")
"""How the paths of our own part of a process begin: here, and where readers of frameworks are."""
_STARTUP = f"{_HERE / 'startup'}{os.sep}"
_LONGEST = 300
_MOST_LINES = 20  # of a message in JavaScript


def traceback_in(text: str, folder: str) -> Traceback | None:
    """The last traceback in a text; None if there is none. The project's files are those outside of folders of
    packages. Their paths are given from `folder`."""
    lines = text.splitlines()
    read = _python(lines, folder) if _BEGIN in text else _node(lines, folder)
    return None if read is None else bounded(read)


def tracebacks_in(text: str, folder: str) -> Iterator[Traceback]:
    """All tracebacks in what a program wrote that went on after each, as a server does."""
    lines, begun = text.splitlines(), 0
    words = ""
    for number, line in enumerate(lines):
        # A log line may stand before it: "ERROR: Traceback (most recent call last):".
        if line.endswith(_BEGIN) and not line.startswith((" ", "|")) and words not in _LINK:
            traceback = traceback_in("\n".join(lines[begun:number]), folder)
            if traceback is not None:
                yield traceback
            begun = number
        words = line.strip(" |+") or words
    traceback = traceback_in("\n".join(lines[begun:]), folder)
    if traceback is not None:
        yield traceback


def frames_in_dump(text: str, folder: Path, *, fatal: bool) -> tuple[Frame, ...]:
    """The frames of the last stack that Python's `faulthandler` wrote, the first call first, without those of our own
    part of the process: because of a `fatal` signal, or because it was asked where it is."""
    frames: list[Frame] = []
    called = None  # how many of them our part of the process has called: what started that is not the program's
    dumping = announced = False
    for line in text.splitlines():
        match = _DUMPED.match(line)
        # A process that was asked where it is, and then crashed, has written two dumps.
        if _DUMP.match(line) and announced == fatal:
            dumping, frames, called = True, [], None
        elif not dumping or match is None:
            dumping = False
        elif match["file"].startswith(OWN):
            called = len(frames)
        else:
            file, own = _file(match["file"], str(folder))
            source = _source(match["file"], int(match["line"]), folder) if own else ""
            frames.append(Frame(file, int(match["line"]), match["function"], source, own))
        # An empty line lies between the announcement and the stack.
        announced = line.startswith(_FATAL) or (announced and not line)
    return tuple(reversed(frames[:called]))


def last_place(dump: str, folder: Path) -> Traceback | None:
    """Where a process was when it was asked, from what `faulthandler` wrote then; None if that has no frames."""
    frames = frames_in_dump(dump, folder, fatal=False)
    if not frames:
        return None
    return Traceback((RaisedException("TimeLimit", "it was here when its time was over", frames),))


def _source(file: str, line: int, folder: Path) -> str:
    """The line of a Python file of the project; "" for any other file, whatever a program writes."""
    real = Path(os.path.realpath(file))
    # What a program writes decides which file is read here: only sources of the project are.
    if real.suffix != ".py" or not real.is_relative_to(working_copy_of(folder)) or not real.is_file():
        return ""
    linecache.checkcache(file)
    return linecache.getline(file, line).strip()[:_LONGEST]


# Python


class _Block(Struct):
    """One `Traceback`, and what was raised at its end. `depth`: in how many groups it is."""

    depth: int
    frames: list[Frame]
    link: Relation = ""  # to the block before it
    raised: str = ""
    message: str = ""
    left_out: int = 0
    lines: int = 1  # of the message


def _python(lines: list[str], folder: str) -> Traceback | None:
    blocks: list[_Block] = []
    link: Relation = ""
    begun: _Block | None = None
    members = False
    for whole in lines:
        depth = _depth(whole)
        if _MEMBER.match(whole):
            begun, members = None, True
            continue
        # Without the bars of the groups, lines have the indentation that the expressions expect.
        line = whole[2 * depth + 2 :] if depth and whole[2 * depth : 2 * depth + 1] == "|" else whole
        row = line.strip(" |+")
        if row.startswith("Exception Group Traceback (most recent") or row.endswith(_BEGIN):
            if not link and not members and not depth:
                blocks = []  # of another error, before
            begun, members = _Block(depth, [], link), False
            blocks.append(begun)
            link = ""
        elif row in _LINK:
            link, begun = _LINK[row], None
        elif begun is not None:
            _read(begun, line, row, folder)
        elif members and (match := _RAISED.match(row)):  # a member that was never raised
            blocks.append(_Block(depth, [], "", match["type"], match["message"] or ""))
            members = False
    blocks = [block for block in blocks if block.raised]
    return _tree(blocks) if blocks else None


def _depth(line: str) -> int:
    """In how many groups a line is: Python indents it by two for each, before a bar."""
    margin = _MARGIN.match(line)
    return 0 if margin is None else (len(line) - len(line.lstrip(" "))) // 2


def _read(block: _Block, line: str, row: str, folder: str) -> None:
    if block.raised:
        if row and not line.startswith(" ") and block.lines < _MOST_LINES:
            block.message += f"\n{row}"
            block.lines += 1
        return
    if (match := _PLACE.match(row)) is not None:
        file, own = _file(match["file"], folder)
        block.frames.append(Frame(file, int(match["line"]), match["function"] or "", project=own))
    elif (match := _REPEATED.match(row)) is not None:
        block.left_out += int(match[1])
    # The first line below a place is the source; others underline it.
    elif line.startswith("    ") and block.frames and not _UNDERLINE.match(row):
        if not block.frames[-1].source:
            block.frames[-1] = replace(block.frames[-1], source=row[:_LONGEST])
    elif not line.startswith("  ") and (match := _RAISED.match(row)) is not None:
        block.raised, block.message = match["type"], match["message"] or ""


def _tree(blocks: list[_Block]) -> Traceback:
    """What was raised first: Python prints a cause before what it led to, and the members of a group below it."""
    exceptions: list[RaisedException] = []

    def add(number: int, relation: Relation, parent: int | None) -> None:
        block = blocks[number]
        place = len(exceptions)
        exceptions.append(
            RaisedException(block.raised, block.message, tuple(block.frames), block.left_out, relation, parent)
        )
        if block.link and number:
            # A cause is printed before what it led to, in the same group.
            before = max((n for n in range(number) if blocks[n].depth == block.depth), default=None)
            if before is not None:
                add(before, block.link, place)
        inner = []
        for later in range(number + 1, len(blocks)):
            if blocks[later].depth <= block.depth:
                break
            inner.append(later)
        if inner:
            first = min(blocks[number].depth for number in inner)
            level = [number for number in inner if blocks[number].depth == first]
            # Of a chain in a member, its last is the member.
            for here, after in zip(level, [*level[1:], None], strict=True):
                if after is None or not blocks[after].link:
                    add(here, "member", place)

    outer = min(block.depth for block in blocks)
    add(max(number for number, block in enumerate(blocks) if block.depth == outer), "", None)
    return Traceback(tuple(exceptions))


# Node


def _node(lines: list[str], folder: str) -> Traceback | None:
    last = max((number for number, line in enumerate(lines) if _JS_FRAME.match(line)), default=None)
    if last is None:
        return None
    exceptions: list[RaisedException] = []
    end = last
    while end >= 0:
        begin = end
        while begin >= 0 and _JS_CALL.match(lines[begin]):
            begin -= 1
        frames = [frame for line in lines[begin + 1 : end + 1] if (frame := _js_frame(line, folder)) is not None]
        head = begin
        # A message may have several lines before the first frame.
        while head >= 0 and begin - head < _MOST_LINES and _JS_RAISED.match(lines[head]) is None:
            head -= 1
        match = _JS_RAISED.match(lines[head]) if head >= 0 and begin - head < _MOST_LINES else None
        if match is None:
            break
        message = "\n".join([match["message"] or "", *(line.strip() for line in lines[head + 1 : begin + 1])])
        exceptions.insert(0, RaisedException(match["type"], message.strip(), tuple(reversed(frames))))
        if not match["cause"]:
            break
        # Node prints what was raised first, and `[cause]` below it; this goes from the last to the first.
        end = head - 1
        while end >= 0 and not _JS_FRAME.match(lines[end]):
            end -= 1
    if not exceptions:
        return None
    raised = exceptions[0]
    if raised.type == "SyntaxError" or not any(frame.project for each in exceptions for frame in each.frames):
        fault = next(filter(None, (_js_fault(number, lines, folder) for number in range(len(lines)))), None)
        exceptions[0] = replace(raised, frames=(*raised.frames, *filter(None, [fault])))
    elif raised.frames and (source := _js_source(lines, raised.frames[-1])):
        exceptions[0] = replace(raised, frames=(*raised.frames[:-1], replace(raised.frames[-1], source=source)))
    chain = [
        replace(raised, relation="cause", parent=number - 1) if number else raised
        for number, raised in enumerate(exceptions)
    ]
    return Traceback(tuple(chain), "javascript")


def _js_frame(line: str, folder: str) -> Frame | None:
    match = _JS_FRAME.match(line)
    if match is None or match["file"].startswith(_STARTUP):
        return None
    file, own = _file(match["file"], folder)
    return Frame(file, int(match["line"]), match["function"] or "", project=own)


def _js_fault(number: int, lines: list[str], folder: str) -> Frame | None:
    """The place in the project that a line names as one that can't be read."""
    match = _JS_FAULT.match(lines[number])
    file, own = _file(match["file"], folder) if match is not None else ("", False)
    if match is None or not own:
        return None
    is_above_source = match.end("line") == len(lines[number]) and number + 1 < len(lines)
    return Frame(file, int(match["line"]), "", lines[number + 1].strip()[:_LONGEST] if is_above_source else "", own)


def _js_source(lines: list[str], frame: Frame) -> str:
    """The line of source that Node prints above all, below its place."""
    for number, line in enumerate(lines[:-1]):
        if re.search(rf"{re.escape(PurePath(frame.file).name)}:{frame.line}$", line):
            return lines[number + 1].strip()[:_LONGEST]
    return ""


def _file(file: str, folder: str) -> tuple[str, bool]:
    """A file as it is shown, and whether it is the project's."""
    own = not (file.startswith(("<", "[", "node:", "internal/")) or PACKAGES.search(file))
    if own and PurePath(file).is_absolute():
        way = os.path.relpath(os.path.realpath(file), os.path.realpath(folder))
        return (file if way.startswith("../../../../") else way), True
    installed = list(PACKAGES.finditer(file))
    return (file[installed[-1].end() :] if installed else file), own
