"""The one trust check: what may start programs, run code or send the user's keys, and who permitted it.

Whatever makes an agent, a judge, an embedder, a tool or one of the user's functions runnable needs a `Permission`, and
`permission_for` is the only place that hands one out. A permission knows what was asked about; what was not is refused
where it is made, so that a forgotten question is an error and never a leak. What is asked about is said in words, for
a person who shall trust it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.key_destinations import sends_headers, sends_keys
from agenteval_tui.core import directories
from agenteval_tui.core.entry_points import is_local_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.callable_name import parse_callable
from agenteval_tui.suites.tool_files import declared_tools
from agenteval_tui.suites.trust import Sending, Trust, allows_everything, repository_of

_MOST_LISTED = 5  # of one repository, in a sentence


class TrustRequirement(Struct, frozen=True):
    """A repository, and in words what would be started, read or sent because of files in it. `sends`: the secrets among
    that, each of which is agreed by itself. `trusted`: the repository is trusted, and only they are the question."""

    folder: Path
    what: tuple[str, ...]
    sends: tuple[Sending, ...] = ()
    trusted: bool = False


class NotTrustedError(AgentevalError):
    """Something would act because of repositories that the user does not trust, or would send a secret where that was
    not agreed: `needs` are those."""

    def __init__(self, needs: tuple[TrustRequirement, ...], reason: str, option: str = "--trust") -> None:
        first = needs[0]
        listed = "; ".join(first.what[:_MOST_LISTED])
        more = f"; and {len(first.what) - _MOST_LISTED} more" if len(first.what) > _MOST_LISTED else ""
        others = f" (and so would {count(len(needs) - 1, 'more repository')})" if len(needs) > 1 else ""
        once = f", and {option} allows it once" if option else ""
        super().__init__(
            f"this needs your trust: {listed}{more}{others}; {reason}",
            where=str(first.folder),
            fix=f"look at what is there; then `agenteval trust PATH` trusts it for good{once}",
        )
        self.needs = needs
        self._reason = reason

    def allowed_by(self, option: str) -> NotTrustedError:
        """The same where another option allows it once; "" for none."""
        return NotTrustedError(self.needs, self._reason, option)


@contextmanager
def allowed_once_by(option: str) -> Iterator[None]:
    """What needs trust inside says that this option allows it once; "": nothing does."""
    try:
        yield
    except NotTrustedError as error:
        raise error.allowed_by(option) from None


class _Key:
    """Private to this module: no other code can make a permission."""


_KEY: Final = _Key()


class Permission:
    """What may be used: repositories that are trusted, secrets that may go somewhere, an agent that was asked about, or
    everything for this time.

    `permission_for` makes it.
    """

    __slots__ = ("_everything", "_folders", "_foreign", "_granted", "_sends")

    def __init__(
        self,
        key: _Key,
        *,
        everything: bool = False,
        folders: frozenset[Path] = frozenset(),
        sends: frozenset[Sending] = frozenset(),
        granted: frozenset[str] = frozenset(),
        foreign: bool = False,
    ) -> None:
        if key is not _KEY:
            raise TypeError("a permission comes from `permission_for`")
        self._everything = everything
        self._folders = folders
        self._sends = sends
        self._granted = granted
        self._foreign = foreign

    @property
    def trusted(self) -> bool:
        """Whether files and folders outside of the suite's may be used, by agents that it covers."""
        return self._everything or bool(self._folders) or bool(self._granted)

    def require_agent(self, config: Mapping[str, Any], base_dir: Path, env: Mapping[str, str] | None = None) -> None:
        """Raises `NotTrustedError` where an agent of this configuration (as it is written) may not be made."""
        if self._everything or agent_hash(config, base_dir) in self._granted:
            return
        for need in merge_needs(uses_of_agent(base_dir, config, base_dir, env=env), foreign=self._foreign):
            new = tuple(sending for sending in need.sends if sending not in self._sends)
            if not self._covers(need.folder):
                raise NotTrustedError((need,), "it was not asked about")
            if new:
                raise NotTrustedError((_only_sending(need, new),), "it was not asked about")

    def require_code(self, folder: Path, what: str) -> None:
        """Raises `NotTrustedError` where code of this folder may not run. `what` says in words what would be run."""
        if self._everything or self._covers(folder):
            return
        if self._foreign or not is_bundled(folder.resolve()):
            raise NotTrustedError((TrustRequirement(folder, (what,)),), "it was not asked about")

    def require_start(self, argv: Sequence[str]) -> None:
        """Before each start of a program. Raises `NotTrustedError` when no program was permitted."""
        if not self.trusted:
            raise NotTrustedError((TrustRequirement(Path.cwd(), (f"command: {argv[0]}",)),), "it was not asked about")

    def to_json(self) -> dict[str, Any]:
        """For a worker of a cluster that this execution was given: what may be used there."""
        return {
            "everything": self._everything,
            "folders": sorted(str(folder) for folder in self._folders),
            "sends": sorted((sending.name, sending.address) for sending in self._sends),
            "granted": sorted(self._granted),
            "foreign": self._foreign,
        }

    def _covers(self, folder: Path) -> bool:
        # On a worker the folder may lie in no repository: there it is known by itself.
        return folder.resolve() in self._folders or repository_of(folder) in self._folders


NOTHING: Final[Permission] = Permission(_KEY)
"""Only what needs no trust may be used."""


class Use(Struct, frozen=True):
    """Something that is about to be used: whose word it is, and what it would do, in words. With nothing in `what` it
    is the user's own, and needs no question. `sends`: the secrets among that. `agent` is its `agent_hash`, "" for a
    function or a file."""

    folder: Path
    what: tuple[str, ...]
    sends: tuple[Sending, ...] = ()
    agent: str = ""


def permission_for(
    uses: Iterable[Use], *, everything: bool = False, foreign: bool = False, trust: Trust | None = None
) -> Permission:
    """The permission for these uses. Raises `NotTrustedError` for repositories that are not trusted, and for secrets
    that were not agreed to go where they would go. `everything`: the user allowed all for this time (`--trust`, or once
    in the app). `foreign`: what says this came with another history, so that no repository's trust speaks for it, and
    neither do the bundled suites. `trust`: by default the user's.
    """
    uses = tuple(uses)
    needs = merge_needs(uses, foreign=foreign)
    everything = everything or allows_everything()
    if needs and not everything:
        if foreign:
            raise NotTrustedError(needs, "the execution came with another history, and no folder here says this")
        refused = untrusted_needs(needs, trust)
        if refused:
            raise NotTrustedError(tuple(need for need, _ in refused), refused[0][1])
    return Permission(
        _KEY,
        everything=everything,
        folders=frozenset(
            (*(need.folder.resolve() for need in needs), *(use.folder.resolve() for use in uses if use.what))
        ),
        sends=frozenset(sending for need in needs for sending in need.sends),
        granted=frozenset(use.agent for use in uses if use.agent),
        foreign=foreign,
    )


def permission_from_json(data: Mapping[str, Any]) -> Permission:
    """On a worker: the permission that the execution sent (`Permission.to_json`). Raises KeyError or TypeError."""
    return Permission(
        _KEY,
        everything=bool(data["everything"]),
        folders=frozenset(Path(folder) for folder in data["folders"]),
        sends=frozenset(Sending(str(name), str(address)) for name, address in data["sends"]),
        granted=frozenset(str(agent) for agent in data["granted"]),
        foreign=bool(data["foreign"]),
    )


def merge_needs(uses: Iterable[Use], *, foreign: bool = False) -> tuple[TrustRequirement, ...]:
    """What must be trusted, a repository once. What ships with the program needs no trust, unless it is `foreign`."""
    merged: dict[Path, tuple[dict[str, None], dict[Sending, None]]] = {}
    for use in uses:
        if use.what and (foreign or not is_bundled(use.folder.resolve())):
            what, sends = merged.setdefault(repository_of(use.folder), ({}, {}))
            what.update(dict.fromkeys(use.what))
            sends.update(dict.fromkeys(use.sends))
    return tuple(TrustRequirement(folder, tuple(what), tuple(sends)) for folder, (what, sends) in merged.items())


def untrusted_needs(
    needs: Sequence[TrustRequirement], trust: Trust | None = None
) -> list[tuple[TrustRequirement, str]]:
    """The needs that are a question, each with the reason in a sentence: all of a repository that is not trusted; of
    one that is, the secrets that would go where that was not agreed. `trust`: by default the user's."""
    if not needs:
        return []
    if trust is None:
        trust = Trust.load()
    refused = []
    for need in needs:
        reason = trust.why_not(need.folder, need.sends)
        if reason and trust.is_trusted(need.folder):
            need = _only_sending(need, trust.new_sends(need.folder, need.sends))
        if reason:
            refused.append((need, reason))
    return refused


def _only_sending(need: TrustRequirement, sends: tuple[Sending, ...]) -> TrustRequirement:
    return replace(need, what=tuple(map(str, sends)), sends=sends, trusted=True)


def needs_of_agent(config: Mapping[str, Any], base_dir: Path) -> tuple[str, ...]:
    """In words, what an agent of a suite could do that needs trust: run programs, read other folders, send keys.

    `config` is as it is written. () for what needs none.
    """
    return tuple(dict.fromkeys(what for use in uses_of_agent(base_dir, config, base_dir) for what in use.what))


def uses_of_agent(
    folder: Path,
    config: Mapping[str, Any],
    base_dir: Path,
    *,
    own: bool = False,
    env: Mapping[str, str] | None = None,
) -> Iterator[Use]:
    """The uses of an agent on the word of `folder`, the first one with its hash; the others are of code that lies
    elsewhere. `own`: the user wrote all of it. `env`: the environment (None: this process')."""
    if own:
        yield Use(folder, (), (), agent_hash(config, base_dir))
        return
    sends = sends_keys(config, base_dir, env)
    words = (*executes(config, base_dir, {}), *_files(config, base_dir), *map(str, sends))
    what = (*words, *sends_headers(config, base_dir, env))
    if not what:
        yield Use(folder, ())
        return
    yield Use(folder, what, sends, agent_hash(config, base_dir))
    if config.get("kind") == "python":
        yield from uses_of_code(folder, str(config.get("callable", "")), "python agent", base_dir, config.get("path"))
    for tool in declared_tools(config, base_dir):
        if "python" in tool:
            yield from uses_of_code(folder, str(tool["python"]), "python tool", base_dir, tool.get("path"))


def uses_of_code(folder: Path, target: str, kind: str, base_dir: Path, path: object = ()) -> Iterator[Use]:
    """The use of a function or object, `package.module:name` or `file.py:name`, by each repository that its code lies
    in, but that of `folder`: a submodule, say, or the repository beside this one. `path`: more folders with modules."""
    try:
        name = parse_callable(target)
    except ValueError:
        return
    places = [base_dir, *(base_dir / str(entry) for entry in (path if isinstance(path, list | tuple) else ()))]
    parts = name.module.split(".")
    home, visited = repository_of(folder), set[Path]()
    for place in places:
        files = [place / name.file]
        if not name.file:
            bases = [place.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
            files = [file for base in bases for file in (base / "__init__.py", base.with_name(base.name + ".py"))]
        for file in files:
            try:
                root = repository_of(file.resolve().parent) if file.is_file() else home
            except (OSError, RuntimeError, ValueError):
                continue
            # Installed packages are nobody's repository.
            if root not in (home, *visited) and not _is_installed(file):
                visited.add(root)
                yield Use(root, (f"{kind} {target}",))


def _is_installed(file: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(file.resolve().parts)


def agent_hash(config: Mapping[str, Any], base_dir: Path) -> str:
    """What an agent is to a permission."""
    return content_hash([dict(config), str(base_dir)])


def is_bundled(folder: Path) -> bool:
    """Whether the folder ships with the program."""
    return folder.is_relative_to(directories.bundled("sample_suites").resolve())


def leads_outside(path: str, folder: Path) -> bool:
    """Whether a path of a suite leads out of its folder."""
    try:
        return not (folder / Path(path).expanduser()).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return True


def _files(config: Mapping[str, Any], base_dir: Path) -> list[str]:
    """Files outside of the agent's folder that would be read: recordings, tools."""
    uses = []
    for key, what in (("file", "recordings"), ("tools", "tools"), ("cassette", "recordings")):
        file = config.get(key)
        if key == "cassette" and isinstance(file, Mapping):
            file = file.get("file")
        if not isinstance(file, str) or file.startswith("builtin:"):
            continue
        if key == "file" and config.get("kind") != "replay":
            continue
        if "${" in file or leads_outside(file, base_dir):
            uses.append(f"reads {what} from {file}")
    return uses


def executes(config: Mapping[str, Any], base_dir: Path, context: Mapping[str, Any]) -> tuple[str, ...]:
    """Each program that a run of this agent may start, once; empty when it starts none.

    `config` is an agent's configuration (kind and options, a variation's merged in), `context` the test's testing
    context. Give it before `${VAR}` is expanded: then it contains no secret. A file of tools is read from `base_dir`,
    or from where it really is when it lies outside; nothing is started, and nothing is raised: what can't be read can't
    be started either, since no agent can be built from it.
    """
    lines = [
        *_services_words(config),
        *_agent_words(config),
        *_tools_words(config, base_dir),
        *_sample_tools_words(context),
    ]
    return tuple(dict.fromkeys(lines))


def program_words(command: Any) -> str:
    """A command as a person would type it."""
    if isinstance(command, list | tuple):
        return shlex.join(str(part) for part in command)
    return str(command)


def _agent_words(config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("kind") == "command":
        shell = " (by a shell)" if config.get("shell") else ""
        yield f"command: {program_words(config.get('command', ''))}{shell}"
    if config.get("kind") == "python":
        yield f"python agent {config.get('callable', '')}{_interpreter(config, 'python')}"


def _services_words(config: Mapping[str, Any]) -> Iterator[str]:
    services = config.get("services")
    for name, service in services.items() if isinstance(services, Mapping) else ():
        if isinstance(service, Mapping):
            shell = " (by a shell)" if service.get("shell") else ""
            yield f"service {name}: {program_words(service.get('command', ''))}{shell}"


def _tools_words(config: Mapping[str, Any], base_dir: Path) -> Iterator[str]:
    tools = config.get("tools")
    # Programs and functions bring their own tools: what they call is part of what they do.
    if is_local_agent(config.get("kind")):
        return
    # Which file that is depends on the environment of the run, and so nothing in it can be named here.
    if isinstance(tools, str) and "${" in tools:
        yield f"all tools that the file {tools} declares"
    for entry in declared_tools(config, base_dir):
        yield from _tool_words(entry)


def _sample_tools_words(context: Mapping[str, Any]) -> Iterator[str]:
    sample = context.get("sample_tools")
    if isinstance(sample, Mapping):
        sample = [{**tool, "name": str(name)} for name, tool in sample.items() if isinstance(tool, Mapping)]
    for entry in sample if isinstance(sample, list | tuple) else ():
        inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
        if isinstance(inner, Mapping):
            yield from _tool_words(inner)


def _tool_words(entry: Mapping[str, Any]) -> Iterator[str]:
    if "python" in entry:
        yield f"python tool {entry['python']}{_interpreter(entry, 'interpreter')}"
    if "command" in entry:
        shell = " (by a shell)" if entry.get("shell") else ""
        yield f"tool {entry.get('name', '')}: {program_words(entry['command'])}{shell}"
    server = entry.get("mcp")
    if isinstance(server, Mapping) and "command" in server:
        yield f"MCP server {program_words(server['command'])}"


def _interpreter(config: Mapping[str, Any], option: str) -> str:
    return f" (with {config[option]})" if config.get(option) else ""
