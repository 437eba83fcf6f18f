"""One run in flight: its attempts, each with the turns of its conversation."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator, Mapping
from typing import Any, Protocol, TypeVar, cast

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    Agent,
    AgentEvent,
    AgentRequest,
    Asks,
    Attached,
    Captured,
    Done,
    Failed,
    Noted,
    Prepared,
    Preparing,
    Printed,
    Recorded,
    Restarted,
    Seen,
    TextDelta,
    TextWasReasoning,
    ToolCallFinished,
    UsageReported,
    closing,
)
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.registry import is_model
from agenteval_tui.agents.request_bound import cost_at_most, size_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count, dollars, spoken_seconds
from agenteval_tui.history.records import FailedAttempt
from agenteval_tui.runs.around.execution import RunSurroundings, SetupFailed
from agenteval_tui.runs.around.services import OutputFromNow
from agenteval_tui.runs.events import AttemptFailed, RunPreparing, RunShown, RunStarted, RunState, Tell, TurnStarted
from agenteval_tui.runs.plan.conversation import answers_last, asked_with
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.pricing import Priced
from agenteval_tui.runs.retries import Retries
from agenteval_tui.runs.run_stream import Stream, last_parts
from agenteval_tui.runs.simulated_user import SimulatedUser
from agenteval_tui.runs.state_probes import StateProbes
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import SETUP, ErrorCode, HookRun, Message, Note, RunError, Transcript, Usage
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor
from agenteval_tui.transcripts.state import ProbeState
from agenteval_tui.transcripts.traceback import place_words, raised_words

T = TypeVar("T")
_NO_USAGE = Usage()
HOOKS_KEPT = 50
"""Hooks of a run that its transcript has: the last ones."""
_NOTICE_AFTER_S = 0.25  # from when watchers are told that a run is being prepared
_OF_SERVERS = ("server", "connection", "protocol")
"""The kinds of errors that the server may have a traceback for."""
YIELD_EVERY = 100
"""After this many events of an agent that never waits, others get a turn."""


class Room(Protocol):
    """Where requests wait for their share of the limit on cost."""

    async def enter(self, attempts: RunAttempts, bound: float | None) -> bool:
        """Wait until the run's next request fits; gives whether it had to. `bound`: US dollars, None: not known."""
        ...

    def leave(self, attempts: RunAttempts, at_most: float) -> None:
        """Its request is over, and may have cost this much in US dollars; 0: it was not paid for."""
        ...


class RunAttempts:
    """A run from its first attempt to the agent's end. `stop` says why it was ended from outside.

    `ask` may end with `refused`: the server asks for less (429), and the run is to wait in line; then `ask` again.
    Afterwards `transcript()` is what the agent left behind, with the `error` in it if there was one.
    """

    def __init__(
        self,
        plan: RunPlan,
        agent: Agent,
        request: AgentRequest,
        retries: Retries,
        tell: Tell,
        price: Cost | None = None,
        withheld: TranscriptRedactor = NOTHING,
        error_on_finish: Container[str] = (),
        user: SimulatedUser | None = None,
        around: RunSurroundings | None = None,
        probes: StateProbes | None = None,
    ) -> None:
        self.planned = plan
        self.plan = plan
        """The same with the variables that hooks brought, once they have run."""
        self.around = around
        self._closing: asyncio.Future[None] | None = None
        self.after_failed: list[HookRun] = []
        self.run = plan.ref.run
        self.attempt = 0
        self.stored_attempt = 0
        """The number of the last attempt that is stored."""
        self.started_ms = 0
        self.duration_ms = 0.0
        self.stop = ""
        """Empty, "timeout", "cancelled" or "service"."""
        self.stopped_by: RunError | None = None
        """What it ends with if a service that it needs has ended."""
        self.tape: tuple[Mapping[str, Any], ...] = ()
        """The requests of the last attempt to the agent's models, with the answers, if they were captured."""
        self.refused: Failed | None = None
        """The server's refusal, after which the run waits in line again."""
        self.refusals = 0
        """How often the server has refused the run. `refused_itself`: how often while the server served others."""
        self.refused_itself = 0
        self.refused_alone = False
        """Whether the server refused it again while only refused runs of its agent were asking."""
        self.finished = False
        """True once the agent is done. The run's time does not include the grading after that."""
        self.handed_to_store = False
        """True once the store has its end."""
        self.cached = False
        """True if the answer was in the history already."""
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        """Ends the wait for an agent that was stopped and does not end."""
        self.usage = _NO_USAGE
        self.spent = _NO_USAGE
        """The usage of all attempts together; `usage` is that of the current attempt."""
        self.at_most = 0.0
        """What a run like it may cost, in US dollars: `Priced.at_most` of all attempts."""
        self.uncounted = False
        """Whether a request of it has a cost that is not known."""
        self.limit: Callable[[], str] = lambda: ""
        """Why it may send no more requests, in words; "" if it may."""
        self.room: Room | None = None
        """Where its requests wait until they fit into the limit on cost; None: there is no such limit."""
        self.pending = 0.0
        """What the request in flight may cost, in US dollars; 0: none is in flight, or it is free."""
        self._asked_before: tuple[int, int] | None = None
        self._asks_bytes = 0
        self._cut = ""
        self.failed_attempts: list[FailedAttempt] = []
        self.asked_at = 0.0
        """When the current attempt started, on the monotonic clock."""
        self.state: tuple[ProbeState, ...] = ()
        """What its probes read by now."""
        self.request = request
        self.user = user
        """The simulated user who speaks in it."""
        self._user_asked = False
        self._agent = agent
        self._retries = retries
        self._tell = tell
        self._price = price
        self._withheld = withheld
        self._error_on_finish = error_on_finish
        self._probes = probes
        self._stream = Stream(self.run, tell, withheld)
        self._priced: Priced | None = None
        self._spent_before = _NO_USAGE
        self._began = time.monotonic()
        self._parked_at = 0.0
        self._counted = 0  # attempts without those that a busy server refused
        self._attempt_ms = 0
        self.deadline = self._began + plan.timeout_s
        self._recorder: Recorder | None = None
        self._cached: Transcript | None = None
        self._error: RunError | None = None
        self._preparing_since = 0.0
        self._remaining_s = 0.0  # of its time, when something began to be prepared
        self._preparing_notice: asyncio.TimerHandle | None = None  # says that it takes a moment

    @property
    def asked(self) -> tuple[str, Mapping[str, Any]] | None:
        """The prompt and the variables, if they are not as planned: hooks brought some. Without secrets."""
        if self.plan is self.planned:
            return None
        prompt, variables = self.plan.prompt, dict(self.plan.variables)
        if not self._withheld:
            return prompt, variables
        return self._withheld.text(prompt), self._withheld.data(variables)

    @property
    def age_s(self) -> float:
        """For how long it has been at work."""
        return time.monotonic() - self._began

    @property
    def may_wait(self) -> bool:
        """Whether a refusal may be followed by another attempt at all. With one attempt allowed, the user wants to see
        how it ends. Otherwise a refusal is not an attempt: the server did not look at the question. It does not count
        towards `max_attempts`, and the wait in line does not count towards the run's time-out.
        """
        return self._retries.attempts > 1

    async def ask(self) -> None:
        """Run the agent, again where that may help. Raises only CancelledError; errors are in the transcript."""
        if not self.started_ms:
            self.started_ms = now_ms()
        self._unpark()
        while not self.stop and self._error is None:
            self.attempt += 1
            self._tell(RunStarted, self.run, self.attempt, now_ms())
            # Budget let the first attempt begin. Each further one may be what exceeds a limit.
            if self.attempt > 1 and self._may_not_ask():
                break
            failed = await self._attempt()
            if failed is None or not failed.retry:
                break
            # Not waited for here: the worker takes another run, which shows whether the server is busy.
            if failed.error.kind == "rate_limit" and self.may_wait:
                self.refused = failed
                break
            self._counted += 1
            if self._counted >= self._retries.attempts:
                break
            wait_s = self._retries.wait_s(self._counted, failed.retry_after_s)
            if wait_s >= self.deadline - time.monotonic():
                # The run would time out while it waits: say now what is wrong.
                if failed.retry_after_s is not None:
                    wait_note = f"it asks to wait {spoken_seconds(failed.retry_after_s)}, longer than the run may take"
                    self._error = replace(failed.error, message=f"{failed.error.message}; {wait_note}")
                break
            self.schedule_retry(wait_s, failed)
            slept_at = time.monotonic()
            try:
                await asyncio.sleep(wait_s)
            finally:
                # The wait counts towards the run's time-out. It is not time that the agent took.
                self._began += time.monotonic() - slept_at
            self._error = None

    def schedule_retry(self, wait_s: float, failed: Failed) -> None:
        """The attempt failed and there will be another."""
        # Its text goes out before the event that takes it back.
        self.flush()
        error = self._clean(failed.error)
        used = self.usage
        self.failed_attempts.append(
            FailedAttempt(
                self.attempt,
                kind=error.kind,
                message=error.message,
                duration_ms=(time.monotonic() - self.asked_at) * 1000,
                at_ms=self._attempt_ms,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cost=used.cost,
            )
        )
        self._tell(
            AttemptFailed, self.run, self.attempt, error.message, retry_in_s=wait_s, kind=error.kind, fix=error.fix
        )

    def give_up(self, error: RunError) -> None:
        """A refused run does not wait any longer: it ends with this error."""
        self.refused = None
        self._error = error

    def park(self) -> None:
        """The run goes back into the line; the time that it waits there does not count as its own."""
        self._parked_at = time.monotonic()

    def use_cached(self, transcript: Transcript) -> None:
        """The answer is known: no agent is asked, nothing is spent."""
        self.cached = True
        self.started_ms = now_ms()
        self._cached = transcript
        self._tell(RunStarted, self.run, 1, self.started_ms)
        self._stream.show(transcript)

    def finish(self) -> None:
        """The agent is done: stop the clock, send what is left of the stream."""
        if self.finished:
            return
        self.finished = True
        self._unpark()
        if self._preparing_since:
            self._resume_clock(0.0)
        self.duration_ms = (time.monotonic() - self._began) * 1000
        self._stream.end()
        if self.timer is not None:
            self.timer.cancel()

    def transcript(self) -> Transcript:
        """What there is of the conversation; complete when the agent ended by itself."""
        if self._cached is not None:
            transcript = self._cached
        elif self._recorder is None:
            transcript = self.bare()
        else:
            transcript = self._with_known_cost(self._recorder.stored())
        if self.around is not None:
            transcript = self._with_surroundings(self.around, transcript)
        error = self._error
        # What ended the run from outside stands before what the agent said when it was ended.
        if self.stop == "timeout":
            limit, last_place = f"{self.plan.timeout_s:g} s", self.request.cut_off.traceback
            was = place_words(last_place)
            message = f"the run did not end within {limit}" + (f"; it was{was}" if was else "")
            fix = f"{'see what takes so long there, or ' if was else ''}raise `timeout` of the test"
            error = RunError("timeout", message, fix, ErrorCode.RUN_TIMEOUT, traceback=last_place)
            # The run waited for the simulated user, and not for the agent.
            if self.user is not None and self._user_asked:
                error = self.user.late(limit)
        elif self.stopped_by is not None:
            error = self.stopped_by
        elif self.stop == "cancelled":
            why = f"the run was cancelled: {self._cut}" if self._cut else "the run was cancelled"
            error = RunError("cancelled", why, code=ErrorCode.CANCELLED)
        ending = ending_of(transcript) if self._error_on_finish and error is None else None
        if ending is not None and ending.code in self._error_on_finish:
            fix = f"`error_on_finish` of the agent has `{ending.code}`"
            more = "raise `max_tokens`; " if ending.code == "length" else ""
            error = RunError(ending.code, ending.description, more + fix, ErrorCode.ENDING, {"ending": ending.code})
        if error is not None:
            transcript = replace(transcript, error=error)
        if self.user is not None and not self.cached:
            transcript = replace(transcript, user_usage=self.user.usage)
        if self.state:
            transcript = replace(transcript, state=self.state)
        return self._withheld.transcript(transcript)

    def _with_surroundings(self, around: RunSurroundings, transcript: Transcript) -> Transcript:
        failed = self.after_failed
        notes = tuple([Note("after_hook", hook.error.message) for hook in failed if hook.error is not None])
        workdir = str(around.workdir) if around.workdir is not None else ""
        return replace(
            transcript, hooks=tuple(around.ran[-HOOKS_KEPT:]), workdir=workdir, notes=(*transcript.notes, *notes)
        )

    def _with_known_cost(self, transcript: Transcript) -> Transcript:
        """The transcript without a cost if that of one of its requests is not known; it says what the others cost."""
        if self._priced is None or self._priced.whole:
            return transcript
        cost = self._priced.known_cost
        notes = (*transcript.notes, Note("partly_priced", dollars(cost))) if cost else transcript.notes
        return replace(transcript, usage=replace(transcript.usage, cost=None), notes=notes)

    def bare(self) -> Transcript:
        """The conversation that was to be answered, and nothing else."""
        return Transcript(messages=self.plan.messages, tool_calls=self.plan.tool_calls)

    def flush(self) -> None:
        """Send the text that was gathered since the last time, as one event."""
        self._stream.flush()

    def _unpark(self) -> None:
        if self._parked_at:
            waited = time.monotonic() - self._parked_at
            self._began += waited
            self.deadline += waited
            self._parked_at = 0.0
            if self.refused is not None:  # else it was given up while it waited
                self.refused = self._error = None

    def _clean(self, error: RunError) -> RunError:
        return self._withheld.error(error) if self._withheld else error

    async def _attempt(self) -> Failed | None:
        """One attempt, with what is before and after it; gives how it failed, or None when the agent was done."""
        self.state = ()
        around = self.around
        if around is None:
            return await self._conversation()
        # Begun here and again with the conversation: if the preparation fails, the transcript must not be that of the
        # attempt before.
        self._begin_attempt()
        try:
            failed = await self._open(around)
            return failed if failed is not None else await self._beside(around.output_from_now())
        finally:
            await self.close_surroundings()

    async def _beside(self, output: OutputFromNow) -> Failed | None:
        """The conversation, with what its services print meanwhile."""
        failed = await self._conversation()
        if self._recorder is None or self._recorder.recorded:
            return failed
        error = self._error
        if error is not None and error.kind in _OF_SERVERS and error.traceback is None:
            raised = await self._untimed(output.raised())
            if raised is not None:
                service, traceback = raised
                message = f"{error.message}; the service {service} raised {raised_words(traceback)}"
                told = RunError.told(error.kind, message, "", error.code, **error.fields)
                self._error = error = replace(told, traceback=traceback)
                failed = failed and replace(failed, error=error)
        for service, text in output.texts():
            self._recorder.apply(Printed("log", text, logger=service))
        return failed

    async def _open(self, around: RunSurroundings) -> Failed | None:
        """Prepare what the attempt needs around it, which is not its time; gives what it ends with if that fails."""
        self._pause_clock()
        try:
            variables = await around.open(self.attempt)
            self.plan = asked_with(self.planned, variables)
        except SetupFailed as error:
            self._error = error.error
        except AgentevalError as error:
            fix = "print it in a `before` hook, or add it to the test's `variables`"
            self._error = RunError.told(SETUP, error.what, fix, ErrorCode.HOOK, phase="before", why="variable")
        finally:
            self._resume_clock(0.0)
        if self._error is not None:
            return Failed(self._error)
        plan = self.plan
        self.request = replace(
            self.request,
            messages=plan.messages,
            tool_calls=plan.tool_calls,
            variables=plan.variables,
            workdir=around.workdir,
        )
        if self.user is not None and plan.user is not None:
            self.user.brief = plan.user.brief
        return None

    async def close_surroundings(self) -> None:
        """Run what is after an attempt, if it is open. Whatever ends the run waits for it; it is not the run's time."""
        if self._closing is None:
            if self.around is None or not self.around.is_open:
                return
            self._closing = asyncio.ensure_future(self._close(self.around))
        closing, cancelled = self._closing, False
        # The hooks run to their end, however often the run is cancelled meanwhile. The cancellation is passed on after
        # that.
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError
        closing.result()

    async def _close(self, around: RunSurroundings) -> None:
        began = time.monotonic()
        # The engine ends what is past its deadline, and this is not the run's time.
        self.deadline = math.inf
        try:
            self.after_failed += await around.close()
        finally:
            self._began += time.monotonic() - began
            self.deadline = time.monotonic() + max(0.0, self.plan.timeout_s - self.age_s)
            self._closing = None

    @property
    def surroundings_open(self) -> bool:
        """Whether hooks run after an attempt, or are to run: the end of the run waits for them."""
        return self._closing is not None or (self.around is not None and self.around.is_open)

    def _begin_attempt(self) -> Recorder:
        request = self.request
        self._recorder = recorder = Recorder(request.messages, tool_calls=request.tool_calls)
        self.tape = ()
        self._stream.begin()
        self._priced = Priced(self._price) if self._price is not None else None
        self._spent_before = self.spent
        self.usage = _NO_USAGE
        self.asked_at = time.monotonic()
        self._attempt_ms = now_ms()
        self._user_asked = False
        return recorder

    async def _conversation(self) -> Failed | None:
        """All turns; gives how the attempt failed, or None when the agent was done."""
        if self._probes is not None and self.plan.state:
            # What is cancelled while probes are read has no conversation, also if an attempt before had one.
            self._recorder = None
            self.state = await self._untimed(self._probes.before(self.plan, self.request))
        recorder = self._begin_attempt()
        request = self.request
        turns, number, failed = iter(self.plan.turns), request.turn - 1, None
        if self.user is None or answers_last(request.messages):
            number += 1
            failed = await self._turn(request, recorder)
        # A recording holds all turns already.
        while failed is None and not self.stop and not recorder.recorded:
            message = await self._next(turns, recorder)
            if message is None or self._may_not_ask():
                break
            number += 1
            so_far = recorder.transcript()
            recorder.next_turn(message)
            self._stream.next_turn()
            self._tell(TurnStarted, self.run, number, message.content, message.simulated)
            messages = (*so_far.messages, message)
            request = replace(request, messages=messages, tool_calls=so_far.tool_calls, turn=number)
            failed = await self._turn(request, recorder)
        if self._probes is not None and self.state and not recorder.recorded:
            self.state = await self._untimed(self._probes.after(self.plan, self.request, self.state))
        return failed

    async def _untimed(self, work: Awaitable[T]) -> T:
        """What is done for the run, and not in it: the time that it takes is not the run's."""
        self._pause_clock()
        try:
            return await work
        finally:
            self._resume_clock(0.0)

    async def _next(self, turns: Iterator[str], recorder: Recorder) -> Message | None:
        """What is said next: what was written for the test, then what a simulated user says. None: nothing more."""
        text = next(turns, None)
        if text is not None:
            return Message("user", text)
        if self.user is None:
            return None
        so_far = recorder.transcript()
        # The model of the simulated user must not get the agent's keys.
        if self._withheld:
            so_far = self._withheld.transcript(so_far)
        most = self.user.brief.max_turns
        if self.user.spoken(so_far) >= most:
            recorder.note(Note("user_turns", str(most)))
            return None
        self._user_asked, asked_at = True, time.monotonic()
        user_turn = await self.user.say(so_far)
        self._user_asked = False
        recorder.apply(Prepared("simulated user", (time.monotonic() - asked_at) * 1000))
        self._error = user_turn.error
        if user_turn.error is not None:
            return None
        message = Message("user", user_turn.text, simulated=True)
        if user_turn.ends and user_turn.text:
            recorder.end_with(message)
        return None if user_turn.ends else message

    async def _turn(self, request: AgentRequest, recorder: Recorder) -> Failed | None:
        files = sum(len(message.attachments) for message in request.messages)
        if files and not is_model(request.config.get("kind")):
            text = f"{count(files, 'attachment')}: agents of this kind get their marks only"
            recorder.apply(Noted(Note("left_out", text)))
        try:
            async with closing(self._agent.run(request)) as events:
                failed = await self._consume(events, recorder)
                answered_at = time.monotonic()
            # It has answered: how long its processes take to end is not the run's time.
            self._began += time.monotonic() - answered_at
            return failed
        except Exception as error:
            text = str(error) or "no message"
            self._error = RunError.told("exception", f"the agent raised {type(error).__name__}: {text}")
            return Failed(self._error)
        finally:
            # What it did before it was cancelled.
            if (captured := request.cut_off.captured) is not None:
                recorder.apply(captured)
                self._keep_tape(captured)
            self._asked_before, self._asks_bytes = None, 0
            # Also after a failure or a cancellation: requests of other runs wait for this room.
            if self.room is not None:
                self.room.leave(self, 0.0)

    async def _consume(self, events: AsyncIterator[AgentEvent], recorder: Recorder) -> Failed | None:
        count = 0
        async for event in events:
            # An agent may catch the cancellation and continue. What it tells then does not count.
            if self.stop:
                return None
            kind = type(event)
            if kind is Preparing:
                self._pause_clock()
            elif kind is Prepared:
                self._resume_clock(cast(Prepared, event).duration_ms / 1000)
            elif self._preparing_since and kind is not Printed:  # what makes the agent may print
                self._resume_clock(0.0)
            if kind is Asks:
                await self._hold(cast(Asks, event), recorder)
                # Other runs may have used up the limit while this one waited.
                if self._may_not_ask():
                    return None
                continue
            if kind is UsageReported:
                event = self._used(cast(UsageReported, event))
            recorder.apply(event)
            if kind is TextDelta:
                self._stream.text(cast(TextDelta, event).text)
            elif kind is Attached:
                self._stream.text(cast(Attached, event).attachment.mark)
            elif kind is Done:
                self._settle_price(cast(Done, event).model, recorder)
                return None
            elif kind is ToolCallFinished and self._may_not_ask():
                return None  # before the model is asked what follows from it
            elif kind is Failed:
                self._error = cast(Failed, event).error
                return cast(Failed, event)
            elif kind in (Restarted, TextWasReasoning):
                # For watchers it starts again: the text streamed until now is not part of the answer.
                self._stream.begin()
                self._tell(RunStarted, self.run, self.attempt, now_ms())
            elif kind is Seen:
                self._show(cast(Seen, event).transcript)
            elif kind is Captured:
                if not cast(Captured, event).beside:
                    self._show(cast(Captured, event).transcript)
                self._keep_tape(cast(Captured, event))
            elif kind is Recorded:
                self._replayed(cast(Recorded, event).transcript)
            else:
                self._stream.other(event)
            count += 1
            if count % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        if not self.stop:
            self._error = RunError(
                "protocol", "the agent stopped without saying that it was done", code=ErrorCode.NOT_DONE
            )
            return Failed(self._error)
        return None

    def _keep_tape(self, captured: Captured) -> None:
        tape = list(captured.tape)
        self.tape = tuple(self._withheld.data(tape) if self._withheld else tape)

    # What is not its time

    def _pause_clock(self) -> None:
        if not self._preparing_since:
            self._preparing_since = time.monotonic()
            self._remaining_s = self.deadline - self._preparing_since
            # No time-out meanwhile. `_resume_clock` gives the rest of the time back.
            self.deadline = math.inf
            self._preparing_notice = asyncio.get_running_loop().call_later(
                _NOTICE_AFTER_S, self._tell, RunPreparing, self.run
            )

    def _resume_clock(self, took_s: float) -> None:
        """What was prepared took so long, or since it was said to begin. That is not the run's time."""
        now = time.monotonic()
        if self._preparing_since:
            took_s = now - self._preparing_since
            self._preparing_since = 0.0
            self.deadline = now + self._remaining_s
            if self._preparing_notice is not None:
                self._preparing_notice.cancel()
                if took_s >= _NOTICE_AFTER_S:
                    self._tell(RunPreparing, self.run, took_s * 1000)
        else:
            # The figure is the agent's own: it can't have prepared for longer than it was asked.
            took_s = min(max(0.0, took_s), now - self.asked_at)
            self.deadline += took_s
        self._began += took_s
        self.asked_at += took_s

    def _show(self, transcript: Transcript) -> None:
        """What the agent was seen to do by now, in place of what it tells itself."""
        self._stream.end()
        self._stream.silent = True
        parts, dropped = last_parts(self._withheld.transcript(transcript) if self._withheld else transcript)
        used = transcript.usage if self.usage == _NO_USAGE else self.usage
        state = RunState(
            self.plan.ref,
            "running",
            self.attempt,
            self.started_ms,
            retries=tuple([failed_attempt.message for failed_attempt in self.failed_attempts]),
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost=used.cost,
            parts=parts,
            dropped=dropped,
        )
        self._tell(RunShown, state)

    # Usage

    def _may_not_ask(self) -> bool:
        """Whether a limit is used up: the run ends here, as if it had been cancelled."""
        self._cut = self.limit()
        if self._cut:
            self.stop = "cancelled"
        return bool(self._cut)

    async def _hold(self, event: Asks, recorder: Recorder) -> None:
        """Wait until the request fits into the limit on cost."""
        if self.room is None or self._price is None:
            return
        size, price = size_of(event.body), self._price
        self._asks_bytes = size.size
        model = str(event.body.get("model") or "")
        bound = cost_at_most(lambda usage: price(model, usage), size, self._asked_before)
        began = time.monotonic()
        self._pause_clock()
        try:
            has_waited = await self.room.enter(self, bound)
        finally:
            self._resume_clock(0.0)
        if has_waited:
            recorder.apply(Prepared("limit on cost", (time.monotonic() - began) * 1000))

    def _used(self, event: UsageReported) -> UsageReported:
        usage, at_most = event.usage, self.at_most
        # The bound of the next request starts from this: how many tokens so many bytes were.
        if usage.input_tokens is not None and self._asks_bytes:
            self._asked_before = self._asks_bytes, usage.input_tokens
        if self._priced is not None:
            before = self._priced.at_most
            usage = self._priced.priced(usage, event.model)
            self.at_most += self._priced.at_most - before
            self.uncounted = self.uncounted or (not self._priced.whole and is_model(self.request.config.get("kind")))
        self._count(usage)
        if self.room is not None:
            self.room.leave(self, self.at_most - at_most)
        return event if usage is event.usage else UsageReported(usage)

    def _settle_price(self, model: str, recorder: Recorder) -> None:
        """Now the model is known: correct the price of tokens that were priced as a different model's."""
        if self._priced is None or not model:
            return
        more = self._priced.named(model)
        if more is not None:
            recorder.apply(UsageReported(Usage(cost=more)))
            self._count(Usage(cost=more))

    def _replayed(self, transcript: Transcript) -> None:
        """A recording that did not stream is shown as if it had just happened."""
        if not self._stream.shown:
            self._stream.show(transcript)
        self._count(transcript.usage)

    def _count(self, usage: Usage) -> None:
        self.usage += usage
        if self._priced is not None and not self._priced.whole:
            self.usage = replace(self.usage, cost=None)
        self.spent = self._spent_before + self.usage
        if self.usage != _NO_USAGE:
            self._stream.usage(self.usage)
