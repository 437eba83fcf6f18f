"""The options of the kinds `command` and `python`, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.agents.options import AgentOptions, OptionGroup
from agenteval_tui.agents.process.project_environment import import_root
from agenteval_tui.agents.recording.options import AUTO, CAPTURE_RULE, Capture, CassetteOption, checked_capture
from agenteval_tui.grading.json_paths import PathError, usable_path
from agenteval_tui.suites.callable_name import callable_rule, named_callable, parse_callable
from agenteval_tui.suites.command_words import COMMAND_RULE, asks_in_words, checked_command
from agenteval_tui.suites.tool_files import require_inside


class ProgramTimeouts(OptionGroup):
    """Seconds to wait for a program. None: only the run's own time-out counts."""

    first_token: float | None = Field(
        default=None, gt=0, description="For the first event or output, from the program's start."
    )
    silence: float | None = Field(default=None, gt=0, description="For the next event or piece of output.")


Environment = Annotated[dict[str, str], Field(default_factory=dict, description="More environment variables.")]
Patience = Annotated[ProgramTimeouts, Field(default=ProgramTimeouts(), description="How long to wait for its output.")]
OutputLimit = Annotated[
    float, Field(default=16.0, gt=0, description="The limit for its output, in MB. More is an error.")
]


def places_of(target: str, path: Sequence[str], base_dir: Path, trusted: bool) -> list[Path]:
    """The folders of the options `path`, and that from which the file in which `target` is gets imported. Raises
    `AgentevalError` when a file or folder is outside of the suite's folder."""
    file = parse_callable(target).file
    # A file in a package is imported as a module of that package, so the folder is the one around the package.
    own = [import_root(require_inside(file, base_dir, trusted=trusted))] if file else []
    return [*own, *(folder_of(folder, base_dir, trusted) for folder in path)]


def folder_of(cwd: str, base_dir: Path, trusted: bool) -> Path:
    """Where a program runs. Raises `AgentevalError` when that is outside of the suite's folder."""
    return require_inside(cwd, base_dir, trusted=trusted, what="folder")


class CommandOptions(AgentOptions):
    """A program: the request on its standard input, its answer on standard output."""

    usual_capture: ClassVar[str] = AUTO

    # What the validators below check of several options together, for editors, which read only the schema.
    model_config = ConfigDict(json_schema_extra={"allOf": [COMMAND_RULE, CAPTURE_RULE]})

    command: str | list[str] = Field(
        description="What to run: a list of words, or a text that is split into words. With `{{prompt}}` among "
        "the words, they are templates, and the program gets its prompt there."
    )
    shell: bool = Field(False, description="true: `command` is a text for /bin/sh, with pipes and variables.")
    cwd: str = Field(".", description="The folder to run in, relative to the suite's folder and inside it.")
    env: Environment
    input: Literal["json", "text", "line", "none"] = Field(
        "json",
        description="json: the request as one JSON document; text: the last user message alone; line: the same as one "
        "line with its end, as a person types it; none: nothing. Default with `{{prompt}}` in `command`: none.",
    )
    output: Literal["auto", "jsonl", "text"] = Field(
        "auto", description="jsonl: one event per line; text: the answer; auto: decide by the first line."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Your own settings for the program: `config` in its request. Variations can change them.",
    )
    timeouts: Patience
    max_reply_mb: OutputLimit
    capture: Capture
    cassette: CassetteOption
    answer: Literal["printed", "model", "auto"] = Field(
        "printed",
        description="printed: what it prints is its answer; model: what its model said last (with `capture`); auto: "
        "that, if it is in what it prints, else what it prints.",
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_nothing_twice(cls, written: object) -> object:
        # Many programs take what they can read for more of the prompt.
        if isinstance(written, dict) and "input" not in written and asks_in_words(written.get("command", "")):
            return {**written, "input": "none"}
        return written

    @property
    def prefix_problem(self) -> tuple[str, str] | None:
        """Its request must hold the messages."""
        if self.input == "json":
            return None
        return (
            f"gets only the last prompt (`{'command' if self.input == 'none' else f'input: {self.input}'}`)",
            "use `input: json`, continue a recorded run with `agenteval replay`, or let another agent continue: "
            "`agenteval fork RUN --agent NAME`",
        )

    @model_validator(mode="after")
    def _right_command(self) -> Self:
        checked_command(self.command, self.shell)
        checked_capture(self.capture, self.cassette)
        # `auto` records where it can, and an answer must not depend on that; a cassette records all.
        if self.answer != "printed" and self.capture != "model" and self.cassette is None:
            raise ValueError(f"`answer: {self.answer}` needs `capture: model`")
        return self


class PythonOptions(AgentOptions):
    """A Python function, sync, async or a generator, in a process of its own."""

    usual_capture: ClassVar[str] = AUTO

    model_config = ConfigDict(json_schema_extra={"allOf": [callable_rule("callable", whole_files=True), CAPTURE_RULE]})

    callable: str = Field(
        description="package.module:name or path/to/file.py:name: a function, or an agent object; or path/to/app.py: a "
        "Streamlit or Chainlit app."
    )
    path: list[str] = Field(
        default_factory=list,
        description="More folders to find modules in than the project's, relative to the suite's folder and inside it.",
    )
    python: str | None = Field(
        None, description="The interpreter, such as .venv/bin/python. Default: that of the project's environment."
    )
    reuse: bool = Field(
        False, description="true: a process serves many runs, one after another, and keeps imports and globals."
    )
    env: Environment
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Your own settings for the function or the factory: its `config`. Variations can change them.",
    )
    context: Any = Field(
        None,
        description="The run context (`deps`, `context`): its fields, with templates, or package.module:factory.",
    )
    input: Any = Field(
        None,
        description="What the graph or chain gets: a template, or an object with templates. Of an app: its fields and "
        "buttons.",
    )
    output: str | None = Field(None, description="JMESPath of the answer in the state that comes out.")
    messages: str | None = Field(None, description="JMESPath of the messages in the state that comes out.")
    timeouts: Patience
    max_reply_mb: OutputLimit
    capture: Capture
    cassette: CassetteOption

    @property
    def context_factory(self) -> str:
        """The function that makes the context; "" if it is made of fields."""
        try:
            name = named_callable(self.context, "context") if isinstance(self.context, str) else None
        except ValueError:  # a template, or a text that the agent takes as its context
            return ""
        return self.context if name is not None else ""

    @model_validator(mode="after")
    def _right_callable(self) -> Self:
        parse_callable(self.callable)
        for option, path in (("output", self.output), ("messages", self.messages)):
            try:
                usable_path(path)
            except PathError as error:
                raise ValueError(f"`{option}`: {error}") from None
        checked_capture(self.capture, self.cassette)
        return self
