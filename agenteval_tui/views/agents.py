"""What is shown of configured agents: a line each, one in full, and what a check found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.runs.agent_factory import Configured, Surrounding, options_of
from agenteval_tui.views.model import Fact, Facts, Heading, Paragraph, Span, Text, View, paragraphs, text

_SIGNS: dict[bool | None, Span] = {True: ("✓", "good"), False: ("!", "broken"), None: ("·", "dim")}
_STEP = 22  # cells before what a step found
_STATE_WORDS = {True: "yes", False: "no", None: "unknown"}


def agents_view(agents: Sequence[Configured], reports: Mapping[int, CheckReport]) -> View:
    """A line for each agent; for one that was checked (`reports`, by its number), its result, step by step."""
    view: View = ()
    for number, agent in enumerate(agents):
        report = reports.get(number)
        head = f"{one_line(agent.name)}  {agent.kind}  "
        if report is None:
            view += (Paragraph(text(head, (one_line(agent.about, 70), "dim"), (f"  {agent.file}", "dim"))),)
        else:
            fix = f" ({report.fix})" if report.fix and not report.ok else ""
            message = f"{one_line(report.message, 300)}{fix}"
            took = (f"  {numbers.duration(report.latency_ms)}".rstrip(), "dim")
            view += (
                Paragraph(text(_SIGNS[report.ok], f" {head}{message}", took)),
                *paragraphs(_steps(report), indent=2),
            )
    return view


def agent_in_full(
    agent: Configured,
    keys: Sequence[tuple[str, bool]],
    trusting: Sequence[str],
    around: Sequence[Surrounding] = (),
) -> View:
    """An agent: where it is configured, how, which Python and which `.env` it uses (`around`), whether its keys are set
    (by name), what must be trusted before it is asked (`trusting`)."""
    owner = f"suite {one_line(agent.suite, 60)}" if agent.suite else "your own"
    facts = [Fact("from", text(f"{agent.file.name}:{agent.line}, {owner}"))]
    # A key is said below, with whether it is set.
    facts += [
        Fact(name, text(value)) for name, value in options_of(agent.config) if value not in {key for key, _ in keys}
    ]
    for surrounding in around:
        label = "runs with" if surrounding.name == "python" else surrounding.name
        remedy = f"; {surrounding.fix}" if surrounding.fix else ""
        facts.append(Fact(label, text(surrounding.description, (remedy, "broken"))))
    for name, is_set in keys:
        state: Span = ("is set", "good") if is_set else ("is not set", "broken")
        facts.append(Fact("key from", text(f"${one_line(name, 60)} ", state)))
    # What the user wrote is trusted as it is.
    for number, what in enumerate(trusting if agent.suite else ()):
        facts.append(Fact("" if number else "to trust", text(what)))
    head = text((one_line(agent.name, 80), "bold"), (f"  {one_line(agent.kind)}", "dim"))
    return (Heading(head), *paragraphs([text(agent.about)]), Paragraph(()), Facts(tuple(facts)))


def report_view(report: CheckReport) -> View:
    """What a check found, what to do about it, and its steps."""
    sign, token = _SIGNS[report.ok]
    view: View = paragraphs([text((f"{sign} {report.message}", token))])
    view += (Facts((Fact("remedy", text(report.fix)),)),) if report.fix else ()
    return (*view, Paragraph(()), *paragraphs(_steps(report), hang=_STEP)) if report.steps else view


def _steps(report: CheckReport) -> Iterator[Text]:
    for step in report.steps:
        detail = one_line(step.message, 300) or _STATE_WORDS[step.ok]
        took = f"{numbers.duration(step.latency_ms):>8}  "
        yield text(_SIGNS[step.ok], f" {one_line(step.name, 20):<10}", (took + detail, "dim"))
