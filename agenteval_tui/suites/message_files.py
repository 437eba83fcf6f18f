"""Images and files in the messages of a suite: read from the suite's folder; addresses are passed on, never fetched."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agenteval_tui.core.attachment_files import LARGEST, media_type_of, said_too_large
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.core.private_files import read_small_bytes
from agenteval_tui.transcripts.model import Attachment

_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".py": "text/x-python",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SHOWN = 500  # characters of a description in a mark


def is_address(address: str) -> bool:
    """Whether an image or file is meant by its address."""
    return "://" in address or address.startswith("data:")


def attached(
    folder: Path, kind: str, location: str, *, description: str = "", media_type: str = ""
) -> tuple[Attachment, bytes | None]:
    """The image or file (`kind`) at a path relative to `folder`, and its bytes; of an address: no bytes, no hash.

    Raises `AgentevalError`: it can't be read, is too large, or its kind can't be told.
    """
    if is_address(location):
        if not location.startswith(("http://", "https://")):
            reason = f"the address of this {kind} is not a web address: {on_one_line(location, 60)}"
            raise AgentevalError(reason, fix="use http:// or https://, or save the content in a file beside the suite")
        name = unquote(urlsplit(location).path.rpartition("/")[2])
        content_type = media_type or _TYPES.get(Path(name).suffix.lower(), "image/*" if kind == "image" else "")
        return _attachment(kind, content_type, None, name, description, location), None
    path = folder / location
    data = _read(path, kind)
    content_type = media_type or media_type_of(data) or _TYPES.get(path.suffix.lower(), "")
    if kind == "image" and content_type not in _IMAGES:
        reason = f"models do not accept this as an image: it is {content_type or 'of an unknown type'}"
        raise AgentevalError(reason, where=str(path), fix="give a .png, .jpg, .gif or .webp file, or write `file: ...`")
    if not content_type:
        reason = f"the type of this file is not known: {path.suffix or 'its name has no extension'}"
        raise AgentevalError(reason, where=str(path), fix="set its `media_type`, as in HTTP")
    return _attachment(kind, content_type, len(data), path.name, description, ""), data


def _attachment(kind: str, media_type: str, size: int | None, name: str, description: str, url: str) -> Attachment:
    words = on_one_line(description, _SHOWN) or on_one_line(name, _SHOWN)
    mark = f"[{kind}: {words}]" if words else f"[{kind}]"
    return Attachment(media_type, size=size, name=name, description=description, url=url, mark=mark)


def _read(path: Path, kind: str) -> bytes:
    where = str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise AgentevalError(f"this {kind} is not a regular file", where=where, fix="name a file")
        if status.st_size > LARGEST:
            raise AgentevalError(said_too_large(status.st_size), where=where, fix="make it smaller")
        data = read_small_bytes(path, f"this {kind}", LARGEST)
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a loop of links
        reason = getattr(error, "strerror", None) or str(error)
        raise AgentevalError(
            f"this {kind} can't be read: {reason}", where=repr(where)[1:-1], fix="check the path"
        ) from None
    if not data:
        raise AgentevalError(f"this {kind} is empty", where=where, fix="check the path")
    return data
