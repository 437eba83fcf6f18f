"""Ids and names that are made from others."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

ID = re.compile(r"\w[\w.-]{0,199}")
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "o", "œ": "oe"})


def slug(name: str) -> str:
    """An id made from a name: lower case, everything but letters and digits becomes "-". "" when nothing is left."""
    text = unicodedata.normalize("NFC", name).lower().translate(_GERMAN)
    plain = unicodedata.normalize("NFKD", text)
    ascii_only = re.sub(r"[^a-z0-9]+", "-", "".join(char for char in plain if not unicodedata.combining(char))).strip(
        "-"
    )
    # A name in another script would lose most of its letters: then it keeps them.
    letters = sum(char.isalnum() for char in text)
    if letters and sum(char.isalnum() for char in ascii_only) * 2 >= letters:
        return ascii_only[:100].rstrip("-")
    return re.sub(r"[\W_]+", "-", text).strip("-")[:100].rstrip("-")


def name_from(path: Path) -> str:
    """A suite's name made from its file's: "support" of support.suite.yaml, the folder's of suite.yaml."""
    name = path.name
    for ending in (".suite.yaml", ".suite.yml", ".yaml", ".yml"):
        if name.endswith(ending):
            name = name.removesuffix(ending)
            break
    return path.resolve().parent.name if name == "suite" else name
