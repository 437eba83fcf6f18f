"""What an agent is: something that takes a conversation and yields events. And what an embedder is, which gives the
vector of a text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from msgspec import Meta, Struct, field

from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.agents.recording.answers import RecordedAnswers
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.core.document import Document
from agenteval_tui.transcripts.model import Attachment, Message, Note, RunError, ToolCall, Transcript, Usage
from agenteval_tui.transcripts.model_request import RequestPart
from agenteval_tui.transcripts.traceback import Traceback

SIMULATED_USER = "simulated_user"
"""The key of a request's `context` with the brief of a simulated user: an agent that finds it plays the user."""
STOP = "###STOP###"
"""What a simulated user writes to end the conversation: tau-bench's word, which models know."""


class ToolSpec(Struct, frozen=True):
    """A tool that the model may call: what a Chat Completions server is told of it (`parameters` is a JSON Schema)."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    @property
    def declared(self) -> dict[str, Any]:
        """As a request of Chat Completions has it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


class Printed(Struct, frozen=True):
    """What the agent's code printed or logged, as it came. `source`: stdout, stderr or log, which has a `level` and the
    name of its `logger`."""

    source: str
    text: str
    level: str = ""
    logger: str = ""


class ToolOutcome(Struct, frozen=True):
    """What a call of a tool gave: JSON text, or with `error` a sentence. `traceback`: where its function raised;
    `printed`: what that function printed and logged."""

    text: str
    error: bool = False
    traceback: Traceback | None = None
    printed: tuple[Printed, ...] = ()


class PaidRequests(Protocol):
    """The answers that servers gave before a run was cut off. A resumed run uses them and doesn't pay again."""

    def take(self, question: Question) -> Answer | None:
        """The answer to an equal request, or None. Each answer is used once."""
        ...

    def add(self, exchange: Exchange) -> None:
        """Keep a server's answer until the run is stored. The exchange contains no keys."""
        ...


class CutOff(Struct):
    """What an agent leaves of a run that is ended from outside: what its models were asked by then, and where its code
    was. `late`: the run's time is over; an agent that sees its code then says where it is."""

    late: bool = False
    traceback: Traceback | None = None
    captured: Captured | None = None


class AgentRequest(Struct, frozen=True):
    """One run's task: the conversation so far, ending with what the agent shall answer.

    The messages' `tool_calls` and `tool_call` are indices into `tool_calls`, as in a transcript. A test with several
    turns asks once a turn: each request holds the whole conversation until then, so that an agent need not remember
    anything; one that does can tell a run by `run` (the same in all its turns and attempts) and `turn` (from 1).

    `config` is the agent's configuration after a variation's was merged in. `context` is the test's testing context
    (Power UI's `sample_system_prompt`, `sample_tools`, ...), or, where the agent plays a simulated user, that user's
    brief under `simulated_user`. `repetition` counts from 1; `seed` is derived from
    test, row and repetition, so that an agent that varies can do so reproducibly. `variables` are the test's, with the
    row's of its dataset; the messages have them filled in already. `paid`: what this run paid for before it was cut
    off, and keeps as it goes; None: nothing is kept. `recorded`: what answers its requests to models in place of the
    servers; None: the servers do, or the agent's own cassette. `workdir`: the folder of its own that the run works in;
    None: it has none. `proxy`: the address of the proxy by way of which it asks its models; "": there is none.
    `cut_off`: for the agent to fill when it is cancelled.
    """

    messages: tuple[Message, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    test_id: str = ""
    repetition: int = 1
    seed: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    run: str = ""
    turn: int = 1
    variables: Mapping[str, Any] = field(default_factory=dict)
    paid: PaidRequests | None = None
    recorded: RecordedAnswers | None = None
    workdir: Path | None = None
    proxy: str = ""
    cut_off: CutOff = field(default_factory=CutOff)

    @property
    def has_answers(self) -> bool:
        """Whether the conversation has answers that this run did not give: it continues another, or its test has
        some. Later turns have those of the run itself, which an agent may remember."""
        return self.turn <= 1 and any(message.role in ("assistant", "tool") for message in self.messages)


# Transcripts of a stored execution: its reference ("last", an id) -> test id -> transcripts in order of repetition.
# The history lies above the agents; whoever makes a `replay` agent passes a function that asks it.
TranscriptSource = Callable[[str], Mapping[str, Sequence[Transcript]]]


class AgentSetup(Struct, frozen=True):
    """What a kind of agent is made of: the one argument of the classes in the entry point group `agenteval.agents`.

    `name` is what the user calls the agent; `config` its options, `kind` among them; relative paths in it are meant
    from `base_dir`; keys are looked up by name in `env`. `transcripts` reads the history (`replay` needs it for
    `execution:`); None: there is no history. `permission` is what the trust check gave:
    programs are started with it, and no agent is made that it does not cover.
    """

    name: str
    config: Mapping[str, Any]
    base_dir: Path
    env: Mapping[str, str] = field(default_factory=dict)
    transcripts: TranscriptSource | None = None
    permission: Permission = NOTHING
    written: Mapping[str, Any] = field(default_factory=dict)
    """`config` before `${VAR}` was expanded: what was brought in must not be repeated."""

    @property
    def trusted(self) -> bool:
        """Whether files and folders outside of `base_dir` may be used."""
        return self.permission.trusted

    def env_with(self, config: Mapping[str, Any]) -> Mapping[str, str]:
        """The environment of an agent with these options, which may have an `env` of their own: a variation's, say."""
        own_env = config.get("env")
        return {**self.env, **own_env} if isinstance(own_env, Mapping) and own_env else self.env


# Events. What an agent yields while it works; the recorder (`recorder.py`) makes a transcript of them.


class PromptSent(Struct, frozen=True):
    """What the model really gets before its first answer, where that is more than the request's messages.

    An agent whose configuration has a system prompt says so with this, before anything else.
    """

    messages: tuple[Message, ...]


class TextDelta(Struct, frozen=True):
    """More text of the answer (of the current assistant message)."""

    text: str


class AgentNamed(Struct, frozen=True):
    """Which agent writes the current message, and those after it; "": not known."""

    name: str


class Attached(Struct, frozen=True):
    """An image or a file in the answer. Its mark is part of the message's text."""

    attachment: Attachment


class ReasoningDelta(Struct, frozen=True):
    """More of the model's thinking."""

    text: str


class ToolCallStarted(Struct, frozen=True):
    """The model started a tool call. `key` names the call within this run (a server's ids may repeat)."""

    key: int
    id: str
    name: str


class ToolArgumentsDelta(Struct, frozen=True):
    """More of the JSON text of call `key`'s arguments."""

    key: int
    text: str


class ToolCallFinished(Struct, frozen=True):
    """Call `key` has its result (the text that goes back to the model). `error`: the tool failed; `traceback`: where
    its function raised. `call_id`: it is only said that and where the function of this call raised, which no event
    has told: the requests to models may."""

    key: int
    result: str
    error: bool = False
    duration_ms: float | None = None
    traceback: Traceback | None = None
    call_id: str = ""


class TurnEnded(Struct, frozen=True):
    """The model's current message is complete; a following delta starts a new assistant message."""


class Prepared(Struct, frozen=True):
    """Something had to be started before the agent could work: an interpreter, an import, servers of tools. It is over
    now, and took `duration_ms`; that is not the agent's time."""

    name: str
    duration_ms: float


class Preparing(Struct, frozen=True):
    """Something is being started before the agent can work; `Prepared` says when that is over. The run's time-out does
    not pass meanwhile: what is started has a limit of its own."""


class Restarted(Struct, frozen=True):
    """What was told so far in this turn does not count: it is told again, in another order or whole."""


class TextWasReasoning(Struct, frozen=True):
    """The text of this message so far was thinking. `reasoning` replaces it: the text without the tag that ended it."""

    reasoning: str


class Noted(Struct, frozen=True):
    """Something that the run must say although it went on, such as a message that could not be read."""

    note: Note


class Asks(Struct, frozen=True):
    """The model is asked now: the request, with this JSON, is sent when the next event is asked for. So who pays can
    let it wait."""

    body: Mapping[str, Any]


class UsageReported(Struct, frozen=True):
    """Tokens of one request; those of several requests of a run add up. `model`: the model that used them, if the
    agent's `Done` does not name it."""

    usage: Usage
    model: str = ""


class LogLine(Struct, frozen=True):
    """What a program said beside its answer: the end of its standard error, at most 64 KB. Before Done or Failed."""

    text: str


class ModelAsked(Struct, frozen=True):
    """A request to a model that the agent made, with its answer: OpenAI chat messages, system prompts among them.
    `about`: all else that is known of it, by the names of a request. `duration_ms`: until now, or, where it is known by
    the agent's own clock, from `started_ms` on. `unrecorded`: what of it is not known. `usage`: its own, by any names.
    Without `messages`, it is only known that there was a request."""

    messages: Sequence[Mapping[str, Any]] | None = None
    answer: Mapping[str, Any] | None = None
    about: Mapping[str, Any] = {}
    agent: str = ""
    error: str = ""
    started_ms: float | None = None
    duration_ms: float = 0.0
    unrecorded: Sequence[RequestPart] = ()
    usage: Mapping[str, Any] = {}


class Recorded(Struct, frozen=True):
    """A whole transcript at once: what `replay` yields. Replaces all that came before."""

    transcript: Transcript


class Captured(Struct, frozen=True):
    """What the agent's models were really asked and answered, as a proxy kept it: what is stored of the run is made of
    it. The conversation that later turns continue stays what the agent told. `tape`: the exchanges as JSON, without
    keys. `answers`: the last text of the model is the answer, whatever the agent told. `beside`: what the agent told
    stays, unless it could not tell its calls; the requests are added to it."""

    transcript: Transcript
    tape: tuple[Mapping[str, Any], ...] = ()
    answers: bool = False
    beside: bool = False


class Seen(Struct, frozen=True):
    """What the agent's models were asked and answered up to now, for those who watch; nothing of it is stored."""

    transcript: Transcript


class Done(Struct, frozen=True):
    """The agent has finished by itself. `outputs`: what it returned beside its answer, by name, as JSON data."""

    finish_reason: str = "stop"
    model: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)


class Failed(Struct, frozen=True):
    """The agent could not finish. `retry` says that another attempt may succeed; `retry_after_s` when."""

    error: RunError
    retry: bool = False
    retry_after_s: float | None = None


AgentEvent = (
    PromptSent
    | AgentNamed
    | TextDelta
    | Attached
    | ReasoningDelta
    | ToolCallStarted
    | ToolArgumentsDelta
    | ToolCallFinished
    | TurnEnded
    | Asks
    | UsageReported
    | Preparing
    | Prepared
    | Restarted
    | TextWasReasoning
    | Noted
    | LogLine
    | Printed
    | ModelAsked
    | Recorded
    | Captured
    | Seen
    | Done
    | Failed
)


@asynccontextmanager
async def closing(events: AsyncIterator[AgentEvent]) -> AsyncIterator[AsyncIterator[AgentEvent]]:
    """An agent's events. At the end, what yields them is closed if it can be: an agent may give any async iterator, and
    only a generator has to be closed."""
    try:
        yield events
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()


class CheckStep(Document, frozen=True):
    """One thing that was tried: `name` is reachable, key, model, streams or tools. `ok` None: it could not be told,
    or makes no sense for this agent. `latency_ms` is how long it took."""

    name: str
    ok: Annotated[bool | None, Meta(description="null: it could not be told")]
    message: str = ""
    latency_ms: float | None = None


class CheckReport(Struct, frozen=True):
    """What `agenteval agents check` and the Agents screen say of an agent: all well or not, in words, and step by
    step. `latency_ms` is the time of the whole check; `key_refused`: a server refused the agent's key."""

    ok: bool
    message: str
    latency_ms: float | None = None
    fix: str = ""
    steps: tuple[CheckStep, ...] = ()
    key_refused: bool = False


@runtime_checkable
class ReadsFiles(Protocol):
    """An agent that knows the files of its project that its code consists of."""

    @property
    def files(self) -> frozenset[str]:
        """Those that were imported or read by now."""
        ...


@runtime_checkable
class TellsServers(Protocol):
    """An agent that sees which servers of models it asks past the proxy that it was led to."""

    def asked_past(self, run: str) -> tuple[str, ...]:
        """Their names, for a run that has ended; once."""
        ...


@runtime_checkable
class AsksUnrecorded(Protocol):
    """An agent that is recorded, as far as it can be."""

    @property
    def unrecorded(self) -> frozenset[str]:
        """The servers of models that runs have asked of which nothing could be recorded."""
        ...


@runtime_checkable
class Agent(Protocol):
    """A kind of agent, made once an execution from its configuration, used by many runs at once.

    `run` never raises for what the agent or its server does wrong: it yields `Failed` and ends. It ends with `Done`
    or `Failed`. Cancelling the iterating task must leave nothing behind (connections, processes).
    """

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """The events of one run, as they happen."""
        ...

    async def check(self, thorough: bool = False) -> CheckReport:
        """Is the agent there? Costs as little as the kind allows; `thorough` also asks for a streamed answer and a
        call of a tool, which may cost tokens."""
        ...

    async def close(self) -> None:
        """Give back connections and processes."""
        ...


@runtime_checkable
class OffersTools(Protocol):
    """An agent that gives its model tools, and can leave one out (`agents.tools.changes`)."""

    async def offered_tools(self, request: AgentRequest) -> Sequence[ToolSpec]:
        """What the model would be told of its tools. Sends nothing; servers of tools are asked which they have.

        Raises `AgentevalError` where they can't be.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """An agent that keeps something from one turn of a run to the next (a session, a shop), and wants to know when no
    more turns and attempts will come."""

    def release(self, run: str) -> None:
        """The run (`AgentRequest.run`) is over. Also called for runs of which it knows nothing."""
        ...


class Embedding(Struct, frozen=True):
    """A text's vector, which model gave it, and what a person should know of it ("cut at 256 tokens")."""

    vector: tuple[float, ...]
    model: str = ""
    note: str = ""
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class Embedder(Protocol):
    """A kind of embedder (entry point group `agenteval.embedders`); made from an `AgentSetup`, as agents are.

    `embed` never raises for what a server does wrong: it gives a `Failed`. Vectors of one embedder have one length.
    """

    async def embed(self, text: str) -> Embedding | Failed:
        """The vector of one text."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


class LocalEmbedder(Embedder, Protocol):
    """An embedder that needs no address (entry point group `agenteval.local_embedders`, beside `agenteval.embedders`).

    Where no embedder is named, the first whose `missing()` is "" is taken. `install` is the command that installs what
    is missing.
    """

    install: ClassVar[str]

    @staticmethod
    def missing() -> str:
        """What is not installed of what it needs, in words; "" when all is there."""
        ...
