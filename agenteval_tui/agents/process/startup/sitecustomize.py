"""Leads the requests to models of a Python program to agenteval's proxy, as those of a Python agent are; and says where
the program is when its time is over.

This folder is the first of PYTHONPATH where a command is recorded, so each Python that the command starts runs this
file before the program. Until the program imports an HTTP client, nothing more is loaded. Only the standard library;
whatever fails here, the program starts. In a server, each request that it takes says where those to models go.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_HERE = __file__.rpartition(os.sep)[0]
_SIGQUIT = 3  # `signal` would load `enum` in each program
_CLIENTS = ("httpx", "httpx2", "requests", "aiohttp", "urllib.request", "botocore.httpsession")


class _FirstClient:
    """Sees the first import of an HTTP client."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy
        # Now, because the program may name another proxy of the network before it imports a client.
        self._network = _network()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _CLIENTS:
            return None
        sys.meta_path.remove(self)
        try:
            found: ModuleSpec | None = _lead_to(self._proxy, self._network).find_spec(name, path, target)
        except Exception:  # its requests are not seen, which its run says
            return None
        return found


def _network() -> dict[str, str]:
    """As in `python_http_clients`, which is not loaded yet."""
    return {
        name: value
        for name, value in os.environ.items()
        if value and name.lower().endswith("_proxy") and not name.startswith("AGENTEVAL_")
    }


def _lead_to(proxy: str, network: dict[str, str]) -> Any:
    """Send the requests of HTTP clients to the proxy; gives the finder that sees those that are imported."""
    return _load("http_clients").begin(proxy, network)


def _serve(token: str) -> None:
    """Send the requests to models that follow from a request of agenteval's to the proxy that it names."""
    try:
        clients = _load("http_clients")
        clients.begin("", _network())
        _load("server_requests").begin(token, clients)
    except Exception:  # its requests are not seen
        return


def _load(name: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    path = _HERE.rpartition(os.sep)[0] + os.sep + "python_" + name + ".py"
    spec: Any = spec_from_file_location("_agenteval_" + name, path)
    module: ModuleType = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tell_place() -> None:
    """From now on, SIGQUIT is answered with the stack: who waits in vain for the program asks where it is."""
    import faulthandler

    # Windows has no such signal. In a terminal, it is Ctrl+\\, and ends the program.
    if hasattr(faulthandler, "register") and not os.isatty(2):
        faulthandler.register(_SIGQUIT, 2, all_threads=False)


def _import_the_next() -> None:
    """The `sitecustomize` that the program would have had without this one."""
    own = sys.modules.pop("sitecustomize")
    sys.path[:] = [folder for folder in sys.path if folder != _HERE]
    try:
        __import__("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # Whoever imported this file expects a module of this name.
        sys.modules.setdefault("sitecustomize", own)


if __name__ == "sitecustomize":
    if "AGENTEVAL_PROXY" in os.environ:
        if "AGENTEVAL_HIDDEN" in os.environ:
            _load("hidden_variables").hide()
        first: Any = _FirstClient(os.environ["AGENTEVAL_PROXY"])
        sys.meta_path.insert(0, first)
        for name in _CLIENTS:
            if name in sys.modules:  # a file of site-packages has imported it
                first.find_spec(name)
                break
        _tell_place()
    elif "AGENTEVAL_SERVER" in os.environ:
        _serve(os.environ["AGENTEVAL_SERVER"])
    _import_the_next()
