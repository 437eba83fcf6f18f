"""What is shown of the causes of failures: all causes as lines, as a page and in short, and one cause in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agenteval_tui.analysis.causes import CauseGroup, Causes
from agenteval_tui.analysis.triage import TriageStatus
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.views.model import Column, Fact, Facts, Heading, Paragraph, Row, Span, Table, Text, View, text

Decided = Mapping[str, TriageStatus]
"""What was decided about each cause, by its signature."""

_WORST = 3
_TESTS = 4
_TESTS_IN_FULL = 8
_TRENDS: dict[str, Span] = {"new": ("  new", "bad"), "gone": ("  gone", "good"), "known": ("  known", "dim")}


def causes_text(causes: Causes) -> str:
    """`212 failures = 6 causes`."""
    return f"{numbers.count(causes.failed, 'failure')} = {numbers.count(len(causes.present), 'cause')}"


def compared_text(causes: Causes) -> str:
    """`, compared with the baseline`; "" where nothing was before."""
    return f", compared with {causes.scope.before_words}" if causes.scope.before_words else ""


def standing_text(standing: TriageStatus) -> str:
    """`ignored until it changes`, `open again (was: ...): ...`, with the note of the person who decided."""
    return standing.description + (f": {standing.decision.note}" if standing.decision.note else "")


def names_of_tests(group: CauseGroup, most: int = _TESTS) -> str:
    """The tests that have it: `a, b and 3 more`."""
    return abridged([one_line(name, 60) for _, name in group.tests], most)


def extent_text(group: CauseGroup, most: int = _TESTS) -> str:
    """How much of it there is: `50 % of the failures, 2 of 9 runs of a, b`; of one that is gone what there was."""
    if group.trend == "gone":
        return f"{numbers.count(group.before, 'run')} before, in {names_of_tests(group, most)}"
    share = "-" if group.share is None else numbers.percent(group.share)
    runs = f"{group.count:,} of {numbers.count(group.ended, 'run')} of {names_of_tests(group, most)}"
    return f"{share} of the failures, {runs}"


def decision_text(standing: TriageStatus, now_ms: int | None = None) -> Text:
    """What was decided, when, by whom, until when, and whether it holds. `now_ms`: how long ago that was, too."""
    decision = standing.decision
    about = [numbers.moment(decision.at_ms)] + ([numbers.age(decision.at_ms, now_ms)] if now_ms is not None else [])
    about += [one_line(decision.who, 40)] if decision.who else []
    about += [f"until {numbers.moment(decision.until_ms)}"] if decision.until_ms else []
    note = f": {one_line(decision.note, 200)}" if decision.note else ""
    return text((standing.description, "good" if standing.holds else "warn"), (f" ({', '.join(about)}){note}", "dim"))


def decision_line(standing: TriageStatus) -> Paragraph:
    """The decision, as shown below its cause."""
    return Paragraph(decision_text(standing), 8)


def causes_view(causes: Causes, decided: Decided, options: str = "") -> View:
    """All causes, worst first, each with its tests, since when, an example and what was decided. `options`: those that
    printed commands need, as ` --db FILE`."""
    return tuple(_lines(causes, decided, options))


def _lines(causes: Causes, decided: Decided, options: str) -> Iterator[Paragraph]:
    yield Paragraph(text((causes_text(causes), "bold"), (f"  {causes.scope.words}{compared_text(causes)}", "dim")))
    for group in causes.groups:
        yield Paragraph(())
        yield from _group(group, decided.get(group.cause.signature), options)
    if causes.present:
        yield Paragraph(text(("agenteval triage CAUSE accept|fix|quarantine|label|ignore decides about one", "dim")))


def _group(group: CauseGroup, standing: TriageStatus | None, options: str) -> Iterator[Paragraph]:
    # What is gone or decided needs nobody: it is listed, and stays in the background.
    is_open = group.trend != "gone" and not (standing is not None and standing.holds)
    yield Paragraph(
        text(
            (f"{group.count:>5} × ", "bad" if is_open else "dim"),
            (one_line(group.title, 200), "bold" if is_open else "dim"),
            _TRENDS.get(group.trend, ("", "")),
        )
    )
    since = f", since {numbers.moment(group.since_ms)}" if group.since_ms and group.trend != "gone" else ""
    yield Paragraph(text((f"{group.cause.id}  {extent_text(group)}{since}", "dim")), 8)
    if group.trend != "gone":
        yield Paragraph(text((f"agenteval why {group.address()}{options}", "dim")), 8)
    if standing is not None:
        yield decision_line(standing)


def causes_in_short(causes: Causes, decided: Decided, execution_id: str, options: str = "") -> View:
    """`212 failures = 6 causes` and the worst three; nothing where nothing failed."""
    if not causes.present:
        return ()
    lines = [text((causes_text(causes), "bold"), (f"  (agenteval causes {short_id(execution_id)}{options})", "dim"))]
    for group in causes.present[:_WORST]:
        standing = decided.get(group.cause.signature)
        more = ("  new" if group.trend == "new" else "") + (f"  {standing.description}" if standing is not None else "")
        lines.append(text((f"{group.count:>5} × ", "bad"), one_line(group.title, 160), (more, "dim")))
    if len(causes.present) > _WORST:
        lines.append(text((f"      and {numbers.count(len(causes.present) - _WORST, 'more cause')}", "dim")))
    return tuple(map(Paragraph, lines))


def causes_page(causes: Causes, decided: Decided, level: int = 2) -> View:
    """The causes as a table with what was decided and an example; nothing where nothing failed."""
    if not causes.groups:
        return ()
    return (
        Heading(text("Causes"), level),
        Paragraph(text(f"{causes_text(causes)}{compared_text(causes)}.")),
        causes_table(causes, decided),
    )


def causes_table(causes: Causes, decided: Decided) -> Table:
    """A row a cause: runs, tests, whether it is new, title, decision, and the address of an example."""
    heads = (Column("Runs", "right"), Column("Tests", "right"), *map(Column, ("", "Cause", "Decision", "Example")))
    rows = []
    for group in causes.groups:
        standing = decided.get(group.cause.signature)
        cells = (
            text(str(group.count)),
            text(str(len(group.tests))),
            text(group.trend),
            text(one_line(group.title, 200)),
            text(one_line(standing_text(standing), 200) if standing is not None else ""),
            text(("" if group.trend == "gone" else group.address(), "code")),
        )
        rows.append(Row(cells, group.cause.signature))
    return Table(heads, tuple(rows))


def cause_in_full(group: CauseGroup, standing: TriageStatus | None, now_ms: int) -> View:
    """One cause: what was decided, how much of it there is, in which tests, and since when."""
    gone = group.trend == "gone"
    facts = [Fact("gone" if gone else "runs", text((extent_text(group, _TESTS_IN_FULL), "good" if gone else "")))]
    since = ""
    if group.since_ms:
        since = f"since {numbers.moment(group.since_ms)} ({numbers.age(group.since_ms, now_ms)})"
    if group.trend in ("new", "known"):
        before = "not there before" if group.trend == "new" else f"{numbers.count(group.before, 'run')} had it before"
        facts.append(Fact(group.trend, text(before + (f"; {since}" if since else ""))))
    elif since:
        facts.append(Fact("seen", text(since)))
    if (versions := len(group.versions)) > 1:
        facts.append(Fact("criterion", text(f"{versions} configs of that name fail like this")))
    decision = () if standing is None else (Facts((Fact("decided", decision_text(standing, now_ms)),)),)
    return (Paragraph(text((group.title, "bold"))), *decision, Facts(tuple(facts)))
