"""What is shown of quarantines: what is in quarantine and until when, and what of an execution it kept from gating."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval_tui.analysis.quarantine_gate import QuarantineEffect
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.views.model import Column, Row, Table, Text, View, paragraphs, row_key, text

_MOST = 10


def name_text(test: str, criterion: str) -> str:
    """`refunds`, `refunds / Names the order`: the test, and the criterion where it is only that one."""
    return f"{one_line(test, 60)} / {one_line(criterion, 60)}" if criterion else one_line(test, 60)


def held_text(held: Sequence[Quarantine]) -> str:
    """`in quarantine until 2026-12-06 (flaky: 3 of 5 passed)`, a criterion by its name; "" for none. Raw."""
    return "; ".join(
        (f"{quarantine.criterion} " if quarantine.criterion else "")
        + f"in quarantine until {quarantine.last_day}"
        + (f" ({quarantine.reason})" if quarantine.reason else "")
        for quarantine in held
    )


def in_force_text(quarantine: Quarantine) -> str:
    """`in quarantine until 2026-12-06, by kim`: the present one, if its test and its reason are beside it."""
    return f"in quarantine until {quarantine.last_day}" + (
        f", by {one_line(quarantine.who, 30)}" if quarantine.who else ""
    )


def begun_text(quarantine: Quarantine) -> str:
    """`refunds is non-gating until 2026-12-24`: what is said when it begins."""
    return f"{name_text(quarantine.test_id, quarantine.criterion)} is non-gating until {quarantine.last_day}"


def ended_text(test: str, criterion: str) -> str:
    """`refunds gates again`."""
    return f"{name_text(test, criterion)} gates again"


def listed_view(listed: Sequence[Quarantine], now_ms: int) -> View:
    """A line a quarantine: what, until when, and whose decision it was."""
    if not listed:
        return paragraphs([text("nothing is in quarantine; agenteval quarantine add TEST puts a test there")])
    lines = []
    for quarantine in listed:
        over = "" if quarantine.holds(now_ms) else "  (over)"
        about = ", ".join(
            one_line(part, 80) for part in (quarantine.suite_name, quarantine.reason, quarantine.who) if part
        )
        until = f"  until {quarantine.last_day}{over}"
        lines.append(
            text(("~ ", "flaky"), name_text(quarantine.test_id, quarantine.criterion), until, (f"  {about}", "dim"))
        )
    return paragraphs(lines)


def quarantines_table(listed: Sequence[Quarantine]) -> Table:
    """The same as a table, a row a quarantine."""
    rows = []
    for quarantine in listed:
        reason = (f"  {quarantine.reason}" if quarantine.reason else "", "dim")
        name = text(("~ ", "flaky"), name_text(quarantine.test_id, quarantine.criterion), reason)
        rows.append(
            Row(
                (name, text(quarantine.last_day)),
                row_key("test", quarantine.suite_key, quarantine.test_id, quarantine.criterion),
            )
        )
    return Table((Column("  test, and criterion"), Column("until", "right")), tuple(rows))


def left_out_view(left_out: Sequence[QuarantineEffect]) -> View:
    """A line for each quarantine that kept something of an execution from gating, those that mattered first."""
    return paragraphs(_left_out(left_out))


def _left_out(left_out: Sequence[QuarantineEffect]) -> Iterator[Text]:
    for excluded in _ordered(left_out)[:_MOST]:
        reason = f": {one_line(excluded.quarantine.reason, 60)}" if excluded.quarantine.reason else ""
        yield text(
            ("~ in quarantine, non-gating: ", "warn"),
            f"{name_text(excluded.quarantine.test_id, excluded.quarantine.criterion)} ({_runs(excluded)})",
            (f"  until {excluded.quarantine.last_day}{reason}", "dim"),
        )
    yield _more(len(left_out))


def skipped_view(listed: Sequence[Quarantine]) -> View:
    """What a figure leaves out since it is in quarantine."""
    lines = []
    for quarantine in listed[:_MOST]:
        name, until = name_text(quarantine.test_id, quarantine.criterion), (f"  until {quarantine.last_day}", "dim")
        lines.append(text(("~ in quarantine, left out: ", "warn"), name, until))
    return paragraphs([*lines, _more(len(listed))])


def _more(number: int) -> Text:
    return text((f"~ and {number - _MOST:,} more in quarantine" if number > _MOST else "", "warn"))


def left_out_text(left_out: Sequence[QuarantineEffect]) -> str:
    """`In quarantine, and not gating: refunds until 2026-12-06 (1 of 3 runs did not pass).`; "" for nothing."""
    if not left_out:
        return ""
    parts = []
    for excluded in _ordered(left_out):
        name = name_text(excluded.quarantine.test_id, excluded.quarantine.criterion)
        parts.append(f"{name} until {excluded.quarantine.last_day} ({_runs(excluded)})")
    return f"In quarantine, and not gating: {abridged(parts, _MOST)}."


def _ordered(left_out: Sequence[QuarantineEffect]) -> list[QuarantineEffect]:
    return sorted(left_out, key=lambda excluded: (-excluded.not_passed, excluded.quarantine.key))


def _runs(excluded: QuarantineEffect) -> str:
    """`1 of 3 runs did not pass`; `3 runs` where all passed."""
    runs = numbers.count(excluded.runs, "run")
    return f"{excluded.not_passed:,} of {runs} did not pass" if excluded.not_passed else runs
