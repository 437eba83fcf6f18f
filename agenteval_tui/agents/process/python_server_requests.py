"""Requests that a server in Python takes from agenteval: each names the run that it belongs to. Only the standard
library.

A server that agenteval starts answers several runs at once. Each request of agenteval's names, in a header, the proxy
of its run. The requests to models that the server makes to answer it go to that proxy, also those of tasks, and of
threads, to which this module hands the proxy on. All other requests go to their servers, such as those at the server's
start.

The header counts only with the token that agenteval gave the server. Otherwise, whoever else reaches the server could
send its requests, with their keys, elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

HEADER = "x-agenteval-run"
"""The header: the token, a space, and the address of the run's proxy."""
_IN_WSGI = "HTTP_X_AGENTEVAL_RUN"
_ASGI = (
    ("starlette.applications", "Starlette"),  # FastAPI stands on it
    ("quart.app", "Quart"),
    ("litestar.app", "Litestar"),
    ("django.core.handlers.asgi", "ASGIHandler"),
    ("falcon.asgi.app", "App"),
)
_WSGI = (
    ("flask.app", "Flask"),
    ("django.core.handlers.wsgi", "WSGIHandler"),
    ("falcon.app", "App"),
    ("bottle", "Bottle"),
)


def begin(token: str, clients: Any) -> None:
    """From now on, lead what follows from such a request. `clients`: the module `python_http_clients`."""
    requests = _Requests(token, clients.of_request)
    for name, cls in _ASGI:
        clients.see(name, functools.partial(requests.add_to_asgi, cls))
    for name, cls in _WSGI:
        clients.see(name, functools.partial(requests.add_to_wsgi, cls))
    clients.see("aiohttp.web_app", requests.add_to_aiohttp)
    clients.see("sanic.app", requests.add_to_sanic)
    clients.see("tornado.web", requests.add_to_tornado)
    clients.see("http.server", requests.add_to_http_server)
    clients.see("threading", requests.add_to_threads)
    clients.see("concurrent.futures.thread", requests.add_to_pools)


class _Requests:
    """The requests of one process. `address`: the context variable with the proxy of the request in progress."""

    def __init__(self, token: str, address: Any) -> None:
        self._token = token
        self._address = address

    def _in(self, header: str | None) -> str:
        """The proxy that a header names; "" if there is none, or it is not agenteval's."""
        token, _, address = (header or "").partition(" ")
        return address if token == self._token and address.startswith("http://127.0.0.1:") else ""

    async def _answered(self, header: str | None, answer: Any) -> object:
        """What the coroutine gives that answers the request with this header."""
        address = self._in(header)
        # An app in an app is called without the header: it keeps the proxy of the outer one.
        if not address:
            return await answer
        before = self._address.set(address)
        try:
            return await answer
        finally:
            # A coroutine that a server leaves unfinished is closed elsewhere, where there is nothing to take back.
            with contextlib.suppress(ValueError):
                self._address.reset(before)

    # The functions in place of others have their parameters: servers tell by a call without any, or by the kind of a
    # function, what an app is.

    def add_to_asgi(self, name: str, module: Any) -> None:
        cls = getattr(module, name)
        method = cls.__call__

        @functools.wraps(method)
        async def answer(app: Any, scope: Any, receive: Any, send: Any) -> object:
            return await self._answered(_header_in_scope(scope), method(app, scope, receive, send))

        cls.__call__ = answer

    def add_to_wsgi(self, name: str, module: Any) -> None:
        cls = getattr(module, name)
        method = cls.__call__

        @functools.wraps(method)
        def answer(app: Any, environ: Any, start_response: Any) -> object:
            # It stays until the thread takes its next request: an answer in pieces is made after this function's end.
            self._address.set(self._in(environ.get(_IN_WSGI)))
            return method(app, environ, start_response)

        cls.__call__ = answer

    def add_to_aiohttp(self, module: Any) -> None:
        cls = module.Application
        method = cls._handle

        @functools.wraps(method)
        async def answer(app: Any, request: Any) -> object:
            return await self._answered(request.headers.get(HEADER), method(app, request))

        cls._handle = answer

    def add_to_sanic(self, module: Any) -> None:
        # Sanic replaces the methods of its app when it starts. One task reads all requests of a connection.
        cls = module.Request
        init = cls.__init__

        @functools.wraps(init)
        def initialise(request: Any, *arguments: Any, **named: Any) -> None:
            init(request, *arguments, **named)
            self._address.set(self._in(request.headers.get(HEADER)))

        cls.__init__ = initialise

    def add_to_tornado(self, module: Any) -> None:
        cls = module.RequestHandler
        method = cls._execute

        @functools.wraps(method)
        async def answer(handler: Any, transforms: Any, *arguments: Any, **named: Any) -> object:
            header = handler.request.headers.get(HEADER)
            return await self._answered(header, method(handler, transforms, *arguments, **named))

        cls._execute = answer

    def add_to_http_server(self, module: Any) -> None:
        cls = module.BaseHTTPRequestHandler
        parse = cls.parse_request

        @functools.wraps(parse)
        def parse_request(handler: Any) -> object:
            is_right = parse(handler)
            self._address.set(self._in(handler.headers.get(HEADER)) if is_right else "")
            return is_right

        cls.parse_request = parse_request

    def add_to_threads(self, module: Any) -> None:
        cls = module.Thread
        start = cls.start

        @functools.wraps(start)
        def begin_thread(thread: Any) -> object:
            if self._address.get():
                thread.run = self._within(thread.run)
            return start(thread)

        cls.start = begin_thread

    def add_to_pools(self, module: Any) -> None:
        cls = module.ThreadPoolExecutor
        submit = cls.submit

        @functools.wraps(submit)
        def submitting(pool: Any, function: Any, /, *arguments: Any, **named: Any) -> object:
            # A pool's threads last longer than a request, so that each task has its own.
            return submit(pool, self._within(function), *arguments, **named)

        cls.submit = submitting

    def _within(self, function: Callable[..., Any]) -> Callable[..., object]:
        """The function, in another thread, with the proxy of now."""
        address = self._address.get()

        def call(*arguments: Any, **named: Any) -> object:
            before = self._address.set(address)
            try:
                return function(*arguments, **named)
            finally:
                self._address.reset(before)

        return call


def _header_in_scope(scope: Any) -> str | None:
    for name, value in scope.get("headers") or ():
        if name == b"x-agenteval-run":
            return str(value, "latin-1")
    return None
