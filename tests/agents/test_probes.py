"""Probes with real files, databases, processes and servers: what they read, and why they read nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from programs import lives, until

from agenteval_tui.agents.http.connection_pool import Connections
from agenteval_tui.agents.permission import NOTHING, Permission, Use, permission_for
from agenteval_tui.agents.probes.limits import MOST_BYTES, MOST_FILES
from agenteval_tui.agents.probes.probe import Probe, ProbeSurroundings
from agenteval_tui.agents.process.python_tree import Lease
from agenteval_tui.grading.sentences import reading_sentence
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.state import Reading, ReadingProblem

Read = Callable[..., Any]


@pytest.fixture
async def read(tmp_path: Path) -> AsyncIterator[Read]:
    """Read a probe in the temporary folder, which is trusted unless the test says otherwise."""
    lease, connections = Lease(), Connections()
    trusted = permission_for([Use(tmp_path, ("tests",))], everything=True)

    async def read_one(permission: Permission = trusted, variables: Any = None, **written: Any) -> Reading:
        around = ProbeSurroundings(
            tmp_path, tmp_path, dict(os.environ), variables or {}, permission, lease, connections
        )
        reading = await asyncio.wait_for(Probe.of("p", written).read(around), 60)
        if reading.problem:
            assert reading_sentence(reading.problem, reading.fields) != reading.problem
        return reading

    yield read_one
    await lease.close()
    await connections.close()


def database(folder: Path, *statements: str) -> Path:
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for one in statements or (
            "create table orders (id text, status text, total real)",
            "insert into orders values ('W1', 'cancelled', 12.5), ('W2', 'pending', 3)",
        ):
            connection.execute(one)
    return path


# Files


async def test_a_file(tmp_path: Path, read: Read) -> None:
    (tmp_path / "out.txt").write_bytes("\ufeffGrüße\n".encode())
    assert await read(file="out.txt") == Reading("Grüße\n")
    assert await read(file="{{name}}.txt", variables={"name": "out"}) == Reading("Grüße\n")


async def test_files(tmp_path: Path, read: Read) -> None:
    for name in ("out/a.eml", "out/b.eml", "out/c.txt", "out/deep/d.eml", ".hidden/e.eml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert (await read(files="out/*.eml")).value == {"out/a.eml": "out/a.eml", "out/b.eml": "out/b.eml"}
    assert list((await read(files="**/*.eml")).value) == ["out/a.eml", "out/b.eml", "out/deep/d.eml"]
    assert list((await read(files="out/**")).value) == ["out/a.eml", "out/b.eml", "out/c.txt", "out/deep/d.eml"]
    assert list((await read(files=str(tmp_path / "out/c.*"))).value) == [str(tmp_path / "out/c.txt")]
    assert (await read(files="out/c.txt")).value == {"out/c.txt": "out/c.txt"}
    assert (await read(files="nowhere/*.eml")).value == {}
    (tmp_path / "out/deep/up").symlink_to(tmp_path / "out")
    assert list((await read(files="out/deep/**")).value) == ["out/deep/d.eml"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, ReadingProblem.NO_FILE),
        (lambda path: path.mkdir(), ReadingProblem.NOT_A_FILE),
        (lambda path: os.mkfifo(path), ReadingProblem.NOT_A_FILE),
        (lambda path: path.symlink_to("/dev/zero"), ReadingProblem.NOT_A_FILE),
        (lambda path: path.symlink_to(path), ReadingProblem.UNUSABLE),
        (lambda path: path.write_bytes(b"\x89PNG\0\xff"), ReadingProblem.NOT_TEXT),
        (lambda path: path.write_bytes(b"Gr\xfc\xdfe"), ReadingProblem.NOT_TEXT),
        (lambda path: path.write_bytes(b"x" * (MOST_BYTES + 1)), ReadingProblem.TOO_LARGE),
        (lambda path: (path.touch(), os.truncate(path, 100_000_000)), ReadingProblem.TOO_LARGE),
    ],
)
async def test_files_that_have_no_value(
    tmp_path: Path, read: Read, make: Callable[[Path], Any], problem: ReadingProblem
) -> None:
    make(tmp_path / "out")
    assert (await read(file="out", timeout=20)).problem == problem


async def test_a_file_of_100_mb_among_files_is_not_cut(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a.txt").write_text("x")
    with (tmp_path / "b.txt").open("wb") as file:
        file.truncate(100_000_000)
    assert (await read(files="*.txt")).problem == ReadingProblem.TOO_LARGE


async def test_many_files_are_too_many(tmp_path: Path, read: Read) -> None:
    for number in range(MOST_FILES + 1):
        (tmp_path / f"{number}.txt").touch()
    assert (await read(files="*.txt")).problem == ReadingProblem.TOO_MANY


async def test_a_file_outside_of_a_folder_without_trust(tmp_path: Path, read: Read) -> None:
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    for written in ({"file": "/etc/hostname"}, {"file": "link.txt"}, {"files": "*.txt"}, {"file": "../../etc/hosts"}):
        assert (await read(NOTHING, **written)).problem == ReadingProblem.OUTSIDE
    assert (await read(NOTHING, sql="select 1", database="/etc/hostname")).problem == ReadingProblem.OUTSIDE


async def test_the_open_history_is_never_opened_as_a_file(tmp_path: Path, read: Read) -> None:
    with Store.open(tmp_path / "history.db"):
        for written in ({"file": "history.db"}, {"files": "*.db*"}):
            reading = await read(**written)
            assert reading.problem == ReadingProblem.UNUSABLE
            assert "is the history" in reading.fields["message"]


# Databases


async def test_one_value_is_text_and_more_is_json(tmp_path: Path, read: Read) -> None:
    database(tmp_path)

    async def asked(sql: str, **variables: Any) -> Any:
        reading = await read(sql=sql, database="shop.db", variables=variables)
        assert not reading.problem, reading
        return reading.value

    assert await asked("select status from orders where id = 'W1'") == "cancelled"
    assert await asked("select status from orders where id = :order", order="W2") == "pending"
    assert await asked("select count(*) from orders") == "2"
    assert await asked("select null") is None
    assert await asked("select status from orders where id = 'W9'") == []
    assert await asked("select id, total from orders order by id") == [
        {"id": "W1", "total": 12.5},
        {"id": "W2", "total": 3.0},
    ]
    counted = "with recursive n(x) as (select 1 union all select x + 1 from n where x < 3) select x from n"
    assert await asked(counted) == [{"x": 1}, {"x": 2}, {"x": 3}]


async def test_a_number_that_a_database_has_no_integer_for_is_asked_for_as_text(tmp_path: Path, read: Read) -> None:
    database(tmp_path, "create table orders (id text)", f"insert into orders values ('{2**64}')")
    sql = "select count(*) from orders where id = :id"
    assert await read(sql=sql, database="shop.db", variables={"id": 2**64}) == Reading("1")


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select statu from orders", ReadingProblem.SQL),
        ("select status from orders where id = :nobody", ReadingProblem.SQL),
        ("selec", ReadingProblem.SQL),
        ("-- nothing", ReadingProblem.SQL),
        ("select 1; select 2", ReadingProblem.SQL),
        ("delete from orders", ReadingProblem.SQL),
        ("attach '/tmp/x.db' as x", ReadingProblem.SQL),
        ("pragma journal_mode = delete", ReadingProblem.SQL),
        ("select load_extension('x')", ReadingProblem.SQL),
        ("select id, id from orders", ReadingProblem.SAME_COLUMN),
        ("select x'00ff' as picture", ReadingProblem.NOT_TEXT),
        ("select printf('%.*c', 900000, 'x')", ReadingProblem.TOO_LARGE),
        ("select hex(zeroblob(50000000))", ReadingProblem.TOO_LARGE),
        ("with recursive n(x) as (select 1 union all select x + 1 from n) select x from n", ReadingProblem.TOO_LARGE),
        ("with recursive n(x) as (select 1 union all select 1 from n) select count(*) from n", ReadingProblem.SLOW),
    ],
)
async def test_queries_that_have_no_value(tmp_path: Path, read: Read, sql: str, problem: ReadingProblem) -> None:
    path = database(tmp_path)
    before = path.read_bytes()
    reading = await read(sql=sql, database="shop.db", timeout=1.0 if problem == ReadingProblem.SLOW else 20)
    assert reading.problem in (problem, *((ReadingProblem.TOO_MANY,) if "x + 1" in sql else ())), reading
    assert path.read_bytes() == before


async def test_a_database_that_is_locked_missing_or_none(tmp_path: Path, read: Read) -> None:
    path = database(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("begin exclusive")
        assert (await read(sql="select 1 from orders", database="shop.db")).problem == ReadingProblem.LOCKED
        writer.execute("rollback")
    assert (await read(sql="select 1", database="no.db")).problem == ReadingProblem.NO_FILE
    assert not (tmp_path / "no.db").exists()
    (tmp_path / "text.db").write_text("no database " * 100)
    assert (await read(sql="select 1", database="text.db")).problem == ReadingProblem.NOT_A_DATABASE
    assert (await read(sql="select * from x", database="text.db")).problem == ReadingProblem.NOT_A_DATABASE
    (tmp_path / "folder.db").mkdir()
    assert (await read(sql="select 1", database="folder.db")).problem == ReadingProblem.NOT_A_FILE


async def test_a_database_with_a_write_ahead_log_that_is_open(tmp_path: Path, read: Read) -> None:
    path = database(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("pragma journal_mode = wal")
        writer.execute("update orders set status = 'shipped'")
        assert (await read(sql="select distinct status from orders", database="shop.db")).value == "shipped"
    assert (await read(sql="select distinct status from orders", database="shop.db")).value == "shipped"


# Commands


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_a_command(tmp_path: Path, read: Read) -> None:
    assert (await read(command=python("print('two\\nlines')"))).value == "two\nlines"
    assert (await read(command="echo {{word}}", variables={"word": "a b"})).value == "a b"
    given = python("import json, sys, os; print(json.load(sys.stdin)['variables']['order'], os.getcwd())")
    assert (await read(command=given, variables={"order": "W1"})).value == f"W1 {tmp_path}"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; print('half'); sys.exit('no such order')", ReadingProblem.EXIT),
        ("import threading; threading.Event().wait()", ReadingProblem.SLOW),
        ("while True: print('x' * 1000)", ReadingProblem.TOO_LARGE),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", ReadingProblem.NOT_TEXT),
    ],
)
async def test_commands_that_have_no_value(read: Read, code: str, problem: ReadingProblem) -> None:
    reading = await read(command=python(code), timeout=1.0 if problem == ReadingProblem.SLOW else 20)
    assert reading.problem == problem
    if problem == ReadingProblem.EXIT:
        assert reading.fields == {"status": 1, "message": "ended with exit code 1: no such order"}


async def test_a_command_that_is_not_there_and_one_without_trust(read: Read) -> None:
    assert (await read(command="no-such-program")).problem == ReadingProblem.NO_START
    assert (await read(NOTHING, command="echo x")).problem == ReadingProblem.NOT_PERMITTED
    assert (await read(NOTHING, python="mine:f")).problem == ReadingProblem.NOT_PERMITTED
    assert (await read(command="echo {{nobody}}")).problem == ReadingProblem.UNUSABLE


# Functions

MODULE = """
import sys
def order(variables):
    return {"id": variables["order"], "tags": {"a"} and ["a"]}
def number(): return 3
def everything(workdir, order, variables, other=None): return [workdir, order, variables, other]
async def later(): return "later"
def raises(): raise LookupError("no order")
def leaves(): sys.exit(3)
def ends():
    import os
    print("last words", flush=True)
    os._exit(3)
def hangs():
    import threading
    threading.Event().wait()
def much(): return "x" * 10_000_000
def odd(): return object()
def nothing(): return None
"""


async def test_functions(tmp_path: Path, read: Read) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    assert (await read(python="mine:order", variables={"order": "W1"})).value == {"id": "W1", "tags": ["a"]}
    assert (await read(python="mine:number")).value == "3"
    told = await read(python="mine:everything", variables={"order": "W1"})
    assert told.value == [str(tmp_path), "W1", {"order": "W1"}, None]
    assert (await read(python="mine.py:later")).value == "later"
    assert (await read(python="mine:nothing")) == Reading(None)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raises", ReadingProblem.RAISED),
        ("leaves", ReadingProblem.RAISED),
        ("ends", ReadingProblem.NO_RESULT),
        ("hangs", ReadingProblem.SLOW),
        ("much", ReadingProblem.TOO_LARGE),
        ("odd", ReadingProblem.RAISED),
        ("missing", ReadingProblem.RAISED),
    ],
)
async def test_functions_that_have_no_value(tmp_path: Path, read: Read, name: str, problem: ReadingProblem) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    reading = await read(python=f"mine:{name}", timeout=1.0 if name == "hangs" else 30)
    assert reading.problem == problem, reading
    if name == "ends":
        words = reading_sentence(reading.problem, reading.fields)
        assert words == "its function ended without an answer, its process ended with exit code 3: last words"


async def test_what_a_function_prints_is_not_its_value(tmp_path: Path, read: Read) -> None:
    (tmp_path / "mine.py").write_text("def f():\n    print('x' * 100_000_000)\n    return 'fine'\n")
    assert (await read(python="mine:f", timeout=60)).value == "fine"


@pytest.mark.parametrize("ending", ["", ">/dev/null 2>&1"])
async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path, read: Read, ending: str) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("the system shows no environment of processes")
    reading = await read(command=["sh", "-c", f"setsid sleep 600 {ending} & echo $!"])
    await until(lambda: not lives(int(reading.value)), "the end of what the command left behind")


# Addresses


class Site:
    """A server whose replies are given by path."""

    def __init__(self) -> None:
        self.replies: dict[str, bytes] = {}
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readline()).split()[1].decode()
            while (await reader.readline()).strip():
                pass
            reply = self.replies.get(path)
            if reply is None:
                await reader.read()  # never answered: the client goes
            else:
                writer.write(reply)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


def reply(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode() + body


async def test_addresses(read: Read, site: Site) -> None:
    site.replies = {
        "/orders/W1": reply(b'{"status": "cancelled"}'),
        "/gone": reply(b"", "404 Not Found"),
        "/moved": reply(b"", "302 Found"),
        "/much": reply(b"x" * (MOST_BYTES + 1)),
        "/picture": reply(b"\0\xff"),
        "/half": reply(b"x", length=10),
        "/odd": b"nothing of HTTP\r\n\r\n",
    }
    value = (await read(url=site.url + "/orders/{{order}}", variables={"order": "W1"})).value
    assert value == '{"status": "cancelled"}'
    assert (await read(url=site.url + "/gone")).problem == ReadingProblem.HTTP_STATUS
    assert (await read(url=site.url + "/moved")).problem == ReadingProblem.HTTP_STATUS
    assert (await read(url=site.url + "/much")).problem == ReadingProblem.TOO_LARGE
    assert (await read(url=site.url + "/picture")).problem == ReadingProblem.NOT_TEXT
    assert (await read(url=site.url + "/half")).problem == ReadingProblem.NO_ANSWER
    assert (await read(url=site.url + "/odd")).problem == ReadingProblem.NO_ANSWER
    assert (await read(url=site.url + "/silent", timeout=1.0)).problem == ReadingProblem.SLOW
    assert (await read(url="http://127.0.0.1:1/")).problem == ReadingProblem.NO_ANSWER
    assert (await read(url="file:///etc/hostname")).problem == ReadingProblem.UNUSABLE
    assert (await read(url="${NO_SUCH_VARIABLE}/x")).problem == ReadingProblem.UNUSABLE
