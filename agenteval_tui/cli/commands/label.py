"""`agenteval label`: what a person thinks of a run, or of one criterion of it; feedback with a key and a score."""

from __future__ import annotations

import click

from agenteval_tui.analysis.agreement import sole_of_results
from agenteval_tui.analysis.explanation import criterion_named
from agenteval_tui.analysis.labels import LabelSaved, give_label, remove_label
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import FiniteNumber, who_option
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.feedback import AddFeedback, Feedback, check_key
from agenteval_tui.history.labels import Label, TakeBackLabel
from agenteval_tui.history.store import Store
from agenteval_tui.views.label import feedback_score, label_given
from agenteval_tui.views.model import Paragraph, text

_VERDICTS = {"passed": True, "failed": False}
_SAYS = ("passed", "failed", "1", "2", "3", "4", "5")


class _Says(click.Choice):  # type: ignore[type-arg]  # before click 8.2 it takes none
    """A verdict or a rating; with --key, a score."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # Whether a score is allowed depends on --key, which click may not have read yet.
        if value not in self.choices and _number(value) is not None:
            return value
        return str(super().convert(value, param, ctx))


@click.command("label")
@click.argument("reference", metavar="RUN[/CRITERION]", shell_complete=shell_completion.runs)
@click.argument("says", metavar="passed|failed|1..5", type=_Says(_SAYS), nargs=-1)
@click.option("--key", default="", metavar="KEY", help="Give feedback under this key, with a score from 0 to 1.")
@click.option("--score", type=FiniteNumber(0, 1), metavar="N", help="The score of --key, from 0 (bad) to 1 (good).")
@click.option("--comment", "--note", default="", help="Why, in a few words.")
@who_option
@click.option("--remove", is_flag=True, help="Remove your last label, or with --who another person's.")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    reference: str,
    says: tuple[str, ...],
    key: str,
    score: float | None,
    comment: str,
    who: str,
    remove: bool,
) -> int:
    """Label RUN as passed or failed, rate it from 1 (bad) to 5 (good), or both; with /CRITERION (a number from 1, or a
    name), label only that criterion.

    RUN is the id of a run or a part of it, a test's id (its newest run), or `last`, the newest run.

    Without `passed` or `failed`, a rating of 4 or 5 counts as passed. Criteria that wait for a person get their verdict
    from the label; `agenteval judge-report` compares judges and criteria with it. A label of the run as a whole counts
    for a criterion only if no other criterion decides the run.

    With --key, RUN gets feedback instead: `agenteval label RUN --key user_satisfaction 0.8`. Feedback decides no
    verdict; `agenteval trends` shows its mean, and alerts when it is too low.
    """
    if remove and (says or comment or score is not None):
        raise click.UsageError("--remove removes a label: give no verdict or comment with it")
    if key or score is not None:
        return _feedback(
            invocation, reference, says=says, key=key, score=score, comment=comment, who=who, remove=remove
        )
    if not says and not remove:
        raise click.UsageError("say passed or failed, or a rating from 1 to 5; --remove removes a label")
    if scores := [word for word in says if word not in _SAYS]:
        raise click.UsageError(
            f"{scores[0]} is not a rating from 1 to 5; a score needs --key, as --key user_satisfaction 0.8"
        )
    verdicts = [_VERDICTS[word] for word in says if word in _VERDICTS]
    ratings = [int(word) for word in says if word not in _VERDICTS]
    if len(verdicts) > 1 or len(ratings) > 1:
        raise click.UsageError("give one verdict (passed or failed), one rating (1 to 5), or one of each")
    with invocation.store() as store:
        row, criterion_name = invocation.references(store).address(reference)
        results, criterion = store.results(row.id), ""
        if criterion_name:
            criterion = criterion_named(row.id, results, criterion_name)[1].criterion
        if remove:
            return _remove(invocation.out, store, row.id, criterion, who or current_user())
        label = Label(
            row.id,
            ratings[0] if ratings else None,
            criterion,
            comment,
            who or current_user(),
            passed=verdicts[0] if verdicts else None,
        )
        status = give_label(store, label).status
        invocation.out.view((Paragraph(text(*label_given(label, status), (f"  {row.id}", "dim"))),))
        if not criterion and results and not sole_of_results(results):
            out_of = ", ".join(f"{row.id}/{number}" for number, _ in enumerate(results, 1))
            invocation.out.line((f"this labels the run, not its criteria; to label a criterion: {out_of}", "dim"))
    return 0


def _remove(out: Output, store: Store, run_id: str, criterion: str, who: str) -> int:
    """Take back a person's last label of a run, or of the criterion with this name."""
    labels = store.labels([run_id])
    of_this = [
        label for label in labels if (label.criterion == criterion if criterion else label.whole or label.unknown)
    ]
    own = [label for label in of_this if label.who == who]
    if not own:
        others = ", ".join(dict.fromkeys(label.who or "someone without a name" for label in of_this))
        raise AgentevalError(
            f"{who} has no label on {criterion or 'the run'}",
            where=f"run {run_id}",
            fix=f"labelled by {others}: give --who" if others else "it has no label",
        )
    status = remove_label(store, LabelSaved(own[-1], own[-1].id, ""))
    out.view((Paragraph(text(*label_given(own[-1], status, taken_back=True), (f"  {run_id}", "dim"))),))
    return 0


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _feedback(
    invocation: Invocation,
    reference: str,
    says: tuple[str, ...],
    key: str,
    score: float | None,
    comment: str,
    who: str,
    remove: bool,
) -> int:
    """Give a run feedback, or take back what this person gave last under this key."""
    if not key:
        raise click.UsageError("--score needs --key, which says what is scored: --key user_satisfaction")
    scores = [] if score is None else [score]
    scores += [number for word in says if (number := _number(word)) is not None]
    if not remove and (len(scores) != 1 or len(says) > 1 or not 0 <= scores[0] <= 1):
        raise click.UsageError(f"give one score from 0 to 1, such as 0.8, behind --key {key}")
    with invocation.store() as store:
        row, criterion = invocation.references(store).address(reference)
        if criterion:
            raise AgentevalError(
                "feedback is of a run, not of a criterion", where=reference, fix=f"name the run: {row.id}"
            )
        who = who or current_user()
        if remove:
            return _remove_feedback(invocation.out, store, row.id, check_key(key), who)
        feedback = Feedback(row.id, check_key(key), scores[0], comment, who)
        store.write(AddFeedback(feedback)).result()
        invocation.out.line(feedback_score(feedback), (f"  {row.id}", "dim"))
    return 0


def _remove_feedback(out: Output, store: Store, run_id: str, key: str, who: str) -> int:
    of_this = [feedback for feedback in store.feedback([run_id]) if feedback.key == key]
    own = [feedback for feedback in of_this if feedback.who == who]
    if not own:
        others = ", ".join(dict.fromkeys(feedback.who or "someone without a name" for feedback in of_this))
        raise AgentevalError(
            f"{who} gave no feedback {key}",
            where=f"run {run_id}",
            fix=f"given by {others}: give --who" if others else "it has none",
        )
    store.write(TakeBackLabel(own[-1].id)).result()
    out.line(f"taken back: {feedback_score(own[-1])}", (f"  {run_id}", "dim"))
    return 0
