"""Blame from Python: the step where a run was lost, as `agenteval blame` says it."""

from __future__ import annotations

from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.analysis.blame.free_answer import ReadParts, blame_of
from agenteval_tui.analysis.blame.model import Blame as Answers
from agenteval_tui.analysis.blame.model import SampledAnswer
from agenteval_tui.analysis.blame.recorded_facts import known_blame, with_sampling
from agenteval_tui.api.display import Shown
from agenteval_tui.api.runs import File, Run
from agenteval_tui.core import directories
from agenteval_tui.extensions.blame.sampled_answer import BlameOptions, Sampling, with_price
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.blame import blame_line, blame_view
from agenteval_tui.views.model import View


class Blame(Shown):
    """The four answers. `answers` has them with all evidence; steps in it count from 0."""

    def __init__(self, answers: Answers, transcript: Transcript) -> None:
        self.answers = answers
        self.transcript = transcript

    @property
    def step(self) -> int | None:
        """The decisive step, as `agenteval show` numbers messages, from 1; None: `decision` says why there is none."""
        return None if self.answers.decisive is None else self.answers.decisive.step + 1

    @property
    def decision(self) -> str:
        """step, none (sampling found that no step decides), luck, criterion (a person called the run good), or
        not_known: no evidence is reliable enough. `answers.sampling_price` is what sampling would then cost."""
        return self.answers.decision

    @property
    def fault(self) -> str:
        """agent, user, tool, environment, criterion, or unknown."""
        return self.answers.fault

    @property
    def reproduces(self) -> str:
        """always, mostly, luck (more than half of the stored repetitions passed), or once (it ran once)."""
        return self.answers.reproduces

    @property
    def reason(self) -> str:
        """The decisive step with its strongest evidence, on one line; "" where there is none."""
        return blame_line(self.answers, self.transcript)

    def __repr__(self) -> str:
        return f"<Blame of {self.answers.run}: step {self.step}, {self.fault}>"

    def view(self) -> View:
        """As `agenteval blame` prints it."""
        return blame_view(self.answers, self.transcript)


@allowed_once_by("trust=True")
def blame(
    run: str | Run = "",
    *,
    samples: int | None = None,
    max_cost: float | None = None,
    concurrency: int | None = None,
    trust: bool = False,
    db: File | None = None,
) -> Blame:
    """Which step a stored run was lost at, and whose fault that is. A test's id is its newest run that failed; "": the
    newest of all.

    Without `samples` no agent is called, and a step is named only for evidence of a kind that proved reliable. With
    `samples` (8 is a good start) the run is also continued from some of its steps, at most this many times from each;
    that may cost money, `max_cost` US dollars at most. What was asked before is not asked again. `trust`: programs and
    functions of the suite's folder may run.

    Works where an event loop runs already, as in a notebook. Raises `AgentevalError`: an option outside its limits, no
    such run, a run that passed, or, with `samples`, an agent that can't continue a conversation.
    """
    options = BlameOptions(samples=samples, max_cost=max_cost, concurrency=concurrency, trust=trust)
    path = run.db if isinstance(run, Run) else directories.history_file(db)
    with Store.open_to_look(path) if samples is None else Store.open(path) as store:
        row = run.row if isinstance(run, Run) else References(store, projects_open()).failed_run(run)
        transcript = store.transcript(row.id)
        if samples is None:
            answers = with_price(store, row, known_blame(store, row, ReadParts(transcript)), transcript)
        else:
            answers = blame_of(store, row, ReadParts(transcript))
            oracle = Oracle(store, row, options, purpose="blame")
            sampling = Sampling(oracle, transcript, samples)
            sampled: SampledAnswer = run_in_thread(sampling.asking, oracle.stop)
            answers = with_sampling(answers, sampled)
    return Blame(answers, transcript)
