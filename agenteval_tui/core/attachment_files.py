"""The bytes of images and files in messages, kept once by their hash in the data folder.

A history holds what they are (media type, size, hash), never the bytes: this folder is a store of limited size beside
all histories. What was not used for the longest time goes first; a run of which they are gone says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from pathlib import Path

from agenteval_tui.core import directories
from agenteval_tui.core.atomic_write import PRIVATE, write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import make_private, read_small_bytes

LARGEST = 20_000_000
"""Bytes of one image or file."""
_MOST = 2_000_000_000  # bytes of all
_YOUNG_S = 86_400.0  # what was used in the last day stays, whatever the size of all is
_NAME = re.compile(r"[0-9a-f]{64}")


def keep(data: bytes) -> str:
    """Keep the bytes; gives their SHA-256 in hex. Raises `AgentevalError`: they are too large, or can't be written."""
    if len(data) > LARGEST:
        raise AgentevalError(said_too_large(len(data)), fix="make it smaller")
    name = hashlib.sha256(data).hexdigest()
    folder = _folder()
    path = folder / name
    try:
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)  # it is in use
            return name
        make_private(folder)
        write_whole(path, (data,), mode=PRIVATE, durable=False)
        _limit(folder)
    except OSError as error:
        raise AgentevalError(f"an attachment can't be kept: {error.strerror or error}", where=str(folder)) from None
    return name


def kept(sha256: str) -> bytes | None:
    """The bytes with this hash; None where they are not kept, or the file has others."""
    if not _NAME.fullmatch(sha256):
        return None
    path = _folder() / sha256
    try:
        data = read_small_bytes(path, "an attachment", LARGEST)
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
    except AgentevalError:
        return None
    return data


def media_type_of(data: bytes) -> str:
    """What bytes are by their first ones: an image that models take, or a PDF; "" for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if data.startswith(b"%PDF-") else ""


def said_too_large(size: int) -> str:
    """What is said of an image or file of this many bytes."""
    return f"this has {size / 1e6:,.1f} MB; an image or file in a message may have {LARGEST / 1e6:,.0f} MB"


def _folder() -> Path:
    return directories.data_dir() / "attachments"


def _files(folder: Path) -> list[tuple[float, int, Path]]:
    """(when last used, bytes, where) of what is kept, the oldest first."""
    files = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    files.append((about.st_mtime, about.st_size, Path(entry.path)))
    return sorted(files)


def _limit(folder: Path) -> None:
    files = _files(folder)
    size = sum(length for _, length, _ in files)
    for used, length, path in files:
        if size <= _MOST or used > time.time() - _YOUNG_S:
            return
        path.unlink(missing_ok=True)
        size -= length
