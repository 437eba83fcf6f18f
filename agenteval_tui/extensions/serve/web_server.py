"""The server behind `agenteval serve`: textual-serve's terminal in a page, and a guard before it.

textual-serve answers every request. A page of any site could open a websocket to it (browsers allow that across sites)
and type into the app; a name that is made to point here (DNS rebinding) could read it, too; and so could every other
user of this machine. So an address holds a secret, `Host` must be an address that is served here, `Origin` must be the
page's own, and the page may load nothing but what comes from here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct, field
from textual_serve.server import Server

from agenteval_tui.agents.http.loopback_server import require_host, why_not_listening
from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.core.errors import InfrastructureError

PAGE = Path(__file__).with_name("page") / "index.html"
SHUTDOWN_S = 2.0
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# What the served app should know of its terminal: the page's, not the one that `serve` was started in.
_TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}


class ServerOptions(Struct, frozen=True):
    """What is served where. `command` is a shell's; `secret` is part of every address."""

    command: str
    host: str
    port: int
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(18))


def why_refused(host: str, origin: str, *, served: str, names: Iterable[str]) -> str:
    """Why a request with these headers is none of ours, in words; "" when it is.

    `served` is the address that is listened at, `names` are this machine's own. `origin` "": none was sent.
    """
    name = _name(host)
    if not name:
        return "it names no host"
    try:
        address = ip_address(name)
    except ValueError:
        # A page may have a name of its own lead to this machine (DNS rebinding).
        if name != "localhost" and name not in {allowed.lower() for allowed in (served, *names)}:
            return f"{name} is not a name of this machine"
    else:
        if is_local(served) and not address.is_loopback:
            return f"{name} is not served"
    if origin:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or parts.netloc.lower() != host.lower():
            return "a page of another site asked"
    return ""


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def application(serving: ServerOptions) -> web.Application:
    """The web application: the page, its files, and the websocket that an app hangs on."""
    inner = Server(serving.command, serving.host, serving.port, title="agenteval")
    names = {socket.gethostname(), socket.getfqdn()} if not is_local(serving.host) else set()

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        why = why_refused(request.headers.get("Host", ""), origin, served=serving.host, names=names)
        first = request.path.split("/")[1] if request.path.count("/") else ""
        if why:
            response: web.StreamResponse = _refusal(403, f"Refused: {why}.")
        elif not secrets.compare_digest(first.encode(), serving.secret.encode()):
            response = _refusal(404, "There is no page here. Open the full address that `agenteval serve` printed.")
        # A browser sends one with each websocket: this is another program.
        elif request.path.endswith("/ws") and not origin:
            response = _refusal(403, "Refused: the request has no Origin header.")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = _refusal(error.status, error.reason)
        if not response.prepared:
            response.headers.update(_HEADERS)
            response.headers["Cache-Control"] = "no-store"
        return response

    async def page(_: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE)

    async def file(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        return web.FileResponse(PAGE.with_name(name)) if name in ("page.js", "page.css") else _refusal(404, "No file.")

    app = web.Application(middlewares=[guard])
    base = f"/{serving.secret}"
    app.add_routes(
        [
            web.get(f"{base}/", page),
            web.get(f"{base}/page/{{name}}", file),
            web.get(f"{base}/ws", inner.handle_websocket),
            web.get(f"{base}/download/{{key}}", inner.handle_download),
            web.static(f"{base}/static", inner.statics_path),
        ]
    )
    return app


def _refusal(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")


def serve(serving: ServerOptions, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `ready` is told the address. Raises `InfrastructureError` where
    it can't listen."""
    # textual-serve logs what it does; a broken connection is not worth a message, an app that could not start is.
    logging.getLogger("textual-serve").setLevel(logging.ERROR)
    os.environ.update(_TERMINAL)
    asyncio.run(_serve(serving, ready))


async def _serve(serving: ServerOptions, ready: Callable[[str], None]) -> None:
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end.set)
    runner = web.AppRunner(application(serving), access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, require_host(serving.host), serving.port).start()
        except (OSError, UnicodeError) as error:
            where = f"{serving.host}:{serving.port}"
            fix = "choose another port with --port; --port 0 takes any free one"
            raise InfrastructureError(
                f"can't listen there: {why_not_listening(error)}", where=where, fix=fix
            ) from error
        ready(address_of(serving, runner.addresses[0][1]))
        await end.wait()
    finally:
        await runner.cleanup()


def address_of(serving: ServerOptions, port: int) -> str:
    """What to open in a browser. A wildcard is reached by this machine's name."""
    host = serving.host
    if host in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        host = socket.gethostname()
    elif ":" in host:
        host = f"[{host.strip('[]')}]"
    return f"http://{host}:{port}/{serving.secret}/"
