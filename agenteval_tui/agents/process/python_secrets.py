"""Texts without the secrets of an environment. It runs here, and in the child: only the standard library, of Python 3.8
or later."""

from __future__ import annotations

import re
from collections.abc import Mapping

SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
"""What the name of a variable has whose value is secret."""
_SHORTEST = 8  # characters; a shorter value, such as `1` or `test`, is found in many an innocent word


def without_secrets(text: str, env: Mapping[str, str]) -> str:
    """`text` without the values of the variables whose names say that they are secret."""
    # Whether a value is in the text is asked before whether its name is that of a secret: nearly always it is not.
    values = [
        value for name, value in env.items() if len(value) >= _SHORTEST and value in text and SECRET_NAME.search(name)
    ]
    # The longest first: a value that begins another one would leave the rest of that.
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, "***")
    return text
