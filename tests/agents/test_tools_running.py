"""Tools that run something: Python functions and commands, with real processes."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from programs import executable, lives, until
from pydantic import BaseModel

from agenteval_tui.agents.base import Printed
from agenteval_tui.agents.permission import NOTHING, permission_for
from agenteval_tui.agents.process.python_signature import converted, describe
from agenteval_tui.agents.tools.toolset import Toolbox, make_toolbox, tool_problems
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.tool_files import load_tools

ALLOWED = permission_for((), everything=True)


MODULE = r'''
from __future__ import annotations
import asyncio, dataclasses, datetime, enum, os, sys, threading, time
from typing import Annotated, Any, Literal, Optional

class Unit(enum.Enum):
    C = "c"
    F = "f"

@dataclasses.dataclass
class Place:
    city: str
    zip: int = 0

def weather(place: Place, unit: Unit = Unit.C, days: Annotated[int, "how many"] = 1, tags: list[str] | None = None,
            mode: Literal["now", "later"] = "now", deep: dict[str, Any] = {}, exact: Optional[float] = None):
    """The weather somewhere.

    More about it.

    Args:
        place: where
        tags (list): any words
    """
    return {"city": place.city, "unit": unit.name, "days": days}

def text(**more): return "é\ud800" + str(more)
def number(): return 4
def places(): return {"from": datetime.date(2026, 1, 2), "in": [Place("Bern")], "units": {Unit.F, Unit.C}}
def nothing(): print("noise"); return None
def fails(): raise ValueError("no such city")
def dies(): os._exit(3)
class Odd(Exception): __cause__ = property(lambda self: 1 / 0)
def raises_odd(): raise Odd("odd")
async def raises_odd_async(): raise Odd("odd")
def closes(): sys.stdout.close(); raise ValueError("no such city")
async def closes_async(): sys.stdout.close(); raise ValueError("no such city")
def sleeps(): time.sleep(600)
def odd(): return object()
async def later(x): await asyncio.sleep(0); return x
def prints(times, waits=False):
    for number in range(times): print(number)
    os.write(2, b"not told\n")
    if waits: time.sleep(600)
    return times
def big(): return "x" * 2_000_000
def by_position(x, /): return x
gate = threading.Barrier(2, timeout=100)
def meets(): gate.wait(); return "met"
async_gate = None
async def meets_async():
    global async_gate
    first = async_gate is None
    async_gate = async_gate or asyncio.Event()
    if first: await async_gate.wait()
    else: async_gate.set()
    return "met"
cart = []
def put(item: str):
    """Put something into the cart.

    :param item: what
    """
    cart.append(item)
    return {"pid": os.getpid(), "cart": cart}
'''


def box(folder: Path, *tools: dict[str, Any], env: dict[str, str] | None = None, **more: Any) -> Toolbox:
    (folder / "mine.py").write_text(MODULE, encoding="utf-8")
    return make_toolbox(list(tools), {}, folder, env={**os.environ, **(env or {})}, **{"permission": ALLOWED, **more})


def python(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "python": f"mine:{name}", **more}


async def test_a_signature_becomes_a_schema(tmp_path: Path) -> None:
    async with box(tmp_path, python("weather"), python("put", description="mine"), python("text")) as tools:
        weather, put, text = tools.specs()
    assert weather.description == "The weather somewhere.\n\nMore about it."
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                "required": ["city"],
                "description": "where",
            },
            "unit": {"enum": ["c", "f"]},
            "days": {"type": "integer", "description": "how many", "default": 1},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "description": "any words",
            },
            "mode": {"enum": ["now", "later"], "default": "now"},
            "deep": {"type": "object"},
            "exact": {"type": ["number", "null"]},
        },
        "required": ["place"],
        "additionalProperties": False,
    }
    assert put.description == "mine"
    assert put.parameters["properties"] == {"item": {"type": "string", "description": "what"}}
    assert text.parameters == {"type": "object", "properties": {}, "required": []}


@dataclasses.dataclass
class Comment:
    text: str
    answers: list[Comment] = dataclasses.field(default_factory=list)
    quoted: Comment | None = None


class Line(BaseModel):
    product: str


class Order(BaseModel):
    lines: list[Line]


class Invoice(BaseModel):
    class Line(BaseModel):
        cents: int

    lines: list[Line]


def test_a_schema_holds_what_it_refers_to_and_no_class_within_itself() -> None:
    def reply(comment: Comment, order: Order, invoice: Invoice, most: float = float("inf")) -> None: ...

    parameters = describe(reply)["parameters"]
    jsonschema.Draft202012Validator.check_schema(parameters)
    assert parameters["properties"]["comment"]["properties"]["answers"]["items"] == {"type": "object"}
    assert parameters["properties"]["most"] == {"type": "number"}
    right = {"comment": {"text": "a"}, "order": {"lines": [{"product": "x"}]}, "invoice": {"lines": [{"cents": 1}]}}
    jsonschema.validate(right, parameters)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**right, "invoice": {"lines": [{"product": "x"}]}}, parameters)


class Colour(enum.Enum):
    RED = "red"


def test_arguments_have_their_types_at_any_depth() -> None:
    def reply(
        comment: Comment, lines: list[Line], colours: dict[str, list[Colour]], best: Annotated[Line | None, "x"] = None
    ) -> None: ...

    answers = [{"text": "b", "quoted": {"text": "c"}}]
    arguments = {
        "comment": {"text": "a", "answers": answers},
        "lines": [{"product": "x"}],
        "colours": {"front": ["red"]},
        "best": {"product": "y"},
    }
    assert converted(reply, arguments) == {
        "comment": Comment("a", [Comment("b", quoted=Comment("c"))]),
        "lines": [Line(product="x")],
        "colours": {"front": [Colour.RED]},
        "best": Line(product="y"),
    }


@pytest.mark.parametrize(
    ("name", "arguments", "result", "error"),
    [
        ("weather", {"place": {"city": "Bern"}, "unit": "f"}, '{"city": "Bern", "unit": "F", "days": 1}', False),
        ("weather", {"place": {"town": "Bern"}}, "unexpected keyword argument 'town'", True),
        ("weather", {}, "TypeError: wrong arguments: missing a required argument: 'place'", True),
        ("text", {"a": 1}, "é\ufffd{'a': 1}", False),
        ("number", {}, "4", False),
        ("places", {}, '{"from": "2026-01-02", "in": [{"city": "Bern", "zip": 0}], "units": ["c", "f"]}', False),
        ("nothing", {}, "null", False),
        ("later", {"x": [1]}, "[1]", False),
        ("fails", {}, "ValueError: no such city (mine.py, line ", True),
        ("raises_odd", {}, "Odd, which can't be described: ZeroDivisionError", True),
        ("raises_odd_async", {}, "Odd, which can't be described: ZeroDivisionError", True),
        ("closes", {}, "ValueError: no such city (mine.py, line ", True),
        ("closes_async", {}, "ValueError: no such city (mine.py, line ", True),
        ("odd", {}, "not JSON serializable", True),
        ("big", {}, "gave more than 1 MB", True),
        ("dies", {}, "ended without an answer", True),
        ("sleeps", {}, "the tool did not answer within 0.2 s", True),
    ],
)
async def test_what_a_function_gives(
    tmp_path: Path, name: str, arguments: dict[str, Any], result: str, error: bool
) -> None:
    tools = [python(name, timeout=0.2 if name == "sleeps" else 60), python("number")]
    async with box(tmp_path, *(tools if name != "number" else tools[:1])) as opened:
        outcome = await opened.call(name, json.dumps(arguments))
        assert (outcome.error, result in outcome.text) == (error, True), outcome
        assert (await opened.call("number", "{}")).text == "4"


async def test_what_a_function_printed_stays_also_where_it_takes_too_long(tmp_path: Path) -> None:
    async with box(tmp_path, python("prints", timeout=5)) as tools:
        assert (await tools.call("prints", '{"times": 0}')).text == "0", "its process runs by now"
        outcome = await tools.call("prints", '{"times": 2, "waits": true}')
    assert (outcome.text, outcome.error) == ("the tool did not answer within 5 s", True)
    assert outcome.printed == (Printed("stdout", "0\n1\n"),)


async def test_many_printed_lines_are_one_text(tmp_path: Path) -> None:
    async with box(tmp_path, python("prints")) as tools:
        outcome = await tools.call("prints", '{"times": 20000}')
    assert outcome.printed == (Printed("stdout", "".join(f"{number}\n" for number in range(20_000))),)


async def test_what_a_command_wrote_stays_where_it_takes_too_long(tmp_path: Path) -> None:
    script = "echo half; echo $MY_KEY >&2; sleep 600"
    tool = {"name": "f", "command": script, "shell": True, "timeout": 1}
    async with box(tmp_path, tool, env={"MY_KEY": "secret-123"}) as tools:
        outcome = await tools.call("f", "{}")
    assert (outcome.text, outcome.error) == ("the tool did not answer within 1 s", True)
    assert outcome.printed == (Printed("stdout", "half\n"), Printed("stderr", "***\n"))


async def test_functions_share_what_their_module_holds_and_runs_do_not(tmp_path: Path) -> None:
    async with box(tmp_path, python("put")) as one, box(tmp_path, python("put")) as other:
        assert json.loads((await one.call("put", '{"item": "a"}')).text)["cart"] == ["a"]
        second = json.loads((await one.call("put", '{"item": "b"}')).text)
        third = json.loads((await other.call("put", '{"item": "c"}')).text)
        assert (second["cart"], third["cart"]) == (["a", "b"], ["c"])
    await until(lambda: not lives(second["pid"]) and not lives(third["pid"]), "the end of both processes")


async def test_a_process_of_async_functions_does_what_they_left_for_its_end(tmp_path: Path) -> None:
    module = "import atexit, pathlib\natexit.register(pathlib.Path('left').touch)\nasync def answer(): return 1\n"
    (tmp_path / "lasting.py").write_text(module, encoding="utf-8")
    async with box(tmp_path, {"name": "answer", "python": "lasting:answer"}) as tools:
        for _ in range(20):
            assert (await tools.call("answer", "{}")).text == "1"
    assert (tmp_path / "left").exists()


@pytest.mark.parametrize("target", ["mine:weather", "mine.py:weather"])
async def test_a_function_without_a_name_has_its_own(tmp_path: Path, target: str) -> None:
    tools = load_tools([{"python": target}], tmp_path)
    async with box(tmp_path, *tools) as offered:
        assert [tool.name for tool in offered.specs()] == ["weather"]


@pytest.mark.parametrize("name", ["meets", "meets_async"])
async def test_calls_run_at_once(tmp_path: Path, name: str) -> None:
    async with box(tmp_path, python(name)) as tools:
        outcomes = await asyncio.gather(tools.call(name, "{}"), tools.call(name, "{}"))
    assert [outcome.text for outcome in outcomes] == ["met", "met"]


async def test_calls_that_raise_at_once_import_nothing_beside_each_other(tmp_path: Path) -> None:
    """A module that another thread is importing is found half loaded: the one call would never answer."""
    module = "import sys\ndef loaded(): return [name for name in sys.modules if name.startswith('_agenteval.')]\n"
    module += "def fails(): raise ValueError('no such city')\n"
    (tmp_path / "quick.py").write_text(module, encoding="utf-8")
    async with box(tmp_path, *({"name": name, "python": f"quick:{name}"} for name in ("fails", "loaded"))) as tools:
        before = (await tools.call("loaded", "{}")).text
        assert "no such city (quick.py, line 3)" in (await tools.call("fails", "{}")).text
        assert (await tools.call("loaded", "{}")).text == before


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"name": "f", "python": "absent:f"}, "tool 'f': absent:f: ModuleNotFoundError: No module named 'absent'"),
        ({"name": "f", "python": "mine:absent"}, "has no attribute 'absent'"),
        ({"name": "f", "python": "mine:by_position"}, "parameter 'x' can't be given by name"),
        ({"name": "f", "python": "mine:cart", "parameters": {"type": "object"}}, "is a list, not a function"),
        ({"name": "f", "command": "./absent.sh"}, "tool 'f': there is no program ./absent.sh"),
    ],
)
async def test_what_can_not_be_started_is_said_before_the_run(tmp_path: Path, tool: dict[str, Any], said: str) -> None:
    tools = box(tmp_path, tool)
    with pytest.raises(AgentevalError) as caught:
        await tools.__aenter__()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"name": "f", "python": "mine"}, "`python` is written package.module:name"),
        ({"name": "f", "python": "m:f", "command": "x"}, "has `python` and `command`"),
        ({"name": "f", "command": []}, "`command` is empty"),
        ({"name": "f", "command": "x", "timout": 3}, "unknown option `timout`, did you mean `timeout`?"),
        ({"name": "f", "command": "x", "timeout": 0}, "option `timeout` must be greater than 0"),
        ({"name": "f", "command": "x", "cwd": ".."}, "outside the suite's folder"),
        ({"name": "f", "python": "m:f", "path": ["/"]}, "outside the suite's folder"),
        ({"mcp": {}}, "either `command` or `url`"),
        ({"mcp": {"command": "x", "url": "http://x"}}, "either `command` or `url`"),
        ({"mcp": {"url": "x"}}, "`url` must begin with http:// or https://"),
        ({"mcp": {"command": "x", "onyl": []}}, "unknown option `mcp.onyl`, did you mean `only`?"),
        ({"mcp": {"url": "http://x", "api_key_env": "sk-12"}}, "is the name of an environment variable"),
    ],
)
def test_a_tool_that_is_written_wrongly(tmp_path: Path, tool: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentevalError) as caught:
        box(tmp_path, tool, permission=NOTHING)
    assert said in str(caught.value)


def test_two_tools_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="two tools are called 'put'"):
        box(tmp_path, python("put"), python("put"))


def test_a_context_has_mock_tools_only(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="of the testing context has `command`"):
        make_toolbox(None, {"sample_tools": {"f": {"command": "x"}}}, tmp_path)


async def test_a_mock_of_the_context_takes_the_place_of_what_would_run(tmp_path: Path) -> None:
    tools = make_toolbox([{"name": "f", "command": "cat"}], {"sample_tools": {"f": {"sample_response": "x"}}}, tmp_path,
                         env=os.environ)  # fmt: skip
    async with tools:
        assert [spec.name for spec in tools.specs()] == ["f"]
        assert (await tools.call("f", "{}")).text == "x"


async def test_a_command_answers(tmp_path: Path) -> None:
    executable(tmp_path / "f.sh", '#!/bin/sh\necho "$GREETING $(cat)"\necho log >&2')
    tool = {"name": "f", "command": "./f.sh", "env": {"GREETING": "hi"}, "parameters": {"type": "object"}}
    async with box(tmp_path, tool) as tools:
        outcomes = await asyncio.gather(*(tools.call("f", json.dumps({"ü": n})) for n in range(3)))
    assert [(one.text, one.error) for one in outcomes] == [(f'hi {{"ü": {n}}}', False) for n in range(3)]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('no city'); sys.exit(3)", "the tool ended with exit code 3: no city"),
        ("import os, sys; sys.exit('bad ' + os.environ['MY_KEY'])", "the tool ended with exit code 1: bad ***"),
        ("import os; os.kill(os.getpid(), 9)", "the tool was ended by the signal SIGKILL"),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "the tool wrote more than 1,000,000 bytes"),
    ],
)
async def test_a_command_fails(tmp_path: Path, code: str, said: str) -> None:
    tool = {"name": "f", "command": [sys.executable, "-c", code]}
    async with box(tmp_path, tool, env={"MY_KEY": "secret-123"}) as tools:
        outcome = await tools.call("f", '{"x": 1}')
    assert (outcome.text, outcome.error) == (said, True)


async def test_a_command_that_takes_too_long_ends_with_all_it_started(tmp_path: Path) -> None:
    script, pid = "sleep 600 & echo $! > pid; wait", tmp_path / "pid"
    # On a busy machine the time may be over before it has begun.
    for seconds in (0.5, 5, 60):
        tool = {"name": "f", "command": script, "shell": True, "timeout": seconds}
        async with box(tmp_path, tool) as tools:
            outcome = await tools.call("f", "{}")
        assert (outcome.text, outcome.error) == (f"the tool did not answer within {seconds:g} s", True)
        if pid.exists() and pid.read_text():
            break
    await until(lambda: not lives(int(pid.read_text())), "the end of what it started")


async def test_variables_in_a_file_of_tools_are_put_in_where_programs_are_named(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text(
        "- {name: f, command: [printenv, X], env: {X: '${WORD}!'}}\n- {name: g, sample_response: '${WORD}'}\n"
    )
    async with make_toolbox("tools.yaml", {}, tmp_path, env={**os.environ, "WORD": "ho"}, permission=ALLOWED) as tools:
        assert (await tools.call("f", "{}")).text == "ho!"
        assert (await tools.call("g", "{}")).text == "${WORD}"


async def test_a_folder_outside_is_for_those_who_trust(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (tmp_path / "tools.yaml").write_text("- {name: f, command: pwd, cwd: ..}\n")
    with pytest.raises(AgentevalError, match="outside"):
        make_toolbox("../tools.yaml", {}, suite, env=os.environ)
    async with make_toolbox("../tools.yaml", {}, suite, env=os.environ, permission=ALLOWED) as tools:
        assert (await tools.call("f", "{}")).text == str(tmp_path)


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        (None, []),
        ("builtin:demo-shop", []),
        ("${TOOLS}", []),
        ("absent.yaml", ["there is no such file"]),
        ([{"name": "f", "command": "no-such-program"}, {"mcp": {"url": "${URL}"}}, {"name": "g"}], []),
        ([{"name": "f", "python": "m:f"}, {"name": "f"}], ["two tools are called 'f'"]),
        ([{"name": "f", "comand": "x"}, {"mcp": {}}], ["unknown option `comand`", "either `command` or `url`"]),
    ],
)
def test_wrong_tools_are_said_without_starting_them(tmp_path: Path, tools: Any, said: list[str]) -> None:
    problems = tool_problems({"kind": "openai", "tools": tools}, tmp_path)
    assert len(problems) == len(said)
    for problem, part in zip(problems, said, strict=True):
        assert part in problem
