"""Planning a run: how often, with which agent, within which limits; what that takes is said as it is typed. And
resuming an execution that has limits: they are for all of it, so what stopped it must be raised."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.worker import Worker

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import OptionError, options_of
from agenteval_tui.history.execution_names import checked_name
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.preview import Preview
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, error_lines, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.views.plan import plan_in_short

CACHES = (("", "off"), ("first", "first repetition only"), ("all", "every repetition"))
STOPS = (("yes", "as the tests say"), ("no", "never"))
NO = "\x1f"
"""The choice for none: no name is this."""


def read_options(
    values: Mapping[str, str], base: PlanOptions, default_agent: str
) -> tuple[PlanOptions | None, dict[str, str]]:
    """(the options, {}) or (None, what is wrong by field). `default_agent`: the A of an A/B comparison when no agent is
    chosen; "" when the suites have several."""
    problems: dict[str, str] = {}

    def number(name: str) -> Any:
        option = options_of(PlanOptions)[name]
        try:
            return option.read(values.get(name, ""))
        except OptionError:
            problems[name] = option.range
            return None

    agent = values.get("agent") or None
    variation = None if values.get("variation", NO) == NO else values["variation"]
    second = "" if values.get("ab", NO) == NO else values["ab"]
    ab: tuple[str, ...] = ()
    if second:
        first = agent or default_agent
        if not first:
            problems["ab"] = "choose the first agent above"
        elif first == second:
            problems["ab"] = "the same agent as above"
        ab = (first, second)
    name = base.name
    try:
        name = checked_name(values.get("name", base.name))
    except AgentevalError as error:
        problems["name"] = error.what
    options = replace(
        base,
        name=name,
        repeat=number("repeat"),
        sample=number("sample"),
        concurrency=number("concurrency"),
        max_cost=number("max_cost"),
        max_tokens=number("max_tokens"),
        max_seconds=number("max_seconds"),
        agent=None if ab else agent,
        variation=variation,
        ab=ab,
        cache=values.get("cache", base.cache),
        early_stop=values.get("stop", "yes") != "no",
    )
    return (None if problems else options), problems


def default_agent(agents: Sequence[str]) -> str:
    """The agent of tests that all have the same one."""
    named = dict.fromkeys(agents)
    return next(iter(named)) if len(named) == 1 else ""


QUIET_S = 0.15
"""How long typing must pause before a plan is made: each takes a thread."""
ESTIMATE_ROWS = 5
READ_FIRST = "Read the estimate first, then press enter again to start."


class PlanScreen(Sheet["PlanOptions | None"]):
    """Dismissed with the options, or None."""

    def __init__(self, paths: Sequence[Path], base: PlanOptions, suite: Suite, tests: Sequence[Test]) -> None:
        """`base` says which tests; `tests` are those, of `suite`."""
        super().__init__()
        self._paths = tuple(paths)
        self._base = base
        self._suite = suite
        self._tests = tuple(tests)
        self._default = default_agent([test.agent or suite.agent or "" for test in tests])
        self._planned: PlanOptions | None = base
        self._preview: Preview | None = None
        self._error: AgentevalError | None = None
        self._estimating = True
        self._counting: Worker[None] | None = None
        self._wanted = False
        """Somebody pressed enter before the estimate was shown."""

    def compose(self) -> ComposeResult:
        keys = self.edge(("enter", "start"), ("↑ ↓", "field"), ("← →", "choose"))
        with SheetFrame("Plan a run", keys, subject=one_line(self._base.title, 60)):
            yield Form(self._fields(), id="fields")
            yield Section("estimate")
            yield LineBlock(self._estimate_lines, id="estimate")

    def on_mount(self) -> None:
        self.query_one(Form).focus_first()
        start_worker(self, self._offer_agents, group="agents")
        self._plan()

    # What is asked

    def _fields(self) -> list[Field]:
        suite, tests = self._suite, self._tests
        repeats = sorted({test.repeat or suite.defaults.repeat for test in tests})
        times = f"{repeats[0]}" if len(repeats) == 1 else f"{repeats[0]} to {repeats[-1]}" if repeats else "1"
        names = dict.fromkeys(variation.name for test in tests for variation in test.variations)
        variations = [(NO, "all")] + ([("default", "none"), *((name, name) for name in names)] if names else [])
        agents = self._agent_names()
        stops = any(test.stop or suite.defaults.stop for test in tests)
        rows = any(test.dataset for test in tests)
        return [
            Field("repeat", "repeat", placeholder=times, hint="times each"),
            Field("agent", "agent", choices=self._agent_choices(agents)),
            Field("variation", "variation", choices=tuple(variations), hint="" if names else "these tests have none"),
            Field("ab", "against (A/B)", NO, choices=((NO, "no other agent"), *((name, name) for name in agents))),
            Field("sample", "sample", placeholder="all", hint="tests" + (" and rows" if rows else "") + ", at random"),
            Field("concurrency", "concurrency", placeholder=str(suite.defaults.concurrency or 8), hint="parallel runs"),
            Field("max_cost", "max cost $", placeholder="no limit", hint="with judges and users"),
            Field("cache", "cache", choices=CACHES, hint="reuse stored answers"),
            Field("stop", "stop early", choices=STOPS, hint="" if stops else "not in these tests"),
            Field("name", "name", placeholder="none", hint="of this execution"),
        ]

    def _agent_names(self, configured: Sequence[Configured] = ()) -> list[str]:
        mine = [agent.name for agent in configured if not agent.suite]
        return list(dict.fromkeys([*self._suite.agents, *mine]))

    def _agent_choices(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The tests' own agent first, and the others."""
        others = [name for name in names if name != self._default]
        return (("", self._default or "as the tests say"), *((name, name) for name in others))

    async def _offer_agents(self) -> None:
        """The user's own agents too; reading them takes a moment."""
        try:
            agents, _problems = await asyncio.to_thread(self.agenteval.session.workspace.agents)
        except AgentevalError:
            return  # planning says what is wrong
        names = self._agent_names(agents)
        form = self.query_one(Form)
        form.offer("agent", self._agent_choices(names))
        form.offer("ab", [(NO, "no other agent"), *((name, name) for name in names)])

    # What it takes

    def on_form_changed(self, event: Form.Changed) -> None:
        """Plan again; the newest wins."""
        self._wanted = False
        self._plan()

    def _plan(self) -> None:
        form = self.query_one(Form)
        options, problems = read_options(form.values(), self._base, self._default)
        form.complain(problems)
        self._planned = options
        if options is None:
            self.workers.cancel_group(self, "plan")
            self._error = self._preview = None
            self.query_one("#estimate", LineBlock).retell()
            return
        self._estimating = True
        self._counting = start_worker(self, partial(self._count, options), group="plan")

    async def _count(self, options: PlanOptions) -> None:
        await asyncio.sleep(QUIET_S)
        error: AgentevalError | None = None
        preview = None
        try:
            preview = await asyncio.to_thread(self.agenteval.session.workspace.preview, self._paths, options)
        except AgentevalError as wrong:
            error = wrong
        self._estimating = False
        self._preview, self._error = preview, error
        if isinstance(error, OptionError):
            self.query_one(Form).complain({error.option: error.what})
        self.query_one("#estimate", LineBlock).retell()
        was_wanted, self._wanted = self._wanted, False
        if not was_wanted:
            return
        if preview is not None and preview.estimate.whole_cost != 0:
            self.agenteval.say(READ_FIRST)
        else:
            self._start()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Start, unless something is wrong. What may cost something is started when its estimate was shown."""
        if self._planned is not None and self._estimating:
            self._wanted = True
            if self._counting is not None:
                # The next keys are for what comes then: the run, or an estimate to read first.
                self.agenteval.keys_wait_for(self._counting)
        else:
            self._start()

    def _start(self) -> None:
        if self._planned is None or self._error is not None:
            self.app.bell()
            return
        self.dismiss(self._planned)

    # Lines

    def _estimate_lines(self, width: int) -> list[Line]:
        lines: list[Line] = []
        if self._error is not None:
            lines += error_lines(self._error, width)[:ESTIMATE_ROWS]
        elif self._preview is not None:
            lines += view_lines(plan_in_short(self._preview), width)[:ESTIMATE_ROWS]
        else:
            words = "counting …" if self._planned is not None else "Fix the marked fields to see the estimate."
            lines.append(((words, "dim"),))
        # Always as high: nothing jumps while one types.
        return [*lines, *((),) * (ESTIMATE_ROWS - len(lines))]


_ABOUT_LIMITS = "Finished runs are not paid for again. Raise the limit that stopped it:"


class ResumeScreen(FormSheet["PlanOptions | None"]):
    """Dismissed with the new limits, or None."""

    def __init__(self, limits: PlanOptions) -> None:
        """`limits`: those that it was started with."""
        super().__init__()
        self._limits = limits

    def compose(self) -> ComposeResult:
        limits = self._limits
        fields = [Field("concurrency", "concurrency", placeholder="as before", hint="parallel runs")]
        if limits.max_cost is not None:
            # 15 digits show it as it was typed; 17 show the ends of binary fractions.
            fields.insert(0, Field("max_cost", "max cost $", f"{limits.max_cost:.15g}", hint="in all, judges included"))
        if limits.max_tokens is not None:
            fields.insert(0, Field("max_tokens", "max tokens", str(limits.max_tokens), hint="in all"))
        if limits.max_seconds is not None:
            fields.insert(0, Field("max_seconds", "max time", f"{limits.max_seconds:.15g}", hint="seconds"))
        with SheetFrame("Resume the execution", self.edge(("enter", "resume"))):
            yield LineBlock(lambda width: paragraph(_ABOUT_LIMITS, width, "dim"), id="about")
            yield Form(fields, id="fields")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Go on, unless something is wrong."""
        form = self.query_one(Form)
        plan_options, problems = read_options(form.values(), self._limits, "")
        form.complain(problems)
        if plan_options is not None:
            self.dismiss(plan_options)
