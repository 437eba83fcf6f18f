"""JSON texts of many small values: `json.JSONEncoder` makes a new encoder for each, here one serves all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def encoder(*, ensure_ascii: bool, sort_keys: bool = False) -> Callable[[Any], str]:
    """What writes a value as compact JSON, in the same words and with the same errors as `JSONEncoder.encode`."""
    standard = json.JSONEncoder(ensure_ascii=ensure_ascii, sort_keys=sort_keys, separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without it
        return standard.encode
    texts = json.encoder.encode_basestring_ascii if ensure_ascii else getattr(json.encoder, "encode_basestring")  # noqa: B009 - unknown to types
    pieces = make(None, standard.default, texts, None, ":", ",", sort_keys, False, True)

    def encode(value: Any) -> str:
        try:
            return "".join(pieces(value, 0))
        except RecursionError:
            return standard.encode(value)  # which says it where a value holds itself

    return encode
