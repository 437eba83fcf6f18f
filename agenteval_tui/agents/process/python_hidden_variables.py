"""Variables of a recording that a Python program does not see, but the programs that it starts.

They lead programs in other languages to the proxy. A Python program is led there below its clients
(`python_http_clients`), and would only behave otherwise: many libraries ask for no usage, or for no JSON, where a base
URL is set that is not the vendor's own. Only the standard library.
"""

from __future__ import annotations

import os

VARIABLE = "AGENTEVAL_HIDDEN"
"""The variable with the names of the others."""


def hide() -> None:
    """Take them out of `os.environ`. What starts a program without an environment of its own still passes them on."""
    for name in os.environ.get(VARIABLE, "").split():
        value = os.environ.pop(name, None)
        if value is not None:
            os.putenv(name, value)
