"""What people write in a suite, as typed values.

Strict: unknown keys and wrong types are errors. Reading YAML (with positions and remedies) is `load`'s job; these
models hold the result, check what a type alone can't say, and give the JSON Schema for editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.ids import criterion_names
from agenteval_tui.core.options import MOST_CONCURRENCY, MOST_REPETITIONS
from agenteval_tui.core.schema_rules import NAME_CHARACTERS, at_least_one, exactly_one, given, where, without
from agenteval_tui.suites.callable_name import callable_rule, named_callable
from agenteval_tui.suites.command_words import COMMAND_RULE, checked_command

Category = Literal["happy_path", "edge_case", "negative"]
CriterionSeverity = Literal["error", "warning", "info"]


# pydantic looks at the signature of every default factory; those of `list` and `dict` it has to parse from a text.
def _no_items() -> list[Any]:
    return []


def _no_entries() -> dict[str, Any]:
    return {}


class _Strict(BaseModel):
    # Built when it is first used: a check of a suite needs a few of these models, and to build one takes longer.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class LoadWarning(NamedTuple):
    """What a type alone can't say is wrong. `at` is the key it is about ("" for the whole object)."""

    code: str
    message: str
    at: str = ""
    fix: str = ""


COMPLAINED: dict[str, Any] = {}
"""The context of a validation whose caller has asked for the complaints."""


class _Checked(_Strict):
    """A model with rules over several fields. `load` asks for `complaints` itself, to report all with their places.

    What of the rules JSON Schema can say is in `json_schema_extra` beside them, for editors.
    """

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        """What is wrong in `data` (plain values or models by key; absent keys may be missing or have defaults)."""
        return iter(())

    @model_validator(mode="after")
    def _no_complaints(self, info: ValidationInfo) -> Self:
        if info.context is COMPLAINED:
            return self
        for complaint in self.complaints(self.__dict__):
            # The text is a value of the template, not the template: it may hold braces.
            raise PydanticCustomError("rule", "{text}", {"text": complaint.message})
        return self


class Criterion(_Strict):
    """One thing that a run must fulfil: an extraction (`prototype_class`) and what is checked on it (`config_uxon`)."""

    name: str = Field(min_length=1, description="What the criterion checks, in a few words.")
    description: str = Field(default="", description="Why, or how, in more detail.")
    expected_value: str | None = Field(
        default=None, description="The right answer; configs can use it as {{expected_value}}."
    )
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="Its weight in the test's score.")
    severity: CriterionSeverity = Field(default="error", description="Only criteria of severity `error` fail a test.")
    negate: bool = Field(default=False, description="Passes when the check fails. An error stays an error.")
    pass_threshold: float | None = Field(
        default=None, ge=0, le=1, description="It passes when its score reaches this, instead of when all metrics pass."
    )
    prototype_class: str = Field(min_length=1, description="What it looks at: TextResponse, ToolResponse, ...")
    config_uxon: str | dict[str, Any] = Field(
        description="The configuration, as UXON text (JSON with comments) or as YAML."
    )


class RequestResponse(_Checked):
    """One canned answer of a mock tool. It answers `request`, any of `requests`, or calls with these `arguments`."""

    model_config = ConfigDict(json_schema_extra={"allOf": [at_least_one("request", "requests", "arguments")]})

    request: str | None = Field(default=None, description="The value of the call's first argument.")
    requests: list[str] | None = Field(default=None, description="Several requests with the same answer.")
    arguments: dict[str, Any] | None = Field(
        default=None, description="Arguments of the call, by name; the call may have more, even in nested objects."
    )
    exact: bool = Field(default=False, description="true: the call has exactly these `arguments`.")
    response: Any = Field(description="What the tool returns: a text, or a value to send as JSON.")

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        if all(data.get(key) is None for key in ("request", "requests", "arguments")):
            fix = "add `request`, `requests` or `arguments`"
            yield LoadWarning("missing-required", "a request_response_pair has to say which call it answers", fix=fix)


class SampleTool(_Strict):
    """A mock tool: canned answers, and `sample_response` for every other call."""

    name: str | None = Field(default=None, description="The tool's name, if tools are a list.")
    description: str = Field(default="", description="The description of the tool for the model.")
    parameters: dict[str, Any] | None = Field(default=None, description="JSON Schema of the arguments.")
    arguments: Any = Field(default=None, description="The arguments, as Power UI declares them.")
    request_response_pairs: list[RequestResponse] | dict[str, Any] = Field(
        default_factory=_no_items, description="Canned answers: a list of pairs, or request: response."
    )
    sample_response: Any = Field(default=None, description="The answer to all other calls.")


class ChangedTool(_Strict):
    """What the model is told of a tool that the agent has."""

    description: str | None = Field(default=None, description="Another description of the tool for the model.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="Another JSON Schema of the arguments for the model."
    )


class Context(_Checked):
    """Power UI's testing context: what the agent gets in place of its real surroundings.

    All other keys are fields of the run context of a Python agent (`deps`, `context`, inputs, session state).
    """

    model_config = ConfigDict(extra="allow")

    sample_system_prompt: str | None = Field(default=None, description="Replaces the agent's system prompt.")
    sample_tools: dict[str, SampleTool] | list[SampleTool] = Field(
        default_factory=_no_entries,
        description="Mock tools by name (or a list of tools with names).",
        json_schema_extra={
            "items": {**given("name"), "properties": {"name": {"pattern": ".", "not": {"type": "null"}}}}
        },
    )
    without_tools: list[str] = Field(
        default_factory=_no_items, description="Tools of the agent to withhold from its model."
    )
    unseen_tools: list[str] = Field(
        default_factory=_no_items, description="As without_tools, of tools that the agent need not have."
    )
    changed_tools: dict[str, ChangedTool] = Field(
        default_factory=_no_entries,
        description="Other descriptions of tools for the model, by name.",
    )
    sample_concepts: dict[str, Any] = Field(
        default_factory=_no_entries, description="Values of the placeholders in the system prompt."
    )
    input_data: Any = Field(default=None, description="Input data for the prompt.")
    object_alias: str | None = Field(default=None, description="The object that Power UI had open.")
    action_alias: str | None = Field(default=None, description="The action in Power UI that the prompt came from.")
    page_alias: str | None = Field(default=None, description="The page that Power UI showed.")

    def tools(self) -> list[SampleTool]:
        """The mock tools, each with its name, however they were written."""
        if isinstance(self.sample_tools, list):
            return list(self.sample_tools)
        return [tool.model_copy(update={"name": name}) for name, tool in self.sample_tools.items()]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for an agent: `sample_tools` is a list of objects with `name`, pairs are a list of objects."""
        out = self.model_dump(exclude_none=True, exclude_defaults=True)
        if self.sample_tools:
            out["sample_tools"] = [_tool_dict(tool) for tool in self.tools()]
        return out

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        for name in data:
            # Other keys are allowed here: only what differs by a letter or two, or in its case, is a mistake.
            near = None if name in cls.model_fields else closest(name, cls.model_fields, least=0.85)
            if near is not None:
                yield LoadWarning("unknown-key", f"context has no {name!r}", at=name, fix=f"did you mean `{near}`?")
        tools = data.get("sample_tools")
        if isinstance(tools, list) and not all(_field(tool, "name") for tool in tools):
            yield LoadWarning(
                "missing-required",
                "every tool in a list of sample_tools needs a name",
                at="sample_tools",
                fix="add `name: ...` to each, or write the tools as `name: {...}`",
            )


def _tool_dict(tool: SampleTool) -> dict[str, Any]:
    out = tool.model_dump(exclude_none=True, exclude_defaults=True)
    pairs = tool.request_response_pairs
    if isinstance(pairs, dict):
        out["request_response_pairs"] = [{"request": str(key), "response": value} for key, value in pairs.items()]
    return out


class ContentPart(_Checked):
    """A part of a message: a text, an image or a file. A text that an agent reads is a template over `variables`, and
    so are addresses and paths."""

    model_config = ConfigDict(json_schema_extra={"allOf": [exactly_one("text", "image", "file")]})

    text: str | None = Field(default=None, description="A text.")
    image: str | None = Field(default=None, description="An image: a file in the suite's folder, or a URL.")
    file: str | None = Field(default=None, description="A file, such as a PDF: in the suite's folder, or a URL.")
    description: str | None = Field(default=None, description="What the image or file shows; criteria see this text.")
    media_type: str | None = Field(
        default=None, min_length=1, description="Its media type, as in HTTP. Default: from the file's extension."
    )

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        keys = [key for key in ("text", "image", "file") if data.get(key) is not None]
        if len(keys) != 1:
            message = (
                (f"a part can be only one of text, image and file; this one has {' and '.join(keys)}")
                if keys
                else "a part is a text, image or file"
            )
            yield LoadWarning("missing-required", message, fix="write one of `text`, `image` and `file`")
        elif keys == ["text"]:
            for key in ("description", "media_type"):
                if data.get(key) is not None:
                    yield LoadWarning("wrong-value", f"a text has no {key}", at=key, fix=f"remove `{key}`")


class InputMessage(_Checked):
    """A message of the conversation that a test starts with."""

    role: Literal["system", "developer", "user", "assistant", "tool"] = Field(description="Who says it.")
    content: str | list[ContentPart] = Field(
        default="",
        description="The content: a Jinja2 template over `variables`, or a list of texts, images and files.",
    )
    name: str | None = Field(default=None, description="The speaker's name; for a tool's result, the tool's name.")
    tool_calls: list[Any] = Field(default_factory=_no_items, description="As OpenAI chat messages have them.")
    tool_call_id: str | None = Field(default=None, description="The id of the call that this is the result of.")

    @property
    def texts(self) -> str:
        """What is said, with each image and file as what it is called in the suite."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(
            part.text if part.text is not None else f"[{part.description or part.image or part.file}]"
            for part in self.content
        )

    @property
    def templates(self) -> list[str]:
        """The texts of its content that are templates."""
        if isinstance(self.content, str):
            return [self.content]
        parts = [(part.text, part.image, part.file, part.description) for part in self.content]
        return [text for texts in parts for text in texts if text is not None]

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        content = data.get("content")
        if data.get("role") != "user" and isinstance(content, list):
            for part in content:
                if _field(part, "image") or _field(part, "file"):
                    message = "only user messages can have images and files"
                    yield LoadWarning("wrong-value", message, at="content", fix="put it in a user message")
                    return


class Variation(_Strict):
    """The same test with another agent or configuration; what is absent is inherited."""

    name: str = Field(min_length=1, description="Its name, unique among the test's variations.")
    agent: str | None = Field(default=None, description="Another agent. Default: the test's.")
    repeat: int | None = Field(
        default=None, ge=1, le=MOST_REPETITIONS, description="How often it runs. Default: as often as the test."
    )
    context: Context | None = Field(default=None, description="Merged into the test's context, key by key.")
    config: dict[str, Any] = Field(
        default_factory=_no_entries, description="Deep-merged into the agent's configuration."
    )


class Dataset(_Strict):
    """A file of rows; each row is a run, its columns are variables."""

    file: str = Field(
        min_length=1,
        description="A .csv, .tsv, .json, .jsonl, .yaml, .xlsx, .parquet or .arrow file, or a folder, from the suite.",
    )
    split: str | None = Field(
        default=None, min_length=1, description="The split of a folder; required if there are several."
    )
    encoding: str | None = Field(
        default=None,
        min_length=1,
        description="A text file's encoding, e.g. windows-1252. Default: UTF-8, or what its byte order mark says.",
    )
    limit: int | None = Field(default=None, ge=1, description="Use only this many rows, from the start.")
    row_id: str | None = Field(
        default=None, min_length=1, description="The column that identifies rows. Default: `id`, if there is one."
    )


class Stop(_Strict):
    """Stop repeating a test early, once its pass rate is decided."""

    when: Literal["decided"] = Field(default="decided", description="When to stop: once the pass rate is decided.")
    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="The probability of a wrong decision.")
    threshold: float = Field(
        default=0.8,
        gt=0,
        lt=1,
        description="The pass rate to decide against. Default: that of the test's gate; without a gate, 0.8.",
    )


class Gate(_Strict):
    """How often a test must pass. Without a gate, every run of it must."""

    pass_rate: float = Field(
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="The share of the runs that must pass: of all repetitions and rows, in each variation.",
    )


class Defaults(_Strict):
    """What tests of this suite have when they don't say otherwise."""

    repeat: int = Field(default=1, ge=1, le=MOST_REPETITIONS, description="How often each test runs.")
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Seconds for a whole run.")
    pass_threshold: float | None = Field(
        default=None, ge=0, le=1, description="The lowest score that passes, for tests without their own."
    )
    concurrency: int | None = Field(default=None, ge=1, le=MOST_CONCURRENCY, description="Runs at the same time.")
    stop: Stop | None = Field(default=None, description="Stop repeating a test early.")


MAX_USER_TURNS = 10
"""How often a simulated user speaks at most, unless its test says so."""


class ServiceReady(_Checked):
    """What tells that a service is ready: an address that answers, a port that is open, or a line of its output."""

    model_config = ConfigDict(json_schema_extra={"allOf": [exactly_one("url", "port", "log")]})

    url: str | None = Field(
        default=None, min_length=1, description="An address: ready once a GET is answered (2xx, 3xx, 400 to 403)."
    )
    port: int | None = Field(
        default=None, ge=1, le=65_535, description="A port of this machine: ready once it is open."
    )
    log: str | None = Field(
        default=None, min_length=1, description="A regular expression: ready once a line of its output matches."
    )

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        keys = [key for key in ("url", "port", "log") if data.get(key) is not None]
        if len(keys) != 1:
            what = f"this one has {' and '.join(keys)}" if keys else "this one has no such key"
            message = f"a service is ready by exactly one of url, port and log; {what}"
            yield LoadWarning("missing-required", message, fix="write one of `url`, `port` and `log`")
        log = data.get("log")
        if isinstance(log, str):
            try:
                re.compile(log)
            except re.error as error:
                message = f"log is not a regular expression: {error}"
                yield LoadWarning("wrong-value", message, at="log", fix="put a backslash before each special character")
        url = data.get("url")
        if isinstance(url, str) and "${" not in url and not re.match(r"https?://[^/\s]+", url):
            fix = "write http://127.0.0.1:PORT/"
            yield LoadWarning("wrong-value", "url is not the address of a web server", at="url", fix=fix)


class Service(_Checked):
    """A program that runs beside the runs: started before the first run that needs it, and ended with the execution."""

    model_config = ConfigDict(json_schema_extra={"allOf": [COMMAND_RULE]})

    command: str | list[str] = Field(description="What to run: a list of words, or a text that is split into words.")
    shell: bool = Field(default=False, description="true: `command` is a text for /bin/sh, with pipes and variables.")
    ready: ServiceReady = Field(description="What tells that it is ready. No run starts before.")
    cwd: str = Field(default=".", description="The folder to run in, relative to the suite's folder and inside it.")
    env: dict[str, str] = Field(default_factory=_no_entries, description="More environment variables.")
    timeout: float = Field(
        default=60.0, gt=0, allow_inf_nan=False, description="Seconds that it may take until it is ready."
    )
    reuse_existing: bool = Field(
        default=False,
        description="true: if a program answers at its `url` or `port` already, use that one and start nothing.",
    )

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        yield from _wrong_command(data)
        ready = data.get("ready")
        if data.get("reuse_existing") is True and _field(ready, "log") is not None:
            message = "a line of the output can't tell that a service runs already"
            yield LoadWarning("conflict", message, at="reuse_existing", fix="write `url` or `port` in `ready`")


class Hook(_Checked):
    """A command or a Python function that runs before or after runs, with its options."""

    model_config = ConfigDict(
        json_schema_extra={"allOf": [exactly_one("command", "callable"), COMMAND_RULE, callable_rule("callable")]}
    )

    command: str | list[str] | None = Field(
        default=None, description="What to run: a list of words, or a text that is split into words."
    )
    callable: str | None = Field(
        default=None, description="package.module:name or path/to/file.py:name, a Python function."
    )
    shell: bool = Field(default=False, description="true: `command` is a text for /bin/sh, with pipes and variables.")
    env: dict[str, str] = Field(default_factory=_no_entries, description="More environment variables.")
    timeout: float = Field(default=60.0, gt=0, allow_inf_nan=False, description="Seconds that it may take.")

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        command, function = data.get("command"), data.get("callable")
        if (command is None) == (function is None):
            message = "a hook has either a command or a callable" + (", not both" if command is not None else "")
            yield LoadWarning("missing-required", message, fix="write `command: [...]` or `callable: module:function`")
        yield from _wrong_command(data)
        if isinstance(function, str):
            yield from _wrong_callable(function, "callable")


HOOKS = ("before_all", "before", "after", "after_all")
"""The keys of suites and tests with hooks: those before all runs, before and after each run, and after all runs."""
Hooks = list[str | list[str] | Hook]


class WorkdirCopy(_Strict):
    """The working folder of each run is a copy of a folder."""

    copy_of: str = Field(
        alias="copy", min_length=1, description="The folder to copy, relative to the suite's folder and inside it."
    )


def _wrong_command(data: Mapping[str, Any]) -> Iterator[LoadWarning]:
    command, shell = data.get("command"), data.get("shell") is True
    if command is None or not isinstance(command, str | list):
        return
    try:
        checked_command(command, shell)
    except ValueError as error:
        yield LoadWarning("wrong-value", str(error), at="command", fix="write [program, argument]")


def _wrong_callable(name: str, at: str) -> Iterator[LoadWarning]:
    try:
        named_callable(name)
    except ValueError:
        message = f"{name!r} is not package.module:function"
        yield LoadWarning("wrong-value", message, at=at, fix="write a command as a list: [program, argument]")


def hook_complaints(data: Mapping[str, Any]) -> Iterator[LoadWarning]:
    """What is wrong in the hooks of a suite or test."""
    for key in HOOKS:
        for hook in listed if isinstance(listed := data.get(key), list) else ():
            if isinstance(hook, str):
                yield from _wrong_callable(hook, key)
            elif isinstance(hook, list) and not (hook and hook[0]):
                yield LoadWarning("empty", f"a command of {key} is empty", at=key, fix="write [program, argument]")


class SimulatedUser(_Strict):
    """A user that an agent plays: it answers the tested agent until it has what it wants."""

    agent: str = Field(
        min_length=1, description="The agent that plays the user: a name from `agents`, here or in your agents.yaml."
    )
    goal: str = Field(min_length=1, description="What the user wants from the tested agent.")
    persona: str = Field(default="", description="Who the user is, and how they write.")
    knows: str | list[str] | dict[str, Any] | None = Field(
        default=None, description="Facts that the user can give when asked: a text, a list, or key: value."
    )
    stop_when: str = Field(
        default="",
        description="When the user ends the conversation. Default: when the goal is reached or can't be reached.",
    )
    max_turns: int = Field(
        default=MAX_USER_TURNS,
        ge=1,
        le=1_000,
        description="The maximum number of user messages; then the conversation ends.",
    )


PROBE_KINDS = ("command", "file", "files", "sql", "url", "python")
"""What a probe may read; each probe reads one of these."""


class Probe(_Checked):
    """Something outside of the conversation that is read before and after each run: a file, a row of a database.

    Texts are templates over the run's variables, but for `sql`, which gets them as parameters (`:name`).
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                exactly_one(*PROBE_KINDS),
                where(given("sql"), given("database"), without("database", why="only `sql` reads a database")),
                callable_rule("python"),
            ]
        }
    )

    command: str | list[str] | None = Field(
        default=None,
        description="A command whose output is read: a list of words, or a text that is split into words.",
        json_schema_extra={"pattern": r"\S", "minItems": 1},
    )
    file: str | None = Field(default=None, min_length=1, description="A text file to read.")
    files: str | None = Field(
        default=None, min_length=1, description="A pattern (out/*.eml, out/**/*): the text of each file, by its path."
    )
    sql: str | None = Field(
        default=None,
        min_length=1,
        description="A query of a SQLite database; :name stands for the run's variable `name`.",
    )
    database: str | None = Field(default=None, min_length=1, description="The SQLite database that `sql` reads.")
    url: str | None = Field(default=None, min_length=1, description="An address to get (http or https).")
    python: str | None = Field(
        default=None,
        min_length=1,
        description="package.module:name or path/to/file.py:name, a Python function whose result is read.",
    )
    timeout: float = Field(default=10.0, gt=0, allow_inf_nan=False, description="The seconds that reading it may take.")

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        kinds = [key for key in PROBE_KINDS if data.get(key) is not None]
        if len(kinds) != 1:
            listed = ", ".join(PROBE_KINDS[:-1])
            message = (
                f"a probe reads one thing; this one has {' and '.join(kinds)}"
                if kinds
                else "a probe has to say what it reads"
            )
            yield LoadWarning("missing-required", message, fix=f"write one of {listed} and {PROBE_KINDS[-1]}")
        elif kinds == ["sql"] and data.get("database") is None:
            fix = "add `database: ...`, or read another kind of database with `command`"
            yield LoadWarning("missing-required", "`sql` needs the SQLite database that it reads", "sql", fix)
        elif kinds != ["sql"] and data.get("database") is not None:
            yield LoadWarning("conflict", "only `sql` reads a database", "database", "remove `database`")
        yield from _wrong_command(data)
        if isinstance(function := data.get("python"), str):
            try:
                named_callable(function, "python")
            except ValueError as error:
                yield LoadWarning("wrong-value", str(error), "python", "write package.module:function")

    def as_dict(self) -> dict[str, Any]:
        """What was written, as plain data."""
        return self.model_dump(exclude_none=True, exclude_defaults=True)


class Test(_Checked):
    """One task for the agent, and what its run must fulfil."""

    __test__ = False  # not a test of this project: pytest must not collect it

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                at_least_one("prompt", "messages", "turns", "user", "dataset"),
                where(
                    given("prompt"),
                    without("messages", "turns", why="a test has either a prompt or this, not both"),
                ),
                {
                    "anyOf": [
                        # Made from the name, an id needs a letter or a digit.
                        {"required": ["name"], "properties": {"name": {"pattern": f"[^_{NAME_CHARACTERS}]"}}},
                        {"required": ["id"], "properties": {"id": {"not": {"enum": [None, ""]}}}},
                    ]
                },
            ]
        }
    )

    id: str = Field(
        default="",
        description="Unique in the suite, ignoring case. Made from the name if absent.",
        json_schema_extra={
            "pattern": rf"^(?:[^{NAME_CHARACTERS}](?:[-.]|[^{NAME_CHARACTERS}]){{0,199}})?$",
            "minimum": 0,
        },
    )
    name: str = Field(default="", description="What the test is about.")
    description: str = Field(default="", description="What it checks, in more detail.")
    prompt: str | None = Field(
        default=None,
        description="What the agent is asked. A Jinja2 template over `variables`.",
        json_schema_extra={"pattern": r"\S"},
    )
    messages: list[InputMessage] | None = Field(
        default=None, description="A conversation to start from.", json_schema_extra={"minItems": 1}
    )
    turns: list[str] | None = Field(
        default=None,
        description="User messages to send one by one, each after the previous one is answered.",
        json_schema_extra={"minItems": 1},
    )
    user: SimulatedUser | None = Field(
        default=None,
        description="A simulated user, who takes over after `prompt`, `messages` or `turns`.",
    )
    category: Category | None = Field(
        default=None, description="The kind of case: a usual one, an edge case, or one to refuse."
    )
    tags: list[str] = Field(default_factory=_no_items, description="Words to select tests by: `run --tag smoke`.")
    repeat: int | None = Field(default=None, ge=1, le=MOST_REPETITIONS, description="How often the test runs.")
    variables: dict[str, Any] = Field(
        default_factory=_no_entries, description="Values that prompts and criteria can use as {{name}}."
    )
    agent: str | None = Field(default=None, description="A name from `agents`, here or in the user's agents.yaml.")
    criteria: list[Criterion] = Field(min_length=1, description="The criteria that grade each run.")
    variations: list[Variation] = Field(
        default_factory=_no_items, description="Other configurations to run it with, in addition to the default."
    )
    dataset: Dataset | None = Field(default=None, description="A file with rows: the test runs once per row.")
    context: Context | None = Field(
        default=None, description="Power UI's testing context: a system prompt, mock tools, input data."
    )
    state: dict[str, Probe] = Field(
        default_factory=_no_entries,
        description="What is read before and after each run, by name, in addition to the suite's; "
        "criteria of the class State check it.",
    )
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Seconds for a whole run.")
    pass_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The lowest score that passes; a failed criterion of severity `error` still fails the test.",
    )
    gate: Gate | None = Field(default=None, description="How often it must pass; if absent, the suite's gate.")
    stop: Stop | None = Field(default=None, description="Stop repeating it early.")
    before_all: Hooks = Field(default_factory=_no_items, description="Hooks to run once, before the test's first run.")
    before: Hooks = Field(
        default_factory=_no_items,
        description="Hooks to run before each run. What they print as a JSON object becomes variables of the run.",
    )
    after: Hooks = Field(default_factory=_no_items, description="Hooks to run after each run, whatever happened in it.")
    after_all: Hooks = Field(default_factory=_no_items, description="Hooks to run once, after the test's last run.")
    workdir: Literal["fresh"] | WorkdirCopy | None = Field(
        default=None, description="The working folder of each run: a `fresh` one, or a `copy` of a folder."
    )
    exclusive: str | None = Field(
        default=None, min_length=1, description="Runs of tests with the same name here run one after another."
    )

    @property
    def criterion_names(self) -> tuple[str, ...]:
        """What tells the criteria apart, in their order: their names, made unique."""
        return criterion_names(criterion.name for criterion in self.criteria)

    @classmethod
    def complaints(cls, data: Mapping[str, Any]) -> Iterator[LoadWarning]:
        prompt, messages, turns = data.get("prompt"), data.get("messages"), data.get("turns")
        user = data.get("user")
        if prompt is not None and messages is not None:
            fix = "make the prompt the last message"
            yield LoadWarning("conflict", "a test has either a prompt or messages, not both", "messages", fix)
        if prompt is not None and turns is not None:
            fix = "make the prompt the first turn"
            yield LoadWarning("conflict", "a test has either a prompt or turns, not both", "turns", fix)
        for key, listed in (("messages", messages), ("turns", turns)):
            if listed == []:
                yield LoadWarning("empty", f"{key} is empty", key, "add one, or write a prompt instead")
        if all(source is None for source in (prompt, messages, turns, user, data.get("dataset"))):
            message = "this test does not ask anything: it needs a prompt (or messages, turns, or a user)"
            yield LoadWarning("missing-required", message, "prompt", "add `prompt: ...`")
        if isinstance(prompt, str) and not prompt.strip():
            yield LoadWarning("empty", "the prompt is empty", "prompt", "write what to ask the agent")
        if isinstance(messages, list) and messages and not turns and user is None:
            role = _field(messages[-1], "role")
            if role in ("system", "developer", "assistant"):
                message = f"the agent answers the last message, so it can't have the role {role}"
                yield LoadWarning("conflict", message, "messages", "end with `role: user`, or add `turns`")
        yield from _twice(data.get("variations"))
        yield from hook_complaints(data)


def _field(data: object, key: str) -> object:
    return data.get(key) if isinstance(data, dict) else getattr(data, key, None)


def _twice(variations: Any) -> Iterator[LoadWarning]:
    earlier: set[str] = set()
    for variation in variations if isinstance(variations, list) else ():  # a value that is not a list was reported
        name = _field(variation, "name")
        if isinstance(name, str):
            if name.casefold() in earlier:
                message = f'two variations have the name "{name}"'
                yield LoadWarning("duplicate", message, "variations", "give each variation its own name")
            earlier.add(name.casefold())


class AgentConfig(BaseModel):
    """An agent's configuration: its `kind`, and what that kind of agent takes (kept as it is, unexpanded)."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    kind: str = Field(min_length=1, description="The kind of agent, which decides the available options.")

    @property
    def options(self) -> dict[str, Any]:
        """All keys but `kind`."""
        return dict(self.model_extra or {})

    def as_dict(self) -> dict[str, Any]:
        """`kind` and the options: what `agents.registry.make_agent` takes."""
        return {"kind": self.kind, **self.options}


class Suite(_Strict):
    """A file of tests."""

    name: str = Field(default="", description="Made from the file's name if absent.")
    description: str = Field(default="", description="What the suite is about.")
    agent: str | None = Field(default=None, description="The agent of tests without one.")
    tags: list[str] = Field(default_factory=_no_items, description="Tags of every test.")
    defaults: Defaults = Field(default_factory=Defaults, description="Defaults for the tests.")
    gate: Gate | None = Field(default=None, description="The gate of every test without its own.")
    metrics: Literal["umbraco"] | None = Field(
        default=None,
        description="umbraco: also show pass@k and pass^k as Umbraco AI defines them (passed/total, all passed).",
    )
    agents: dict[str, AgentConfig] = Field(
        default_factory=_no_entries, description="Agents of this suite, by name, in addition to your agents.yaml."
    )
    services: dict[str, Service] = Field(
        default_factory=_no_entries, description="Programs to run beside the runs, by name, such as the agent's server."
    )
    before_all: Hooks = Field(default_factory=_no_items, description="Hooks to run once, before the suite's first run.")
    before: Hooks = Field(default_factory=_no_items, description="Hooks to run before each run of each test.")
    after: Hooks = Field(
        default_factory=_no_items, description="Hooks to run after each run of each test, whatever happened in it."
    )
    after_all: Hooks = Field(default_factory=_no_items, description="Hooks to run once, after the suite's last run.")
    workdir: Literal["fresh"] | WorkdirCopy | None = Field(
        default=None, description="The working folder of each run, for tests without their own `workdir`."
    )
    exclusive: str | None = Field(
        default=None, min_length=1, description="The `exclusive` of tests without their own: they run one by one."
    )
    state: dict[str, Probe] = Field(
        default_factory=_no_entries,
        description="What is read before and after each run of each test, by name.",
    )
    tests: list[Test] = Field(default_factory=_no_items, description="The tests.", json_schema_extra={"minItems": 1})

    def test(self, test_id: str) -> Test | None:
        """The test with this id, ignoring case."""
        folded_id = test_id.casefold()
        return next((test for test in self.tests if test.id.casefold() == folded_id), None)

    def probe_names(self, test_id: str) -> tuple[str, ...]:
        """The names of the probes of a test; of a test that is not there, those of the suite."""
        test = self.test(test_id)
        return tuple(self.state if test is None else self.probes(test))

    def probes(self, test: Test) -> dict[str, Probe]:
        """The probes of a test: the suite's, and its own, which replace the suite's of the same name."""
        return {**self.state, **test.state} if self.state else test.state
