"""Python frameworks, and who reads their objects. Runs in the child: only the standard library, of Python 3.8 or later.

A reader is a module with a `Framework`. The entry points of `agenteval.frameworks` name it, under each package whose
objects it reads ("smolagents", "google.adk"). It is loaded when there is such an object.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from . import python_pieces as pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Protocol

    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Message, Note, Read, Run

    class PieceReader(Protocol):
        """Reads what a framework gives into a conversation."""

        def read(self, piece: Any) -> bool:
            """Whether this could be read."""
            ...


_IN_CHILD = __name__.startswith("_agenteval.")
if not _IN_CHILD:
    # There, this package need not be installed.
    from agenteval_tui.core import entry_points


class Maker(NamedTuple):
    """Names in a package whose call makes an agent, or something that the method `needs` makes an agent of."""

    package: str
    names: tuple[str, ...]
    needs: str = ""


class Framework(NamedTuple):
    """What a reader offers."""

    title: str
    """The framework, as its project calls itself."""
    runner: Callable[[Any, str], Run | None] = lambda agent, target: None
    """What runs an object that is named at a target; None for what is none of the framework's agents. Raises
    `WrongTarget` for an agent that can't be run as it is."""
    pieces: Callable[[Conversation, Read], PieceReader] = lambda conversation, read: _ReadsNothing()
    """Makes a reader of what an agent streams or returns. There is one for each call of an agent."""
    makers: tuple[Maker, ...] = ()
    """How its agents are written, for whoever reads the project's code without running it."""
    result_of: Callable[[Any], object] = lambda last: last
    """What came out, in what an agent gave last: for the option `output`."""
    whole_of: Callable[[Any, bool], str] = lambda piece, streamed: ""
    """What to give instead of an answer that doesn't tell the calls before it; "" for all else. `streamed`: the answer
    is one of several pieces."""
    messages_of: Callable[[Any, Note], list[Message] | None] = lambda piece, note: None
    """The messages in an object that is an entry of a list of messages; None for what is none."""
    kept_by: Callable[[Any], list[object]] = lambda value: []
    """What an object keeps of what was done, as pieces: for an agent that raised."""
    script: Callable[[str, str], Run] | None = None
    """What runs a whole file, named at a target, that imports the framework; None where that is no way to run it."""


class _ReadsNothing:
    def read(self, piece: Any) -> bool:
        return False


FILES: dict[str, tuple[str, str]] = {}
"""In the child: by package, the file of its reader, and the name of the `Framework` in it."""
_known: dict[str, Framework | None] = {}
"""By the name of a package, or of a reader: some readers give objects of their own classes."""


def of(value: object) -> Framework | None:
    """The framework that knows this object; None where there is none. Raises `WrongTarget` where its reader is broken.

    It is known by the modules of its class, and of what made its class: CrewAI makes classes of the project's own.
    """
    for cls in (*type(value).__mro__, *type(type(value)).__mro__):
        # "google.adk.agents" belongs to the reader of "google.adk", "smolagents.models" to that of "smolagents".
        package, _, rest = cls.__module__.partition(".")
        for name in (cls.__module__, package, package + "." + rest.partition(".")[0]):
            if name not in _known:
                _known[name] = _of_package(name)
            framework = _known[name]
            if framework is not None:
                return framework
    return None


def of_script(packages: Iterable[str]) -> Framework | None:
    """The framework that runs a file which imports these packages; None where there is none. Raises as `of`."""
    for name in packages:
        if name not in _known:
            _known[name] = _of_package(name)
        framework = _known[name]
        if framework is not None and framework.script is not None:
            return framework
    return None


def without_name(target: str) -> str:
    """What is wrong with a target that is a whole file which no framework runs."""
    return target + " is a whole file, and no framework runs it; name a function or an agent in it: " + target + ":NAME"


def _of_package(name: str) -> Framework | None:
    # In our own process entry points say where the reader is; the child may be a Python without agenteval, and is told.
    if not _IN_CHILD:
        entry = entry_points.find(entry_points.FRAMEWORKS, name)
        if entry is None:
            return None
        framework: Framework = entry.load_as("reader of objects of")
        reader = entry.module
    elif name in FILES:
        file, attribute = FILES[name]
        reader = "_agenteval_" + file
        try:
            framework = getattr(_loaded(reader, file), attribute)
        except Exception as error:  # half of an extension, or one of somebody else
            problem = "the reader of objects of " + name + " can't be loaded: " + type(error).__name__ + ": "
            reason = getattr(error, "strerror", None) or str(error)
            raise pieces.WrongTarget(problem + reason + " (" + file + "); install its package again") from error
    else:
        return None
    # Also by the reader's own module: it gives objects of classes that are defined there.
    _known[reader] = framework
    return framework


def _loaded(name: str, file: str) -> ModuleType:
    if name not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]
