"""The kind `python`: what may be named as a `callable`."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from agenteval_tui.agents.base import Failed
from agenteval_tui.agents.process import python_tree
from agenteval_tui.agents.process.python_tree import Lease
from agenteval_tui.agents.registry import option_problems
from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.suites.callable_name import callable_problem, callable_rule, parse_callable
from agenteval_tui.transcripts.model import Message, RunError

from .conftest import Run, run_in


def python(target: str, **more: Any) -> dict[str, Any]:
    return {"kind": "python", "callable": target, **more}


def failure(ran: Any) -> RunError:
    assert isinstance(ran.events[-1], Failed), ran.events
    return ran.events[-1].error


ANSWER = "import sys\ndef answer(prompt): return __name__ + ' ' + prompt\n"


class TestFiles:
    @pytest.mark.parametrize(
        ("file", "name"),
        [
            ("mine.py", "mine"),
            ("deep/in/mine.py", "mine"),
            ("./deep/mine.py", "mine"),
            ("my-agent.py", "my-agent"),
            ("shop/agent.py", "shop.agent"),
            ("src/shop/inner/__init__.py", "shop.inner"),
            ("types.py", None),
            ("agent.v2.py", None),
            ("json/decoder.py", None),
        ],
    )
    async def test_a_file_is_imported_as_what_it_is(
        self, run_agent: Run, tmp_path: Path, file: str, name: str | None
    ) -> None:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.parents:
            if folder.name in ("shop", "inner", "json"):
                (folder / "__init__.py").touch()
        path.write_text(ANSWER, encoding="utf-8")
        ran = await run_agent(python(f"{file}:answer"))
        said, prompt = ran.transcript.final_output.rsplit(" ", 1)
        assert prompt == "hello"
        assert name is None or said == name

    async def test_a_file_finds_its_neighbours_before_those_of_the_suite(self, run_agent: Run, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        for folder, text in ((tmp_path, "suite's"), (tmp_path / "sub", "own")):
            (folder / "tool.py").write_text(f"TEXT = {text!r}\n", encoding="utf-8")
            (folder / "agent.py").write_text("import tool\ndef answer(prompt): return tool.TEXT\n", encoding="utf-8")
        ran = await run_agent(python("sub/agent.py:answer"))
        assert ran.transcript.final_output == "own"
        ran = await run_agent(python("agent:answer"))
        assert ran.transcript.final_output == "suite's"

    async def test_relative_imports_work(self, run_agent: Run, tmp_path: Path) -> None:
        package = tmp_path / "src" / "shop"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "words.py").write_text("HI = 'Hi '\n", encoding="utf-8")
        code = "from . import words\nfrom shop.words import HI\ndef answer(prompt): return words.HI + prompt\n"
        (package / "agent.py").write_text(code, encoding="utf-8")
        ran = await run_agent(python("src/shop/agent.py:answer"))
        assert ran.transcript.final_output == "Hi hello"

    async def test_a_file_that_is_not_there(self, run_agent: Run) -> None:
        error = failure(await run_agent(python("mine.py:answer")))
        assert error.message.startswith("there is no file mine.py in ")

    async def test_no_file_outside_of_the_folder_without_trust(self, tmp_path: Path) -> None:
        problems = option_problems("a", python("../other.py:answer"))
        assert problems == []  # the text is right; whether it may be used is the trust check's


@pytest.mark.parametrize("target", ["x/mine.py:", "mine.py:a b", "mine.py:3", ":x", "a:b:c"])
def test_what_is_not_written_as_a_callable(target: str) -> None:
    ((path, said),) = option_problems("a", python(target))
    assert path == ""  # a rule of all options; its text names the option
    assert "path/to/file.py:" in said or f"{target}:NAME" in said


async def test_a_whole_file_that_no_framework_runs_needs_a_name(run_agent: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import json\n\n\ndef answer(prompt):\n    return prompt\n")
    words = "mine.py is a whole file, and no framework runs it; name a function or an agent in it: mine.py:NAME"
    assert words in failure(await run_agent(python("mine.py"))).message
    suite = tmp_path / "first.suite.yaml"
    suite.write_text("name: A\nagent: a\nagents: {a: {kind: python, callable: mine.py}}\ntests: [{id: t, prompt: x}]\n")
    assert f"`callable`: {words}" in [problem.message for problem in check_suites([suite])[1]]


@pytest.mark.parametrize("target", ["mine:f", "a.b:c.d", "mine.py:f", "x y/my-agent.py:f.g", "/abs/mine.py:f"])
def test_editors_accept_what_is_right(target: str) -> None:
    import re

    parse_callable(target)
    assert re.search(callable_rule("callable")["properties"]["callable"]["pattern"], target)


class TestKnownBefore:
    """What `validate` says without running anything."""

    @pytest.mark.parametrize(
        ("target", "problem"),
        [
            ("mine.py:answer", ""),
            ("mine:answer", ""),
            ("mine:Thing.method", ""),
            ("mine.py:anwser", "mine.py has no anwser; did you mean answer?"),
            ("mine:anwser", "mine has no anwser; did you mean answer?"),
            ("min.py:answer", "there is no file min.py in FOLDER; did you mean mine.py?"),
            ("open.py:whatever", ""),
            ("late.py:whatever", ""),
            ("broken.py:whatever", ""),
            ("late.py:a", ""),
            ("pack:inner", ""),
            ("pack:outer", "pack has no outer"),
            ("elsewhere.installed:f", ""),
            ("many.py:g", ""),
        ],
    )
    def test_it(self, tmp_path: Path, target: str, problem: str) -> None:
        (tmp_path / "mine.py").write_text("class Thing: pass\nif True:\n  def answer(p): local = 1\n", encoding="utf-8")
        (tmp_path / "open.py").write_text("from os import *\n", encoding="utf-8")
        (tmp_path / "late.py").write_text("globals()['x'] = 1\n", encoding="utf-8")
        (tmp_path / "broken.py").write_text("def (\n", encoding="utf-8")
        (tmp_path / "many.py").write_text("try:\n  import a.b as g\nexcept E as e:\n  (x, [y]) = 1, [2]\n", "utf-8")
        (tmp_path / "pack").mkdir()
        (tmp_path / "pack" / "__init__.py").touch()
        (tmp_path / "pack" / "inner.py").touch()
        assert callable_problem(parse_callable(target), tmp_path) == problem.replace("FOLDER", str(tmp_path))


@pytest.mark.xdist_group("named frameworks")
@pytest.mark.asyncio(loop_scope="class")
class TestFrameworks:
    """Real packages, which are not all installed with agenteval (AGENTEVAL_FRAMEWORKS, as in test_frameworks_apart).

    To import one takes a second or two. The tests have one folder for a framework and one event loop, whose processes
    stay (`Lease`): most begin with what was imported for an earlier one.
    """

    @pytest.fixture(scope="class")
    def folders(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folders = tmp_path_factory.mktemp("named")
        frameworks = Path(__file__).parent / "frameworks"
        for file in frameworks.glob("of_named*.py"):
            (folders / file.stem).mkdir()
            for needed in {file, frameworks / "of_named.py", frameworks / "shop_server.py"}:
                shutil.copy(needed, folders / file.stem)
        return folders

    @pytest_asyncio.fixture(scope="class", loop_scope="class", autouse=True)
    async def processes(self) -> AsyncIterator[None]:
        lease = Lease()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                python_tree, "MOST_TREES", 100
            )  # else frameworks are imported again for each name after eight
            yield
        await lease.close()

    @pytest.fixture
    def run_agent(self, folders: Path) -> Run:
        """In a folder of its module, which imports one framework: a Python that has imported that is forked."""
        return lambda config, *arguments, **request: run_in(folders / config["callable"].partition(":")[0])(
            config, *arguments, **request
        )

    @pytest.mark.parametrize(
        ("name", "more", "answer"),
        [
            ("deps", {}, "Deps(name='nobody', tags=[])"),
            ("deps", {"context": {"name": "{{prompt}}", "tags": ["x"]}}, "Deps(name='hello', tags=['x'])"),
            (
                "deps",
                {"context": "of_named_pydantic_ai:make_deps", "settings": {"tag": "t"}},
                "Deps(name='made', tags=['t'])",
            ),
            ("needs", {"context": {"customer": "C1"}}, "Needs(customer='C1', limit=3)"),
            ("number", {"context": 18}, "18"),
            ("nested", {}, "Inner(deps=Deps(name='nobody', tags=[]), database=Database('shop.db'))"),
            ("openai", {}, "Deps(name='nobody', tags=[])"),
            ("make_openai", {"context": {"name": "Jo"}}, "Deps(name='Jo', tags=[])"),
            ("graph", {}, "Deps(name='nobody', tags=[])"),
            ("graph", {"context": {"name": "Jo"}}, "Deps(name='Jo', tags=[])"),
            ("make_graph", {}, "Deps(name='nobody', tags=[])"),
            ("make_later", {}, "Deps(name='nobody', tags=[])"),
            ("opened", {"context": {"name": "Jo"}}, "Deps(name='Jo', tags=[])"),
            ("own", {"input": {"question": "{{prompt}}"}, "output": "answer"}, "A: hello"),
            ("own", {"input": {"question": "q"}, "output": "documents[1]"}, "2"),
            ("own", {"input": {"question": "q"}, "output": "answer", "messages": "talk"}, "A: q"),
            ("Bot", {}, "Hi hello"),
            ("Bot", {"settings": {"greeting": "Ho"}}, "Ho hello"),
            ("bot", {}, "Hi hello"),
            ("answers", {}, '"no prompt wanted"'),
            ("remembers", {}, "1"),
            ("notes", {}, "['hello']"),
        ],
    )
    async def test_it(self, run_agent: Run, name: str, more: dict[str, Any], answer: str) -> None:
        ran = await run_agent(named(name, **more))
        assert ran.transcript.final_output == answer, ran.events[-1]
        codes = [note.code for note in ran.transcript.notes]
        if name in ("Bot", "bot", "answers", "own") and "messages" not in more:
            assert codes.pop() == "text_only"
        assert codes == (["not_streamed"] if "stream" in str(codes) else [])
        assert ("not_streamed" in codes) == (
            name in ("deps", "needs", "number", "openai", "nested", "make_openai", "make_later")
        )

    @pytest.mark.parametrize(
        ("before", "answer"),
        [
            ([], "be kind, it is Monday"),
            ([Message("user", "hi"), Message("assistant", "ho")], "be kind, it is Monday"),
            ([Message("system", "be brief")], "be brief"),
        ],
    )
    async def test_it_has_its_system_prompt_in_each_turn(
        self, run_agent: Run, before: list[Message], answer: str
    ) -> None:
        """pydantic-ai leaves it out where it gets a history; a test's own takes its place."""
        ran = await run_agent(named("prompted"), messages=(*before, Message("user", "hello")))
        assert ran.transcript.final_output == answer, ran.events[-1]

    async def test_the_context_of_a_test_and_of_a_row_override_fields(self, run_agent: Run) -> None:
        config = named("deps", context={"name": "agent's", "tags": ["a"]})
        test = {"name": "of {{prompt}}", "object_alias": "not a field"}
        ran = await run_agent(config, context=test)
        assert ran.transcript.final_output == "Deps(name='of hello', tags=['a'])", ran.events[-1]
        ran = await run_agent(config, context=test, variables={"context": {"tags": ["row's"]}})
        assert ran.transcript.final_output == "Deps(name='of hello', tags=[\"row's\"])", ran.events[-1]

    @pytest.mark.parametrize(
        ("name", "more", "answer", "calls"),
        [
            ("structured", {"output": "total"}, "3", ()),
            ("retried", {"output": "note"}, "again", ()),
            ("structured", {"input": "for {{prompt}}", "output": "note"}, "for hello", ()),
            (
                "repeating",
                {"input": "Say {{prompt}}!", "output": "@"},
                '[{"role": "user", "content": "Say hello!"}]',
                (),
            ),
            ("steps", {"output": "state.answer"}, "A: hello", ("find",)),
            (
                "researches",
                {"input": {"topic": "{{prompt}}", "depth": 1}, "output": "info.of"},
                "hello",
                ("search",),
            ),
            ("steps", {"input": "{{prompt}} you", "output": "state.answer"}, "A: hello you", ("find",)),
            (
                "ordered",
                {"input": {"customer": "C{{prompt}}", "count": 2}, "output": "reply.text"},
                "Chello 2 hello",
                (),
            ),
        ],
    )
    async def test_input_and_output_map_what_streams_too(
        self, run_agent: Run, name: str, more: dict[str, Any], answer: str, calls: tuple[str, ...]
    ) -> None:
        ran = await run_agent(named(name, **more))
        assert ran.transcript.final_output == answer, ran.events[-1]
        assert [call.name for call in ran.transcript.tool_calls if call.name != "final_result"] == list(calls)
        assert "unread" not in [note.code for note in ran.transcript.notes]

    @pytest.mark.parametrize(
        ("name", "calls"), [("with_server", ["find"]), ("hands_over", ["transfer_to_second", "find"])]
    )
    async def test_the_mcp_servers_of_an_agent_are_connected_for_its_run(
        self, run_agent: Run, name: str, calls: list[str]
    ) -> None:
        ran = await run_agent(named(name))
        assert [call.name for call in ran.transcript.tool_calls] == calls, ran.events[-1]
        assert "found socks" in ran.transcript.final_output

    async def test_an_object_in_a_state_is_made_of_its_fields(self, run_agent: Run) -> None:
        ran = await run_agent(named("wishes", input={"wish": {"text": "{{prompt}}"}}, output="answer"))
        assert ran.transcript.final_output == "hello 1", ran.events[-1]
        error = failure(await run_agent(named("wishes", input={"wish": {"txt": "x"}}, output="answer")))
        assert "the option `input` doesn't fit the state of of_named_langgraph:wishes: " in error.message
        assert "'txt'" in error.message

    @pytest.mark.parametrize("message", [{"role": "user", "content": "{{prompt}}"}, ["user", "{{prompt}}"]])
    async def test_messages_in_a_state_are_as_the_graph_takes_them(self, run_agent: Run, message: object) -> None:
        given = {"messages": [message], "earlier": [{"role": "user", "content": "before"}]}
        ran = await run_agent(named("chats", input=given, output="answer"))
        assert ran.transcript.final_output == "hello after 1", ran.events[-1]

    async def test_a_part_of_the_state_that_nothing_gave(self, run_agent: Run) -> None:
        error = failure(await run_agent(named("mails")))
        assert "raised KeyError: 'email' (of_named_langgraph.py, line" in error.message
        assert "has no `email` when it begins: write `input: {email: ...}`" in error.fix
        mapped = {"input": {"email": {"subject": "{{prompt}}"}}}
        ran = await run_agent(named("mails", **mapped))
        assert ran.transcript.final_output == "About hello"
        error = failure(await run_agent(named("mails", input={"email": {}})))
        assert "when it begins" not in error.fix

    @pytest.mark.parametrize(
        ("name", "more", "said"),
        [
            ("steps", {"output": "state.anser"}, "`output: state.anser` finds nothing"),
            ("steps", {"messages": "state", "output": "state"}, "`messages` can't be used on an agent that tells its"),
            ("structured", {"input": {"a": 1}}, "takes a text: write a template in `input`, not an object"),
            ("needs", {}, "which needs customer; write `context: {customer: ...}`"),
            ("needs", {"context": {"customr": "x", "customer": "y"}}, "has no customr; its fields: customer, limit"),
            ("needs_path", {}, "which needs folder; write `context: {folder: ...}`"),
            ("outer", {}, "which needs inner; write `context: {inner: ...}`"),
            ("number", {"context": {"a": 1}}, "is of the type int, not {'a': 1}"),
            ("researches", {}, "takes no `messages`, but: topic, depth; write in the agent"),
            ("researches", {}, '`input: {topic: "{{prompt}}", depth: ...}` and `output: info`'),
            ("own", {}, '`input: {question: "{{prompt}}"}` and `output: answer`'),
            ("own", {"input": {"question": "q"}, "output": "anser"}, "`output: anser` finds nothing"),
            (
                "own",
                {"input": {"question": "q", "qestion": "q"}, "output": "answer"},
                "has no qestion; it has question, documents",
            ),
            ("Wrong", {}, "which has none of the methods run, "),
        ],
    )
    async def test_what_is_wrong_is_said(self, run_agent: Run, name: str, more: dict[str, Any], said: str) -> None:
        error = failure(await run_agent(named(name, **more)))
        assert said in error.message


NAMED = {
    "pydantic_ai": "deps needs number nested outer needs_path make_later structured retried prompted",
    "openai_agents": "openai make_openai repeating with_server hands_over",
    "langgraph": "graph make_graph opened own remembers notes researches mails wishes chats",
}
"""By framework, what its module names. A module imports one framework, so that a test waits for no other."""
PACKAGES = {"pydantic_ai": "pydantic_ai", "openai_agents": "agents", "langgraph": "langgraph"}


def named(name: str, **more: Any) -> dict[str, Any]:
    framework = next((framework for framework, names in NAMED.items() if name in names.split()), "")
    place = Path(os.environ.get("AGENTEVAL_FRAMEWORKS", "")) / "named" / "bin" / "python"
    if "AGENTEVAL_FRAMEWORKS" in os.environ and place.is_file():
        more["python"] = str(place)
    elif framework and importlib.util.find_spec(PACKAGES[framework]) is None:
        pytest.skip(f"{framework} is not installed, and AGENTEVAL_FRAMEWORKS names no folder that has it")
    return python(f"of_named{framework and '_' + framework}:{name}", **more)


TAKES_CONTEXT = """
import dataclasses
@dataclasses.dataclass
class Shop:
    name: str
    limit: int = 3
def shop(): return Shop("made")
def plain(prompt, context): return repr(context)
def typed(prompt, context: "Shop | None" = None): return repr(context)
async def later(prompt, *, context: Shop): yield repr(context)
def whole(request): return repr(request["context"])
def without(prompt): return "nothing"
def ready(): return "nothing"
async def stream(prompt): yield "nothing"
class Bot:
    def run(self, prompt, context: Shop): return repr(context)
class Deaf:
    def run(self, prompt): return "nothing"
class Called:
    def __call__(self, prompt, context: Shop): return repr(context)
def make(kind): return Called()
bot, deaf, called = Bot(), Deaf(), Called()
"""


class TestFilesInPackages:
    """A file in a package is imported with the packages around it: what lies beside it shadows no library."""

    async def test_its_folder_does_not_shadow_a_library(self, run_agent: Run, tmp_path: Path) -> None:
        shop = tmp_path / "shop"
        shop.mkdir()
        (shop / "__init__.py").touch()
        (shop / "yaml.py").write_text("import yaml\nfrom .words import greet\ndef f(prompt): return greet(yaml)\n")
        (shop / "words.py").write_text("def greet(yaml): return yaml.safe_load('hello') + ' ' + __name__\n")
        ran = await run_agent(python("shop/yaml.py:f"))
        assert ran.transcript.final_output == "hello shop.words", ran.events

    async def test_what_lies_beside_it_is_found_by_its_bare_name_too(self, run_agent: Run, tmp_path: Path) -> None:
        shop = tmp_path / "deep" / "shop"
        shop.mkdir(parents=True)
        (shop / "__init__.py").touch()
        (shop / "bot.py").write_text("import words\nimport shop.words\ndef f(prompt): return words.HELLO\n")
        (shop / "words.py").write_text("HELLO = 'hello'\n")
        ran = await run_agent(python("deep/shop/bot.py:f"))
        assert ran.transcript.final_output == "hello", ran.events


@pytest.mark.asyncio(loop_scope="class")
class TestContextOfFunctions:
    """The option `context` of an agent that is a function of one's own."""

    FILES: ClassVar = {"mine.py": TAKES_CONTEXT}

    @pytest.mark.parametrize(
        ("name", "context", "said"),
        [
            ("plain", {"name": "{{prompt}}"}, "{'name': 'hello'}"),
            ("plain", "mine:shop", "Shop(name='made', limit=3)"),
            ("typed", {"name": "a", "limit": "7"}, "Shop(name='a', limit=7)"),
            ("later", {"name": "a"}, "Shop(name='a', limit=3)"),
            ("whole", {"name": "a"}, "{'name': 'a'}"),
            ("bot", {"name": "a"}, "Shop(name='a', limit=3)"),
            ("Bot", {"name": "a"}, "Shop(name='a', limit=3)"),
            ("called", "mine:shop", "Shop(name='made', limit=3)"),
        ],
    )
    async def test_it_reaches_the_parameter(self, run_of_class: Run, name: str, context: Any, said: str) -> None:
        ran = await run_of_class(python(f"mine:{name}", context=context))
        assert ran.transcript.final_output == said, ran.events

    async def test_it_goes_beside_an_input_of_fields(self, run_agent: Run, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "def f(question, context=None): return question + repr(context)", encoding="utf-8"
        )
        ran = await run_agent(python("mine:f", context={"a": 1}, input={"question": "{{prompt}}?"}))
        assert ran.transcript.final_output == "hello?{'a': 1}"

    @pytest.mark.parametrize("name", ["without", "ready", "stream", "deaf", "Deaf"])
    async def test_without_a_parameter_it_is_refused(self, run_of_class: Run, name: str) -> None:
        problem = failure(await run_of_class(python(f"mine:{name}", context={"name": "a"}))).message
        assert "can't be given the fields of `context`" in problem
        assert "parameter `context`" in problem

    async def test_a_field_that_its_type_has_not_is_refused(self, run_of_class: Run) -> None:
        problem = failure(await run_of_class(python("mine:typed", context={"name": "a", "nam": 1}))).message
        assert "Shop" in problem
        assert "has no nam" in problem


class TestArgumentsOfTypes:
    """What `input` gives a parameter is made into the type that it declares."""

    MODULE = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Dict, List, Optional, TypedDict
@dataclass(frozen=True)
class Line:
    user: str
    text: Optional[str] = None
@dataclass
class Limits:
    model: str
    tokens: int = 5
class Row(TypedDict):
    user: str
def reply(lines: List[Line], limits: Optional[Limits] = None, rows: List[Row] = (), by_name: Dict[str, Line] = {}):
    return f"{lines[-1].user}: {lines[-1].text} {limits.tokens if limits else '-'} {list(rows)} {by_name}"
"""

    @pytest.mark.parametrize(
        ("given", "answer"),
        [
            ({"lines": [{"user": "bob", "text": "{{prompt}}"}]}, "bob: hello - [] {}"),
            ({"lines": [{"user": "ana"}], "limits": {"model": "m", "tokens": "7"}}, "ana: None 7 [] {}"),
            ({"lines": [{"user": "a"}], "rows": [{"user": "x"}]}, "a: None - [{'user': 'x'}] {}"),
            ({"lines": [{"user": "a"}], "by_name": {"b": {}}}, "a: None - [] {'b': {}}"),
        ],
    )
    async def test_objects(self, run_agent: Run, tmp_path: Path, given: dict[str, Any], answer: str) -> None:
        (tmp_path / "mine.py").write_text(self.MODULE, encoding="utf-8")
        ran = await run_agent(python("mine:reply", input=given))
        assert ran.transcript.final_output == answer, ran.events

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ([{"text": "x"}], "the argument lines of mine:reply is a Line, which needs user; write it in `input`"),
            ([{"user": "a", "txt": "x"}], "which has no txt; its fields: user, text"),
        ],
    )
    async def test_fields_that_are_wrong(self, run_agent: Run, tmp_path: Path, given: Any, problem: str) -> None:
        (tmp_path / "mine.py").write_text(self.MODULE, encoding="utf-8")
        assert problem in failure(await run_agent(python("mine:reply", input={"lines": given}))).message


class TestDecorators:
    """A function of which a decorator hides the parameters, for want of `functools.wraps`, is asked all the same."""

    MODULE = """
def logged(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
@logged
def answer(question, size=1): return question + "!" * size
@logged
async def later(question): return question + "?"
class Bot:
    def run(self, prompt): return "Bot: " + prompt
@logged
def make(): return Bot()
@logged
def chat(messages): return " ".join(message["content"] for message in messages)
def registered(function):
    NAMES[function.__name__] = function
    def wrapper(*args, **kwargs):
        return NAMES["by_name"](*args, **kwargs)
    return wrapper
NAMES = {}
@registered
def by_name(question): return question + "."
"""

    @pytest.mark.parametrize(
        ("name", "options", "answer"),
        [
            ("answer", {}, "hello!"),
            ("later", {}, "hello?"),
            ("make", {}, "Bot: hello"),
            ("chat", {}, "hello"),
            ("by_name", {}, "hello."),
            ("answer", {"input": {"question": "{{prompt}}", "size": 2}}, "hello!!"),
            ("answer", {"input": "Oh {{prompt}}"}, "Oh hello!"),
        ],
    )
    async def test_what_is_wrapped_gets_the_prompt(
        self, run_agent: Run, tmp_path: Path, name: str, options: dict[str, Any], answer: str
    ) -> None:
        (tmp_path / "mine.py").write_text(self.MODULE, encoding="utf-8")
        ran = await run_agent(python(f"mine:{name}", **options))
        assert ran.transcript.final_output == answer, ran.events

    async def test_what_takes_only_the_prompt_does_not_continue_a_conversation(
        self, run_agent: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "mine.py").write_text(self.MODULE, encoding="utf-8")
        said = (Message("user", "hello"), Message("assistant", "Yes?"), Message("user", "and now?"))
        for name in ("answer", "by_name"):
            error = failure(await run_agent(python(f"mine:{name}"), messages=said))
            assert "takes only the prompt" in error.message


class TestFactoriesWithSettings:
    """What needs only what the agent's settings have makes the agent."""

    MODULE = """
class Bot:
    def __init__(self, tone): self.tone = tone
    def run(self, prompt): return self.tone + " " + prompt
def make(tone, size=3): return Bot(tone)
async def later(*, tone): return Bot(tone)
def answer(tone, prompt): return tone + "! " + prompt
"""

    @pytest.mark.parametrize("name", ["make", "later", "Bot"])
    async def test_its_parameters_are_the_settings(self, run_agent: Run, tmp_path: Path, name: str) -> None:
        (tmp_path / "mine.py").write_text(self.MODULE, encoding="utf-8")
        ran = await run_agent(python(f"mine:{name}", settings={"tone": "kind"}))
        assert ran.transcript.final_output == "kind hello", ran.events

    async def test_a_parameter_config_of_a_class_of_its_own_is_left_alone(self, run_agent: Run, tmp_path: Path) -> None:
        text = (
            "class Config:\n    size = 3\n"
            "class Bot:\n"
            "    def __init__(self, tone, config: 'Config | None' = None, settings: dict = {}):\n"
            "        self.tone, self.config, self.settings = tone, config or Config(), settings\n"
            "    def run(self, prompt): return f'{self.tone} {self.config.size} {self.settings}'\n"
        )
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
        ran = await run_agent(python("mine:Bot", settings={"tone": "kind"}))
        assert ran.transcript.final_output == "kind 3 {'tone': 'kind'}", ran.events

    async def test_what_is_called_as_a_prompt_is_no_setting(self, run_agent: Run, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text("def answer(question): return 'asked ' + question\n", encoding="utf-8")
        ran = await run_agent(python("mine:answer", settings={"question": "of the settings"}))
        assert ran.transcript.final_output == "asked hello"

    @pytest.mark.parametrize("name", ["request", "prompt", "messages", "context", "test"])
    async def test_what_a_class_does_not_need_is_of_its_own(self, run_agent: Run, tmp_path: Path, name: str) -> None:
        text = f"class Bot:\n    def __init__(self, *, {name}=None, **more): self.mine, self.model = {name}, 'm'\n"
        (tmp_path / "bot.py").write_text(
            f"{text}    def run(self, message): return f'{{message}} {{self.mine}}'\n", "utf-8"
        )
        assert (await run_agent(python("bot:Bot"), "Hi")).transcript.final_output == "Hi None"

    async def test_without_them_it_is_no_factory(self, run_agent: Run, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text("def make(tone): return 'asked ' + tone\n", encoding="utf-8")
        ran = await run_agent(python("mine:make", settings={"size": 1}))
        assert ran.transcript.final_output == "asked hello"


@pytest_asyncio.fixture(scope="class", loop_scope="class")
async def run_of_class(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Run]:
    """Runs in a folder with the `FILES` of the class, forked off one process that has imported them (`Lease`)."""
    folder = tmp_path_factory.mktemp("named")
    for name, text in request.cls.FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    lease = Lease()
    yield run_in(folder)
    await lease.close()


@pytest.mark.asyncio(loop_scope="class")
class TestMethods:
    """A method of a class, asked of an object that each run makes."""

    DESK = (
        "class Base:\n"
        "    def __init__(self, city='Graz', config=None):\n"
        "        self.city, self.config, self.asked = city, config, []\n"
        "    def propagate(self, company, day, kind='stock'):\n"
        "        self.asked.append(company)\n"
        "        return {'state': 1}, f'{self.city} {company} {day} {kind} {len(self.asked)}'\n"
        "    def configured(self, prompt):\n"
        "        return str(self.config)\n"
        "    async def wait(self, question):\n"
        "        return f'{self.city}: {question}'\n"
        "    def steps(self, question):\n"
        "        yield from question.split('l')\n"
        "    @staticmethod\n"
        "    def plain(prompt):\n"
        "        return f'plain {prompt}'\n"
        "    @classmethod\n"
        "    def of_class(cls, prompt):\n"
        "        return f'{cls.__name__} {prompt}'\n"
        "class Desk(Base):\n"
        "    pass\n"
        "class Needs(Base):\n"
        "    def __init__(self, city, model):\n"
        "        super().__init__(city)\n"
    )
    FILES: ClassVar = {"desk.py": DESK}

    @pytest.mark.parametrize(
        ("name", "options", "answer"),
        [
            ("Desk.wait", {}, "Graz: hello"),
            ("Desk.wait", {"settings": {"city": "Wien"}}, "Wien: hello"),
            ("Desk.configured", {"settings": {"city": "Wien"}}, "None"),
            ("Desk.configured", {"settings": {"tone": "kind"}}, "{'tone': 'kind'}"),
            ("Desk.steps", {}, "heo"),
            ("Desk.plain", {}, "plain hello"),
            ("Desk.of_class", {}, "Desk hello"),
            ("Needs.wait", {"settings": {"city": "Linz", "model": "m"}}, "Linz: hello"),
            (
                "Desk.propagate",
                {"input": {"company": "{{prompt}}", "day": "Monday"}, "output": "[1]"},
                "Graz hello Monday stock 1",
            ),
        ],
    )
    async def test_an_object_is_made_and_asked(
        self, run_of_class: Run, name: str, options: dict[str, Any], answer: str
    ) -> None:
        for _ in range(2):  # the second run sees nothing of the first
            ran = await run_of_class(python(f"desk.py:{name}", **options))
            assert ran.transcript.final_output == answer

    async def test_what_the_class_needs_is_named(self, run_of_class: Run) -> None:
        error = failure(await run_of_class(python("desk.py:Needs.wait", settings={"city": "Linz"})))
        assert "Needs is made with model; write it in `settings`" in error.message
