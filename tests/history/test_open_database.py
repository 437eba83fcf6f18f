"""Opening: modes, permissions, versions, other people's files."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from history_made import ended, planned, record

from agenteval_tui.cli.main import main
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history import connections, open_database, schema
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.maintenance import check, check_health
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.salvage import salvage
from agenteval_tui.history.store import Store


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fill(path: Path, number: int = 3) -> None:
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(n) for n in range(number)])
        for n in range(number):
            store.run_ended(ended(n))
        store.end_execution("EXECUTION-1", "finished").result()


def as_nobody(act: Callable[[], None]) -> None:
    """Run `act` in a child without root's powers: root may write everywhere."""
    import sqlite_utils  # noqa: F401 - what is imported late may lie where nobody may read

    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            act()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_files_and_folders_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "history.db"
    os.umask(0)
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0)]).result()
        store.executions()
        files = list(path.parent.iterdir())
        assert {file.name for file in files} == {"history.db", "history.db-wal", "history.db-shm"}
        assert [mode(file) for file in files] == [0o600] * 3
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_a_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    fill(path)
    path.chmod(0o644)
    Store.open(path).close()
    assert mode(path) == 0o600


def test_an_empty_file_is_a_new_history(path: Path) -> None:
    path.touch()
    with Store.open(path) as store:
        assert store.executions() == []
        assert store.notices == ()
        assert store.counts().runs == 0
        assert list(store.run_ids()) == []


def test_strange_names_are_no_problem(tmp_path: Path) -> None:
    for name in ("with space & 100%.db", "ümlaut?mode=memory#x.db", "'quote'.db"):
        fill(tmp_path / name)
        with Store.open(tmp_path / name, read_only=True) as store:
            assert store.counts().runs == 3


def test_a_folder_and_a_missing_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="folder, not a history file"):
        Store.open(tmp_path)
    with pytest.raises(HistoryError, match="no history file"):
        Store.open(tmp_path / "none.db", read_only=True)
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError, match="can't be created"):
        Store.open(tmp_path / "file" / "history.db")


def test_another_programs_database_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY)")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(HistoryError, match="another program's database"):
            Store.open(path, read_only=read_only)
    for look in (check, check_health):
        with pytest.raises(HistoryError, match="another program's database"):
            look(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["notes.txt", "notes", "notes.db", "history.db"])
def test_a_text_file_is_left_alone(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    path = folder / name
    path.write_text("not a database, but somebody's notes\n" * 50)
    path.chmod(0o644)
    before = path.read_bytes()
    for look in (Store.open, partial(Store.open, read_only=True), check, check_health, salvage_beside):
        with pytest.raises(AgentevalError, match="not a history file") as refused:
            look(path)
        # To name a wrong file to save from is wrong use; the history that is opened is around a run.
        assert isinstance(refused.value, HistoryError) is (look is not salvage_beside)
        assert refused.value.fix.startswith("name ")
    assert path.read_bytes() == before
    assert mode(path) == 0o644
    assert os.listdir(folder) == [name]


def salvage_beside(path: Path) -> None:
    salvage(path, path.with_name("saved.db"))


@pytest.mark.parametrize(
    "words", [["history"], ["db"], ["db", "check"], ["db", "vacuum"], ["trends"], ["doctor"], ["run", "SUITE"]]
)
def test_no_command_moves_a_text_file(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    path = folder / "notes.db"
    path.write_text("somebody's notes\n")
    suite = tmp_path / "x.suite.yaml"
    suite.write_text("name: X\nagent: {kind: demo, pace: 0}\ntests: [{id: a, prompt: Hi}]\n")
    monkeypatch.chdir(tmp_path)
    code = main(
        [*(str(suite) if word == "SUITE" else word for word in words), "--db", str(path)], launch_app=lambda start: 0
    )
    assert code != 0
    printed = "".join(capsys.readouterr())
    assert "not a history file" in printed
    assert "name another file with --db" in printed
    assert path.read_text() == "somebody's notes\n"
    assert os.listdir(folder) == ["notes.db"]


def test_no_permission_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "history.db"
    fill(path)
    os.chmod(path, 0o644)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o055)
        if above.name.startswith("pytest-of-"):
            break

    def act() -> None:
        with pytest.raises(HistoryError, match=r"no write permission .*--db"):
            Store.open(path)
        with pytest.raises(HistoryError, match="can't be created"):
            Store.open(folder / "deeper" / "history.db")
        # It can be read all the same, and says what that means.
        with Store.open(path, read_only=True) as store:
            assert store.read_only
            assert any("can't be written" in notice for notice in store.notices)
            assert store.counts().passed == 3
            assert len(store.run_ids(RunFilter(text="way"))) == 3

    folder.chmod(0o555)
    try:
        as_nobody(act)
    finally:
        folder.chmod(0o755)


def test_what_can_be_neither_written_nor_read_is_an_error_to_who_looks(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE letters (id INTEGER)")
    with pytest.raises(HistoryError) as writing:
        Store.open(path)
    with pytest.raises(HistoryError) as looking:
        Store.open_to_look(path)
    assert str(looking.value) == str(writing.value)
    assert looking.value.__suppress_context__
    with pytest.raises(HistoryError):
        Store.open_to_look(path / "none.db")


def test_who_wants_to_look_may_where_the_folder_is_not_writable(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = folder / "history.db"
    Store.open(path).close()
    path.chmod(0o444)
    folder.chmod(0o555)
    for parent in path.parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o055)

    def act() -> None:
        with Store.open_to_look(path) as store:
            assert store.read_only
            assert store.executions() == []
            assert any("can't be written" in notice for notice in store.notices)
        with pytest.raises(HistoryError):
            Store.open_to_look(folder / "none.db")

    try:
        as_nobody(act)
    finally:
        folder.chmod(0o755)


def test_commands_that_only_read_work_where_the_folder_is_not_writable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, suite = tmp_path / "theirs", tmp_path / "a.suite.yaml"
    folder.mkdir()
    db = folder / "history.db"
    suite.write_text(
        "name: S\nagent: d\nagents: {d: {kind: demo, pace: 0}}\ntests:\n  - id: t\n    prompt: hi\n    criteria:\n"
        "      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: a}]}}\n"
    )
    assert main(["run", "--db", str(db), str(suite)], launch_app=lambda start: 0) in (0, 1)
    verbs = ("history", "show t", "why t", "causes", "trends", "stats", "flaky", "db", "db check",
             f"audit {suite}", f"grade {suite} --execution last", f"db export {tmp_path / 'copy.db'}")  # fmt: skip

    def codes() -> dict[str, int]:
        return {verb: main([*verb.split(), "--db", str(db)], launch_app=lambda start: 0) for verb in verbs}

    before = codes()
    (tmp_path / "copy.db").unlink()
    db.chmod(0o444)
    folder.chmod(0o555)
    for parent in db.parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o055)
    tmp_path.chmod(0o777)

    def act() -> None:
        assert codes() == before

    try:
        as_nobody(act)
    finally:
        folder.chmod(0o755)
    capsys.readouterr()


def test_reading_only(path: Path) -> None:
    fill(path)
    before = path.read_bytes()
    with Store.open(path, read_only=True) as store:
        assert store.execution("last").passed == 3
        error = store.end_execution("EXECUTION-1", "failed").exception()
        assert isinstance(error, HistoryError)
        assert "reading only" in str(error)
        store.flush()
    assert path.read_bytes() == before


def test_a_newer_file_is_read_and_not_touched(path: Path) -> None:
    fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.newest() + 1}")
        connection.execute("ALTER TABLE runs ADD COLUMN mood TEXT")
        connection.execute("DROP TABLE triage")
    connection.close()
    before = path.read_bytes()
    with Store.open(path) as store:
        assert store.read_only
        assert "newer agenteval" in store.notices[0]
        assert "update agenteval" in store.notices[0]
        assert [run.status for run in store.runs_of_execution("EXECUTION-1")] == ["passed"] * 3
        assert isinstance(store.run_ended(ended(0)).exception(), HistoryError)
    assert path.read_bytes() == before


def test_a_network_file_system_works_without_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "on_network", lambda _: True)
    with Store.open(path) as store:
        assert "network file system" in store.notices[0]
        store.begin_execution(record(), [planned(0)])
        store.run_ended(ended(0)).result()
        assert store.execution("last").passed == 1
    assert check_health(path).journal == "delete"
    assert not Path(f"{path}-wal").exists()


def test_the_mount_table_tells_network_file_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = (
        "/dev/sda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n/dev/sdb /home/local ext4 rw 0 0\n"
        "u@h:/x /mnt/with\\040space fuse.sshfs rw 0 0\n"
    )
    read = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda self, **more: table if str(self) == "/proc/self/mounts" else read(self, **more)
    )
    assert not connections.on_network(Path("/var/history.db"))
    assert connections.on_network(Path("/home/me/history.db"))
    assert not connections.on_network(Path("/home/local/history.db"))
    assert not connections.on_network(Path("/homes/history.db"))
    assert connections.on_network(Path("/mnt/with space/history.db"))


def test_two_openings_at_once_make_one_file(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: Store.open(path), range(8)))
    for number, store in enumerate(stores):
        store.begin_execution(record(f"E{number}"), []).result()
    assert len(stores[0].executions()) == 8
    for store in stores:
        store.close()


def test_health_tells_figures_and_problems(path: Path) -> None:
    fill(path)
    health = check_health(path)
    assert health.problems == ()
    assert (health.version, health.journal) == (schema.newest(), "wal")
    assert health.rows["runs"] == 3
    assert health.size == path.stat().st_size
    with pytest.raises(HistoryError):
        check_health(path.parent / "none.db")


def test_opening_does_not_load_what_it_does_not_need(path: Path) -> None:
    import subprocess

    fill(path)
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from agenteval_tui.history.store import Store\n"
        f"store = Store.open({str(path)!r}); store.executions(); store.run_rows(store.run_ids()); store.close()\n"
        "print([name for name in ('sqlite_utils', 'pydantic', 'asyncio', 'yaml', 'textual') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


def test_damage_that_was_met_is_looked_for_at_the_next_opening(path: Path) -> None:
    fill(path)
    open_database.mark_damaged(path)
    assert mode(Path(f"{path}.check")) == 0o600
    with Store.open(path) as store:
        assert store.notices == ()
    assert not Path(f"{path}.check").exists()
