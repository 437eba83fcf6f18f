"""A web hook is told how an execution ended. Of its address only the host is ever said: the rest is a secret."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.agents.permission import NOTHING, Permission, Use
from agenteval_tui.core.display import one_line
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.notification import ExecutionEnded
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.runs.trust_check import check_use
from agenteval_tui.views.execution import end_text

_SECONDS = 10.0  # that the end of `agenteval run` waits for a server that does not answer


def check_web_hook(address: str, where: str) -> None:
    """Raise `AgentevalError` unless this is the address of a web server. `where`: what names it."""
    try:
        place = urlsplit(address)
    except ValueError:
        place = urlsplit("")
    if place.scheme not in ("http", "https") or not place.hostname:
        raise AgentevalError(f"{where} takes an address that begins with http:// or https://", where=where)


def check_telling(address: str, *, trusted: bool) -> Permission:
    """The permission to tell it how an execution of this folder ended. Raises `NotTrustedError`. `trusted`: the user
    allowed it."""
    # To this machine nothing leaves that is not here already.
    if is_local(urlsplit(address).hostname or ""):
        return NOTHING
    return check_use(Use(Path.cwd(), (f"tells {host_of(address)} how the execution ended",)), trusted=trusted)


def host_of(address: str) -> str:
    """The host of a web hook, for people."""
    return one_line(urlsplit(address).hostname or "", 200)


def tell_web_hook(address: str, row: ExecutionRow, pass_rate: float | None, code: int) -> str:
    """Send it. Gives why it could not be told, "" where it was."""
    # httpx takes longer to import than a run of few tests to report, and few runs notify.
    import httpx

    sent = extended(
        ExecutionEnded,
        row,
        text=end_text(row, pass_rate, code),
        execution=row.id,
        exit_code=code,
        error=row.errors,
        pass_rate=pass_rate,
    )
    headers = {"Content-Type": "application/json"}
    try:
        answer = httpx.post(address, content=msgspec.json.encode(sent), headers=headers, timeout=_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Not the error's own words: they have the whole address.
        return f"{host_of(address)} could not be notified: {type(error).__name__}"
    return "" if answer.is_success else f"{host_of(address)} could not be notified: it answered {answer.status_code}"
