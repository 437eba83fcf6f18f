"""The runs in an HTML file of `agenteval share`: the tags around them, and a function that extracts them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.stream.source import Packing

BEGIN = '<script type="application/json" id="agenteval-runs">'
END = "</script>"
_BLOCK = 1 << 18
_HTML = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype html|html)", re.IGNORECASE | re.DOTALL)


def is_html(path: Path) -> bool:
    """Whether a file starts like an HTML page."""
    with path.open("rb") as file:
        return _HTML.match(file.read(1_000).removeprefix(b"\xef\xbb\xbf")) is not None


def take_out(path: Path, into: IO[bytes]) -> str:
    """Write the JSON of the page's runs into a file. Returns why it is not complete, or "". Raises `AgentevalError` if
    the page contains no runs."""
    begin, end = BEGIN.encode(), END.encode()
    with path.open("rb") as file:
        buffer = b""
        while block := file.read(_BLOCK):
            buffer += block
            if (at := buffer.find(begin)) >= 0:
                buffer = buffer[at + len(begin) :]
                break
            buffer = buffer[-len(begin) :]
        else:
            raise AgentevalError(
                "there are no runs in this HTML page", where=str(path), fix="`agenteval share` makes pages with runs"
            )
        while (at := buffer.find(end)) < 0:
            into.write(buffer[: -len(end)])
            buffer = buffer[-len(end) :]
            if not (block := file.read(_BLOCK)):
                into.write(buffer)
                into.flush()
                return "the page is cut off"
            buffer += block
        into.write(buffer[:at])
    into.flush()
    return ""


PACKING = Packing(is_html, take_out)
