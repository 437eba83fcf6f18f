"""The one trust check: what may start programs, run code or send the user's keys, and who permitted it.

Whatever makes an agent, a judge, an embedder, a tool or one of the user's functions runnable needs a `Permission`, and
`permission_for` is the only place that hands one out. A permission knows what was asked about; what was not is refused
where it is made, so that a forgotten question is an error and never a leak.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from agenteval_tui.agents.key_destinations import sends_keys
from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.agents.process.trust_description import executes
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.suites.trust import Trust
from agenteval_tui.suites.watched_files import WatchedFiles, code_of

_SAID = 5  # of one folder, in a sentence
_LOOK_S = 1.0  # how often all code of a folder is looked at while an execution runs; what commands name, always


class TrustRequirement(Struct, frozen=True):
    """A folder, in words what would be started, read or sent because of files in it, and the files that its commands
    name, wherever they lie."""

    folder: Path
    what: tuple[str, ...]
    files: tuple[Path, ...] = ()


class NotTrustedError(AgentevalError):
    """Something would act or send because of folders that the user does not trust (any more): `needs` are those."""

    def __init__(self, needs: tuple[TrustRequirement, ...], reason: str) -> None:
        first = needs[0]
        listed = "; ".join(first.what[:_SAID])
        more = f"; and {len(first.what) - _SAID} more" if len(first.what) > _SAID else ""
        others = f" (and so would {len(needs) - 1} more folders)" if len(needs) > 1 else ""
        super().__init__(
            f"this needs your trust: {listed}{more}{others}; {reason}",
            where=str(first.folder),
            mend="look at what is in the folder, then give --trust, or agree when the app asks",
        )
        self.needs = needs


class _Key:
    """Private to this module: no other code can make a permission."""


_KEY: Final = _Key()


class Permission:
    """What may be used: a folder that is trusted, an agent that was asked about, or everything for this time.

    `permission_for` makes it.
    """

    __slots__ = ("_everything", "_folders", "_foreign", "_granted", "_looked", "_watched")

    def __init__(
        self,
        key: _Key,
        *,
        everything: bool = False,
        folders: frozenset[Path] = frozenset(),
        granted: frozenset[str] = frozenset(),
        foreign: bool = False,
        watched: WatchedFiles | None = None,
    ) -> None:
        if key is not _KEY:
            raise TypeError("a permission comes from `permission_for`")
        self._everything = everything
        self._folders = folders
        self._granted = granted
        self._foreign = foreign
        self._watched = watched or WatchedFiles()
        self._looked = time.monotonic()

    @property
    def trusted(self) -> bool:
        """Whether files and folders outside of the suite's may be used, by agents that it covers."""
        return self._everything or bool(self._folders) or bool(self._granted)

    def require_agent(self, config: Mapping[str, Any], base_dir: Path, env: Mapping[str, str] | None = None) -> None:
        """Raises `NotTrustedError` where an agent of this configuration (as it is written) may not be made."""
        if self._everything or agent_hash(config, base_dir) in self._granted:
            return
        folder = base_dir.resolve()
        if folder in self._folders or (not self._foreign and is_bundled(folder)):
            return
        what = needs_of_agent(config, base_dir, env)
        if what:
            raise NotTrustedError((TrustRequirement(folder, what),), "it was not asked about")

    def require_code(self, folder: Path, what: str) -> None:
        """Raises `NotTrustedError` where code of this folder may not run. `what` says in words what would be run."""
        if self._everything or folder.resolve() in self._folders:
            return
        if self._foreign or not is_bundled(folder.resolve()):
            raise NotTrustedError((TrustRequirement(folder, (what,)),), "this folder was not trusted")

    def require_start(self, argv: Sequence[str]) -> None:
        """Before each start of a program. Raises `NotTrustedError` when no program was permitted, `AgentevalError`
        where a program has changed since it was permitted."""
        if not (self._everything or self._folders or self._granted):
            raise NotTrustedError((TrustRequirement(Path.cwd(), (f"command: {argv[0]}",)),), "it was not asked about")
        now = time.monotonic()
        whole = now - self._looked >= _LOOK_S
        if whole:
            self._looked = now
        changed = self._watched.changed(whole=whole)
        if changed:
            raise AgentevalError(
                f"a program has changed since it was allowed to run: {changed}",
                mend="look at what changed it, then run again",
            )

    def to_json(self) -> dict[str, Any]:
        """For a worker of a cluster that this execution was given: what may be used there."""
        return {
            "everything": self._everything,
            "folders": sorted(str(folder) for folder in self._folders),
            "granted": sorted(self._granted),
            "foreign": self._foreign,
        }


NOTHING: Final[Permission] = Permission(_KEY)
"""Only what needs no trust may be used."""


class Use(Struct, frozen=True):
    """Something that is about to be used: whose word it is, and what it would do. `agent` is its `agent_hash`, "" for
    a function or a file. With nothing in `what` it is the user's own, and needs no question. `files` are those that its
    commands name; those that are only `written` may change from one start to the next."""

    folder: Path
    what: tuple[str, ...]
    files: tuple[Path, ...] = ()
    agent: str = ""
    written: frozenset[Path] = frozenset()


def permission_for(
    uses: Iterable[Use], *, everything: bool = False, foreign: bool = False, trust: Trust | None = None
) -> Permission:
    """The permission for these uses. Raises `NotTrustedError` for folders whose present content is not trusted.
    `everything`: the user allowed all for this time (`--trust`, or yes in the app). `foreign`: what says this came with
    another history, so that no folder's trust speaks for it, and neither do the bundled suites. `trust`: by default the
    user's.
    """
    uses = tuple(uses)
    needs = merge_needs(uses, foreign=foreign)
    watched = {file for use in uses for file in use.files if file not in use.written}
    if needs and not everything:
        if foreign:
            raise NotTrustedError(needs, "the execution came with another history, and no folder here says this")
        refused = untrusted_needs(needs, trust)
        if refused:
            raise NotTrustedError(tuple(need for need, _ in refused), refused[0][1])
    return Permission(
        _KEY,
        everything=everything,
        folders=frozenset(need.folder.resolve() for need in needs),
        granted=frozenset(use.agent for use in uses if use.agent),
        foreign=foreign,
        watched=WatchedFiles.of(
            named=[file for need in needs for file in need.files if file in watched],
            code=[
                file for folder in dict.fromkeys(need.folder.resolve() for need in needs) for file in code_of(folder)
            ],
        ),
    )


def permission_from_json(data: Mapping[str, Any]) -> Permission:
    """On a worker: the permission that the execution sent (`Permission.to_json`). Raises KeyError or TypeError."""
    return Permission(
        _KEY,
        everything=bool(data["everything"]),
        folders=frozenset(Path(one) for one in data["folders"]),
        granted=frozenset(str(one) for one in data["granted"]),
        foreign=bool(data["foreign"]),
    )


def merge_needs(uses: Iterable[Use], *, foreign: bool = False) -> tuple[TrustRequirement, ...]:
    """What must be trusted, a folder once. What ships with the program needs no trust, unless it is `foreign`."""
    found: dict[Path, tuple[dict[str, None], dict[Path, None]]] = {}
    for use in uses:
        if use.what and (foreign or not is_bundled(use.folder.resolve())):
            what, files = found.setdefault(use.folder, ({}, {}))
            what.update(dict.fromkeys(use.what))
            files.update(dict.fromkeys(use.files))
    return tuple(TrustRequirement(folder, tuple(what), tuple(files)) for folder, (what, files) in found.items())


def untrusted_needs(
    needs: Sequence[TrustRequirement], trust: Trust | None = None
) -> list[tuple[TrustRequirement, str]]:
    """The needs whose folder is not trusted, each with the reason in a sentence. `trust`: by default the user's."""
    if not needs:
        return []
    if trust is None:
        trust = Trust.load()
    return [(need, reason) for need in needs if (reason := trust.why_not(need.folder, need.files))]


def needs_of_agent(config: Mapping[str, Any], base_dir: Path, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """In words, what an agent of a suite could do that needs trust: run programs, read other folders, send keys.

    `config` is as it is written, `env` the environment (None: this process'). () for what needs none.
    """
    return (*executes(config, base_dir, {}), *_files(config, base_dir), *sends_keys(config, base_dir, env))


def use_of_agent(folder: Path, config: Mapping[str, Any], base_dir: Path, *, own: bool = False) -> Use:
    """The use of an agent on the word of `folder`. `own`: the user wrote all of it."""
    if own:
        return Use(folder, (), (), agent_hash(config, base_dir))
    what = needs_of_agent(config, base_dir)
    if not what:
        return Use(folder, ())
    named = files_of_agent(config, base_dir)
    return Use(folder, what, named.files, agent_hash(config, base_dir), named.written)


def agent_hash(config: Mapping[str, Any], base_dir: Path) -> str:
    """What an agent is to a permission."""
    return content_hash([dict(config), str(base_dir)])


def is_bundled(folder: Path) -> bool:
    """Whether the folder ships with the program."""
    return folder.is_relative_to(directories.bundled("sample_suites").resolve())


def leads_outside(given: str, folder: Path) -> bool:
    """Whether a path of a suite leads out of its folder."""
    try:
        return not (folder / Path(given).expanduser()).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return True


def _files(config: Mapping[str, Any], base_dir: Path) -> list[str]:
    """Files outside of the agent's folder that would be read: recordings, tools."""
    found = []
    for key, what in (("file", "recordings"), ("tools", "tools"), ("cassette", "recordings")):
        given = config.get(key)
        if key == "cassette" and isinstance(given, Mapping):
            given = given.get("file")
        if not isinstance(given, str) or given.startswith("builtin:"):
            continue
        if key == "file" and config.get("kind") != "replay":
            continue
        if "${" in given or leads_outside(given, base_dir):
            found.append(f"reads {what} from {given}")
    return found
