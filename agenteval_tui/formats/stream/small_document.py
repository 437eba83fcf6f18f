"""Small foreign documents, YAML or JSON, as plain values."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.stream.json_stream import wide_encoding
from agenteval_tui.formats.stream.source import Source

LARGEST = 300_000
"""Values in a document, each alias of YAML counted out: a few lines can expand to billions."""


def read_document(source: Source) -> Any:
    """The document. Dates of YAML are texts. Raises `AgentevalError`."""
    where = str(source.path)
    data = source.document()
    encoding = wide_encoding(data) or "utf-8-sig"
    text = data.decode(encoding, "replace")
    # More than one sign represents the bytes: the file itself may contain it.
    source.decoded_badly = text.count("\ufffd") > data.decode(encoding, "ignore").count("\ufffd")
    try:
        return _counted(json.loads(text), where)
    except (ValueError, RecursionError):
        pass
    import yaml

    try:
        return _counted(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), where)  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        said = getattr(error, "problem", None) or "not readable"
        raise AgentevalError(f"this is not YAML: {said}", where=f"{where}{line}") from None
    except (RecursionError, ValueError) as error:
        raise AgentevalError(f"this YAML can't be read: {error}", where=where) from None


def _counted(value: Any, where: str) -> Any:
    left = [LARGEST]

    def plain(one: Any, depth: int) -> Any:
        left[0] -= 1
        if left[0] < 0 or depth > 100:
            raise AgentevalError(
                f"this document has more than {LARGEST:,} values or 100 levels", where=where, mend="split it"
            )
        if isinstance(one, Mapping):
            return {str(key): plain(inner, depth + 1) for key, inner in one.items()}
        if isinstance(one, list | tuple | set):
            return [plain(inner, depth + 1) for inner in one]
        if isinstance(one, datetime.date | datetime.datetime):
            return one.isoformat()
        return one.decode("utf-8", "replace") if isinstance(one, bytes) else one

    return plain(value, 0)
