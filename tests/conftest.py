"""Every test gets folders of its own: no user configuration, no history, no runtime files from outside."""

from __future__ import annotations

import gc
import itertools
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import forked_python
import prestarted
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, is_hypothesis_test, settings

from agenteval_tui.agents.process import child_process
from agenteval_tui.history import connections, open_database
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.store import Store
from tests.sweeps import SEED, SLOW_S, TIMES, Durations, deselect

# What is collected stays: nothing of it is looked through before all of it is there (`pytest_collection_finish`). The
# process that hands out the tests keeps every report, and comes to no such end.
gc.disable()

# A busy machine is no reason to fail: speed is measured in benchmarks/.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


# Of the examples that a property names (or hypothesis's hundred) a run tries a share (tests/sweeps.py), the next run
# others. `EXAMPLES_TIMES=40 pytest tests/grading/test_never_raises.py` tries forty times as many.
FEWEST = 20
DOZEN = 12


def set_examples(items: list[pytest.Item]) -> None:
    """Each property is tried with `TIMES` its examples, though with `FEWEST` if it names as many; and where these are
    more than it names, without a time limit."""
    for test in {inner for item in items if (inner := getattr(item, "obj", None)) and is_hypothesis_test(inner)}:
        own = getattr(test, "_hypothesis_internal_use_settings", None) or settings.default
        examples = max(round(own.max_examples * TIMES), min(own.max_examples, FEWEST))
        test._hypothesis_internal_use_settings = settings(own, max_examples=examples)
    if TIMES > 1:
        for item in items:
            item.add_marker(pytest.mark.timeout(0))


def by_the_dozen(items: list[pytest.Item]) -> None:
    """Small tests of a file go to a worker by the dozen: each alone would have to be asked for, and what a file's tests
    share would be made in every worker."""
    seen: Counter[Path] = Counter()
    for item in items:
        name = f"{item.path.parent.name}.{item.path.stem}.{seen[item.path] // DOZEN}"
        seen[item.path] += 1
        item.add_marker(pytest.mark.xdist_group(name))


LONGEST = ("screens", "snapshots", "sheets")
"""Groups of tests (`xdist_group`) that take a worker half a minute or more: the first of all."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first: several workers end together, and none has the longest way before it at the end.

    All else is mixed, a file at a time and always in the same way: tests of one folder often wait for the same
    (processes, terminals, servers), and where all workers wait at once, the processors have nothing to do.
    """
    deselect(config, items)
    if TIMES != 1:
        set_examples(items)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return

    def turn(item: pytest.Item) -> tuple[int, int]:
        group = item.get_closest_marker("xdist_group")
        if group is not None and group.args[0] in LONGEST:
            return LONGEST.index(group.args[0]), 0
        of_the_group = str(item.path.relative_to(item.config.rootpath)) if group is None else group.args[0]
        return len(LONGEST), zlib.crc32(of_the_group.encode())

    items.sort(key=turn)
    by_the_dozen([item for item in items if is_brief(item)])


def is_brief(item: pytest.Item) -> bool:
    return item.get_closest_marker("xdist_group") is None and item.path.parent.name not in ("tui", "e2e")


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays: to look through it again and again costs a tenth of the time. What of
    it does not stay is little: to look for that, once, costs each worker half a second."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


PRESTARTED = ExitStack()


MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 4 * 1024**3
"""Bytes: twice of what all tests write."""


def has_memory() -> bool:
    """Whether this machine has a folder in memory with room for what tests write, and as much again beside it."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < MEMORY_NEEDED:
        return False
    with open("/proc/meminfo") as file:
        sizes_kb = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in file)}
    return sizes_kb.get("MemAvailable", 0) * 1024 > 2 * MEMORY_NEEDED


def pytest_configure(config: pytest.Config) -> None:
    """One for all workers. Their own summaries, which nobody sees, take seconds of each: which of all snapshots it left
    to others, say."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        config.option.no_summary = True
    else:
        # Each history that a test makes asks a disk several times whether all of it is there.
        if config.getoption("numprocesses", None) and "PYTEST_DEBUG_TEMPROOT" not in os.environ and has_memory():
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)
        # Under nohup, the programs that tests start would ignore a hang-up, too.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        PRESTARTED.enter_context(prestarted.server())
        if "MEASURE_SLOW" in os.environ:
            config.pluginmanager.register(Durations())


def pytest_report_header() -> str | None:
    """What a run leaves out, it says."""
    if TIMES >= 1 and math.inf == SLOW_S:
        return None
    return (
        f"of the cases of sweeps {min(TIMES, 1):.0%} run, of the slow tests as many as take {SLOW_S:g} s: "
        f"EXAMPLES_TIMES=1 SLOW_S=inf runs all, SWEEP_SEED={SEED} the same again"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker sends the process that hands out the tests one report of a test that passes, and not that it begins, is
    set up, torn down and ends. Whoever wants to know all of that (`--durations`, `--junit-xml`) is told as ever."""
    asked = any(item.config.getoption(name, None) not in (None, "") for name in ("durations", "xmlpath"))
    if "PYTEST_XDIST_WORKER" not in os.environ or asked:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """pytest looks five times through all there is for what breaks as it goes; what thousands of tests left is looked
    through once, here (pytest does its part after this)."""
    PRESTARTED.close()
    gc.collect()
    gc.freeze()


# What the program reads of the machine it runs on. A builder says CI=true: there, an execution gets no process of its
# own even on a terminal, and nobody is asked. A test that is about such a machine sets it itself.
OF_A_RECORDING = ("NODE_OPTIONS", "AGENTEVAL_PROXY", "AGENTEVAL_MCP_RECORDING", "NO_PROXY", "no_proxy")
"""What a recorded program finds in its environment: with it, a test's own recording looks like another network's."""
OF_THE_MACHINE = (
    *("AGENTEVAL_NOTIFY", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE"),
    *("ITERM_SESSION_ID", "VTE_VERSION"),
    *("CI", "STY", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_THEME"),
    *("AGENTEVAL_DB", "AGENTEVAL_REPAINT", "DASK_SCHEDULER_ADDRESS", "EDITOR", "VISUAL"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"),
)


# Of the tests of this process: how many of one name have got a folder; all of them.
NAMES: Counter[str] = Counter()
NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder for each test, named as pytest names its own.

    pytest's looks through the folders of all tests before it to find a free name: with thousands of tests that is most
    of what a small test costs. Here names are counted.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    name += "_" if name[-1].isdigit() else ""  # or its number would run on into that of another name
    folder = tmp_path_factory.getbasetemp() / f"{name}{NAMES[name.lower()]}"
    NAMES[name.lower()] += 1
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def short_folder() -> Iterator[str]:
    """Where the tests of this process have their sockets. A socket's path must be short (108 bytes)."""
    with tempfile.TemporaryDirectory(prefix="ae-", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture(scope="session", autouse=True)
def python_is_this_one() -> Iterator[None]:
    """A `python` that an agent's command names is this one: on a developer's machine it is often a script that looks
    for one first, which takes several times as long as Python's own start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_of_this_machine(short_folder: str) -> Iterator[None]:
    """No colours, keys or builder of the environment, and what is the same for all tests: set once, and each test takes
    back what it changes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("GITHUB_", "SSH_", "TMUX"))]:
            patch.delenv(name)
        for name in OF_THE_MACHINE:
            patch.delenv(name, raising=False)
        patch.setenv("AGENTEVAL_CACHE_DIR", f"{short_folder}/cache")
        # A pytest that a test starts takes away, when it ends, what earlier sessions left where its own folders are:
        # where ours are, that may be all folders of a whole run of these tests, which takes minutes.
        patch.setenv("PYTEST_DEBUG_TEMPROOT", short_folder)
        # Most histories of tests are made, of suites that are nowhere: whoever tests what is of a project deletes this.
        patch.setenv("AGENTEVAL_SCOPE", "all")
        # The keyring of whoever runs the tests is none of their business.
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        yield


@pytest.fixture(autouse=True)
def isolated_places(
    tmp_path: Path, short_folder: str, nothing_of_this_machine: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Temporary folders for configuration, data and sockets."""
    monkeypatch.setenv("AGENTEVAL_CONFIG_DIR", f"{tmp_path}/config")
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", f"{tmp_path}/data")
    # Made by whoever needs it, like the two above: not below pytest's long folder names.
    sockets = f"{short_folder}/{next(NUMBERS)}"
    monkeypatch.setenv("AGENTEVAL_RUNTIME_DIR", sockets)
    for name in OF_A_RECORDING:
        monkeypatch.delenv(name, raising=False)
    os.umask(0o022)
    yield
    if os.path.exists(sockets):
        shutil.rmtree(sockets, ignore_errors=True)


@pytest.fixture(scope="session")
def empty_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new history file as the program makes it, to be copied: to make one takes all migrations, ten times as long."""
    file = tmp_path_factory.mktemp("empty") / "history.db"
    Store.open(file).close()
    return file


@pytest.fixture(scope="session")
def copy_history(empty_history: Path) -> Callable[[Path], None]:
    """`copy_history(path)`: a new history there, if there is nothing yet and a file can be made. All of it at once."""

    def copy(path: Path) -> None:
        if os.path.lexists(path):
            return
        try:
            connections.make_private_folder(path.parent)
            beside = path.with_name(f".{next(NUMBERS)}")
            shutil.copy(empty_history, beside)  # with its mode
            try:
                os.link(beside, path)
            finally:
                beside.unlink()
        except (OSError, HistoryError):
            pass  # the program will say it

    return copy


@pytest.fixture(scope="session", autouse=True)
def new_histories_are_copies(copy_history: Callable[[Path], None]) -> Iterator[None]:
    """The program makes no history in this process, but where tests are about that (history/)."""

    def prepare_file(path: Path) -> bool:
        copy_history(path)
        return connections.prepare_file(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_database, "prepare_file", prepare_file)
        yield


@pytest.fixture(scope="session", autouse=True)
def executions_are_forked() -> Iterator[None]:
    """The process of an execution that a test starts is forked off one that has imported the program, but where tests
    are about its start (`started_anew`)."""
    client = sys.modules.get("agenteval_tui.runs.client")  # what no test imports needs no change
    with pytest.MonkeyPatch.context() as patch:
        if client is not None:
            patch.setattr(client, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": prestarted.popen}))
        yield


@pytest.fixture(scope="session", autouse=True)
def pythons_of_agents_are_forked() -> Iterator[None]:
    """So is the process that imports an agent's modules, but where tests are about its start (`started_anew`)."""
    with pytest.MonkeyPatch.context() as patch:
        if "agenteval_tui.agents.process.python_host" in sys.modules:
            patch.setattr("agenteval_tui.agents.process.python_host.start", forked_python.start)
        yield


@pytest.fixture
def started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of an execution, and the one that imports an agent's modules, are started as the program does it."""
    monkeypatch.setattr("agenteval_tui.runs.client.subprocess", subprocess)
    monkeypatch.setattr("agenteval_tui.agents.process.python_host.start", child_process.start)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a command `agenteval` that takes no time to start: first on PATH, for what calls it by its name."""
    return prestarted.stand_in(tmp_path_factory.mktemp("installed")).parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The recordings and contract pages beside the project; the test is skipped where they are not."""
    if not SHARED.is_dir():
        pytest.skip("recordings beside the project are not here")
    return SHARED


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
