"""HTTP clients in the child, whose requests to models go by way of agenteval's proxy. Only the standard library.

The clients of model servers stand on few HTTP libraries. Below those, where a request leaves, it is sent to the proxy
with the address that it was meant for; the answer comes back in its place. Nothing above sees another address, and no
variable is set: libraries behave otherwise where they know a base URL that is not the vendor's own (openai-agents asks
for no usage then). Where the proxy can't reach the server, the request goes there by itself, as without a proxy.

Requests are told by their paths, whatever the host. All else is left alone, and so is every request outside of a call
of an agent.

A server answers several runs at once: there, each request that it takes says by way of which proxy the requests that
follow from it go (`python_server_requests.py`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

SERVER = "x-agenteval-server"
"""The header that tells the proxy which server a request is for: its address, without the path that the proxy knows."""
UNREACHED = "x-agenteval-unreached"
"""The header by which the proxy says that it can't reach that server, and sent nothing."""
_MOST = 32_000_000  # bytes of a request
_HOST = "127.0.0.1"
_OPENAI = re.compile("(.*?)(/chat/completions|/completions|/responses|/embeddings)")
_ANTHROPIC = re.compile("(.*?)(/v1/messages)")
_GEMINI = re.compile(
    # Vertex AI has the project, the place and the vendor before the model; Claude is asked there, too.
    "(.*?)(/v1(?:beta1?|alpha)?/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/[^/]+/)?"
    "(?:models|tunedModels|endpoints)/[^/]+"
    ":(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents|rawPredict|streamRawPredict))"
)
_OLLAMA = re.compile("(.*?)(/api/(?:chat|generate|embed|embeddings))")
_BEDROCK = re.compile("(.*?)(/model/[^/]+/(?:converse|converse-stream|invoke|invoke-with-response-stream))")
_SERVERS = re.compile(
    r"api\.(?:openai|anthropic|groq|mistral|deepseek|fireworks|perplexity|cerebras|cohere|together|x)\.(?:com|ai|xyz)"
    r"|generativelanguage\.googleapis\.com|[\w-]*aiplatform\.googleapis\.com|[\w-]+\.openai\.azure\.com"
    r"|bedrock-runtime[\w-]*\.[\w-]+\.amazonaws\.com|openrouter\.ai"
)
"""The names of servers of models."""
_KNOWN = re.compile(
    r"api\.(?:openai|anthropic|groq)\.com|generativelanguage\.googleapis\.com|[\w-]+\.openai\.azure\.com"
    r"|bedrock-runtime[\w-]*\.[\w-]+\.amazonaws\.com"
)
"""Those of which each request to a model has a path that is known here."""
_left_alone: set[str] = set()
"""The servers that were asked something else, such as to take traces."""
_proxy = ""
"""The proxy of the call that is running: the address that is the run's own. "": there is none."""
of_request: ContextVar[str] = ContextVar("agenteval_proxy", default="")
"""The same of the request that a server answers."""
_added: set[str] = set()  # the libraries whose requests are seen


@contextlib.contextmanager
def by_way_of(proxy: str) -> Iterator[None]:
    """Send the requests to models that are made inside to the proxy at this address; "": to none."""
    global _proxy
    if not proxy:
        yield
        return
    begin(proxy)
    try:
        yield
    finally:
        _proxy = ""
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(_late)


def begin(proxy: str, network: dict[str, str] | None = None) -> Any:
    """Send the requests to models to the proxy at this address from now on. `network`: the proxies of the network when
    the program started. Gives the finder that sees libraries which are imported later."""
    global _proxy, _network_before
    if network is not None:
        _network_before = network
    add_hooks()
    if _late not in sys.meta_path:
        sys.meta_path.insert(0, _late)
    _proxy = proxy
    return _late


def add_hooks() -> None:
    """See the requests of the libraries that are imported by now. They stay as they are while there is no proxy."""
    for name in _HOOKS:
        if name in sys.modules:
            _add(name)


def see(name: str, hook: Callable[[Any], None]) -> None:
    """Call `hook` with the module of this name, now or when it is imported."""
    _HOOKS[name] = hook
    if name in sys.modules:
        _add(name)


def _add(name: str) -> None:
    if name not in _added:
        _added.add(name)
        with contextlib.suppress(Exception):  # a version of another shape: its requests are not seen
            _HOOKS[name](sys.modules[name])


class _Late:
    """Sees a library that is first imported while the agent runs."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> object:
        if name not in _HOOKS or name in _added:
            return None
        # The other finders say where the module is; ours only waits for the end of its import.
        others: list[Any] = [finder for finder in sys.meta_path if finder is not _late]
        for finder in others:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                with contextlib.suppress(AttributeError):  # a loader that can't be changed
                    self._see(name, spec.loader)
                return spec
        return None

    def _see(self, name: str, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _add(name)

        loader.exec_module = exec_module


_late: Any = _Late()


def asked_past(hosts: Iterable[str]) -> list[str]:
    """Those of the servers, whose addresses were looked up, that were asked for a model past the proxy. A request that
    goes to the proxy looks up nothing."""
    return sorted(host for host in hosts if _SERVERS.fullmatch(host) and host not in _left_alone)


def detour(method: str, url: str, body: object, is_anthropic: Callable[[], bool]) -> tuple[str, str] | None:
    """(The address of a request at the proxy, what is before that path at its server), where it is one to a model."""
    way = _detour(method, url, body, is_anthropic)
    if way is None and _address():
        host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
        if _KNOWN.fullmatch(host):
            _left_alone.add(host)
    return way


def _detour(method: str, url: str, body: object, is_anthropic: Callable[[], bool]) -> tuple[str, str] | None:
    # A body that is made while it is sent can't be sent twice, where the proxy doesn't reach the server.
    size = len(body) if isinstance(body, (bytes, str)) else 0
    proxy = _address()
    if not proxy or method.upper() != "POST" or not size or size > _MOST:
        return None
    scheme, slashes, rest = url.partition("://")
    if not slashes or scheme not in ("http", "https"):
        return None
    place, query = rest.partition("#")[0].partition("?")[::2]
    host, slash, path = place.partition("/")
    path = slash + path
    if host.rpartition("@")[2] == _own_host():
        return None  # it goes there by itself
    prefix, before = "", ""
    if (match := _GEMINI.fullmatch(path)) is not None:
        prefix = "gemini"
    elif (match := _OLLAMA.fullmatch(path)) is not None and _is_ollama(host.rpartition("@")[2]):
        prefix = "ollama"
    elif (match := _BEDROCK.fullmatch(path)) is not None:
        prefix = "bedrock"
    elif (match := _ANTHROPIC.fullmatch(path)) is not None:
        # Other services have a path of this name; only Anthropic's clients send their version.
        prefix = "anthropic" if is_anthropic() else ""
    elif (match := _OPENAI.fullmatch(path)) is not None and (
        # `/responses` and the like are common names: there a model must be named.
        match.group(2) == "/chat/completions" or _names_model(body)
    ):
        prefix = "openai/v1"
    if match is None or not prefix:
        return None
    before, rest = match.groups()
    # The proxy knows these servers by prefixes of their own, with the whole path.
    if prefix == "openai/v1" and ("/openai/deployments/" in path or host == "api.groq.com"):
        prefix, before, rest = "groq" if host == "api.groq.com" else "azure", "", path
    return proxy + "/" + prefix + rest + ("?" + query if query else ""), scheme + "://" + host + before


def _names_model(body: object) -> bool:
    return '"model"' in body if isinstance(body, str) else isinstance(body, bytes) and b'"model"' in body


def _is_ollama(host: str) -> bool:
    """Whether a server of this name is Ollama: many a server has a path `/api/chat`."""
    named = os.environ.get("OLLAMA_HOST", "").rpartition("://")[2].partition("/")[0]
    return host.endswith(":11434") or host == "ollama.com" or (bool(named) and host == named)


def _address() -> str:
    """The proxy by way of which requests go now; "": they go to their servers."""
    return of_request.get() or _proxy


def _own_host() -> str:
    return _address().partition("://")[2].partition("/")[0]


def _network() -> dict[str, str]:
    """The proxies of the network that the environment names, and the servers that are asked past them."""
    # AGENTEVAL_PROXY, of a command that is recorded, is none of the network's.
    return {
        name: value
        for name, value in os.environ.items()
        if value and name.lower().endswith("_proxy") and not name.startswith("AGENTEVAL_")
    }


def _names_proxy() -> bool:
    return any(name.lower() != "no_proxy" for name in _network())


_network_before = _network()


def begin_network() -> None:
    """The proxies of the network are what they are now, before any module of the user's could change them."""
    global _network_before
    _network_before = _network()


def _has_own_proxies(named: bool) -> bool:
    """Whether requests go through proxies of the network that agenteval's own would not: others than those of the
    environment. `named`: a client has one."""
    return _network() != _network_before or (named and not _names_proxy())


# httpx, and httpx2, which came from it


def _add_to_httpx(module: Any) -> None:
    sync, asynchronous = module.HTTPTransport, module.AsyncHTTPTransport
    send, send_async = sync.handle_request, asynchronous.handle_async_request
    ways: Any = weakref.WeakKeyDictionary()  # to the proxy, by the event loop; of all threads by the class

    def to_proxy(kind: Any) -> object:
        """A way of its own to the proxy: the client's may lead through a proxy of the network."""
        import asyncio
        import ssl  # the library has loaded both, and a process that asks no model need not

        # A connection belongs to the event loop in which it was opened.
        key = sync if kind is sync else asyncio._get_running_loop()
        way = None if key is None else ways.get(key)
        if way is None:
            # Plain HTTP needs no certificates, and loading them takes long.
            secure = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            limits = module.Limits(max_keepalive_connections=0 if key is None else None)
            way = kind(verify=secure, trust_env=False, limits=limits)
            if key is not None:
                ways[key] = way
        return way

    def led(transport: Any, request: Any) -> object:
        """The request as it goes to the proxy; None: it is left alone."""
        # Only a whole body can be sent a second time.
        if not _address() or not isinstance(request.stream, module.ByteStream):
            return None
        pool = transport._pool
        # A client that asks a Unix socket, or by a proxy of the network, would reach another server through us.
        if getattr(pool, "_uds", None) or _has_own_proxies("Proxy" in type(pool).__name__):
            return None
        way = detour(request.method, str(request.url), request.content, lambda: "anthropic-version" in request.headers)
        if way is None:
            return None
        headers = [pair for pair in request.headers.raw if pair[0].lower() != b"host"]
        headers = [(b"Host", _own_host().encode()), (SERVER.encode(), way[1].encode()), *headers]
        return module.Request(
            request.method, way[0], headers=headers, stream=request.stream, extensions=request.extensions
        )

    @functools.wraps(send)
    def handle_request(self: Any, request: Any) -> object:
        copy = led(self, request)
        if copy is None:
            return send(self, request)
        try:
            response = send(to_proxy(sync), copy)
        # The proxy has ended, as after the run: the request goes to its server, as it would without us.
        except module.ConnectError:
            return send(self, request)
        if UNREACHED in response.headers:
            response.close()
            return send(self, request)
        return response

    @functools.wraps(send_async)
    async def handle_async_request(self: Any, request: Any) -> object:
        copy = led(self, request)
        if copy is None:
            return await send_async(self, request)
        try:
            response = await send_async(to_proxy(asynchronous), copy)
        except module.ConnectError:
            return await send_async(self, request)
        if UNREACHED in response.headers:
            await response.aclose()
            return await send_async(self, request)
        return response

    sync.handle_request = handle_request
    asynchronous.handle_async_request = handle_async_request


# requests


def _add_to_requests(module: Any) -> None:
    adapter = module.adapters.HTTPAdapter
    send = adapter.send

    @functools.wraps(send)
    def sending(self: Any, request: Any, *arguments: Any, **named: Any) -> object:
        # A class of the user's, or a certificate of a client, may do what the proxy can't.
        plain = type(self) is adapter and not arguments and not named.get("cert")
        way = None
        if _address() and plain and not _has_own_proxies(bool(named.get("proxies"))):
            way = detour(request.method, request.url, request.body, lambda: "anthropic-version" in request.headers)
        if way is None:
            return send(self, request, *arguments, **named)
        copy = request.copy()
        copy.url = way[0]
        copy.headers.pop("Host", None)
        copy.headers[SERVER] = way[1]
        try:
            response = send(self, copy, **dict(named, proxies={}))
        except module.exceptions.ConnectionError as error:
            reason = getattr(error.args[0] if error.args else None, "reason", None)
            # Only where nothing was sent may it be sent again.
            if type(reason).__name__ != "NewConnectionError":
                raise
            return send(self, request, **named)
        if UNREACHED in response.headers:
            response.close()
            return send(self, request, **named)
        # Errors and redirects name the server that was meant.
        response.request, response.url = request, request.url
        return response

    adapter.send = sending


# botocore, on which boto3 stands


def _add_to_botocore(module: Any) -> None:
    session = module.URLLib3Session
    send = session.send

    @functools.wraps(send)
    def sending(self: Any, request: Any) -> object:
        way = None
        # A certificate of the client may do what the proxy can't.
        if _address() and not self._cert_file and not _network() and not self._proxy_config.proxy_url_for(request.url):
            way = detour(request.method, request.url, request.body, lambda: False)
        if way is None:
            return send(self, request)
        headers = type(request.headers)()
        for name, value in request.headers.items():
            if name.lower() != "host":
                headers[name] = value
        headers[SERVER] = way[1]
        copy = type(request)(request.method, way[0], headers, request.body, request.stream_output)
        try:
            response = send(self, copy)
        except module.EndpointConnectionError:
            return send(self, request)
        if UNREACHED in response.headers:
            response.raw.close()
            return send(self, request)
        response.url = request.url
        return response

    session.send = sending


# aiohttp


def _add_to_aiohttp(module: Any) -> None:
    session = module.ClientSession
    send = session._request

    @functools.wraps(send)
    async def sending(self: Any, method: str, str_or_url: Any, **named: Any) -> object:
        way, headers = None, module.client.CIMultiDict(named.get("headers") or ())
        url: Any = None
        body = "{}" if named.get("json") is not None else named.get("data")
        # A session goes past the proxies of the network, and agenteval's proxy would not.
        own_way = named.get("proxy") or getattr(self, "_default_proxy", None) or _names_proxy()
        if _address() and not own_way and not (named.get("json") is not None and named.get("data") is not None):
            url = self._build_url(str_or_url)
            # The session writes the JSON itself; that it names a model is taken as given.
            if named.get("json") is not None:
                body = '"model"'
            way = detour(method, str(url), body, lambda: "anthropic-version" in (*headers, *self.headers))
        # Parameters would be added to the address of the proxy.
        if way is None or named.get("params"):
            return await send(self, method, str_or_url, **named)
        headers.popall("Host", None)
        headers[SERVER] = way[1]
        try:
            response = await send(self, method, type(url)(way[0], encoded=True), **dict(named, headers=headers))
        except module.ClientConnectorError:
            return await send(self, method, str_or_url, **named)
        if UNREACHED in response.headers:
            response.close()
            return await send(self, method, str_or_url, **named)
        with contextlib.suppress(Exception):  # what an error would name
            response._url = response._real_url = url
            response._request_info = response._request_info._replace(url=url, real_url=url)
        return response

    session._request = sending


# urllib


def _add_to_urllib(module: Any) -> None:
    director = module.OpenerDirector
    open_url = director.open
    direct: list[Any] = []

    def is_plain(opener: Any) -> bool:
        return all(
            type(handler).__module__ == "urllib.request" and not isinstance(handler, module.HTTPCookieProcessor)
            for handler in opener.handlers
        )

    @functools.wraps(open_url)
    def opening(self: Any, fullurl: Any, data: Any = None, *arguments: Any, **named: Any) -> object:
        way = None
        if _address() and is_plain(self) and not _has_own_proxies(named=False) and not (direct and self is direct[0]):
            request = module.Request(fullurl, data) if isinstance(fullurl, str) else fullurl
            body = request.data if data is None else data
            way = detour(request.get_method(), request.full_url, body, lambda: request.has_header("Anthropic-version"))
        if way is None:
            return open_url(self, fullurl, data, *arguments, **named)
        if not direct:
            # An opener without proxies: the one of the environment would be asked for our own address.
            direct.append(module.build_opener(module.ProxyHandler({})))
        headers = dict(self.addheaders)
        headers.update(request.header_items(), **{SERVER: way[1]})
        headers.pop("Host", None)
        copy = module.Request(way[0], body, headers, method="POST")
        try:
            response = open_url(direct[0], copy, None, *arguments, **named)
        except module.HTTPError as error:
            if UNREACHED in error.headers:
                error.close()
                return open_url(self, fullurl, data, *arguments, **named)
            error.url = error.filename = request.full_url
            raise
        except module.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                return open_url(self, fullurl, data, *arguments, **named)
            raise
        response.url = request.full_url
        return response

    director.open = opening


_HOOKS: dict[str, Callable[[Any], None]] = {
    "httpx": _add_to_httpx,
    "httpx2": _add_to_httpx,
    "requests": _add_to_requests,
    "botocore.httpsession": _add_to_botocore,
    "aiohttp": _add_to_aiohttp,
    "urllib.request": _add_to_urllib,
}
