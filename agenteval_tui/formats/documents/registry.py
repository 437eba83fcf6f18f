"""The documents that this program reads and prints, by name. Their JSON Schemas are made from their types.

`docs/schemas/` holds the schemas as files, and tests check both.

A document that may grow has a `version`; its number changes when something in it changes its meaning or goes away.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from agenteval_tui.agents.process.protocol import ProgramRequest
from agenteval_tui.core import entry_points
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.entry_points import DOCUMENTS, EntryPoint
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.formats.documents.agent_candidates import AgentCandidatesDocument
from agenteval_tui.formats.documents.causes import FailureCauses, Triage
from agenteval_tui.formats.documents.comparison import ComparedSides, CriterionVersions, ListedBaseline
from agenteval_tui.formats.documents.db import (
    HistoryCheck,
    HistoryHealth,
    HistoryMerge,
    HistoryPruning,
    HistoryQueryResult,
    HistoryViews,
)
from agenteval_tui.formats.documents.difference import Difference
from agenteval_tui.formats.documents.drafted_test import DraftedTestDocument
from agenteval_tui.formats.documents.flaky import FlakyTests
from agenteval_tui.formats.documents.fork import RunForks
from agenteval_tui.formats.documents.grade import GradedExecution
from agenteval_tui.formats.documents.judge import JudgeReplies, JudgeReport, RepeatedJudgment
from agenteval_tui.formats.documents.listings import (
    Doctor,
    ImportedFile,
    ListedAgent,
    ListedExecution,
    ListedPrices,
    ListedRun,
    LiveExecutions,
    PricesUpdated,
    Quarantines,
    Review,
    TrustedRepositories,
)
from agenteval_tui.formats.documents.model_request import RunRequests
from agenteval_tui.formats.documents.notification import ExecutionEnded
from agenteval_tui.formats.documents.programs import PROGRAM_EVENT
from agenteval_tui.formats.documents.recording import RecordedProgram
from agenteval_tui.formats.documents.results import ExecutionResults, ShownRun
from agenteval_tui.formats.documents.schema import Schema, schema_of
from agenteval_tui.formats.documents.stats import COSTS, ABComparison, ExecutionStats
from agenteval_tui.formats.documents.suite_schema import criteria_schema, suite_schema
from agenteval_tui.formats.documents.trends import Trends
from agenteval_tui.formats.documents.why import Why
from agenteval_tui.grading.codec import CriterionDocument
from agenteval_tui.runs.change.model import WatchEvent
from agenteval_tui.runs.plan.preview import PlanPreview
from agenteval_tui.transcripts.codec import StoredTranscript

DIALECT = "https://json-schema.org/draft/2020-12/schema"


# name -> (title, its type, or what makes its schema, or where an extension has its type)
SCHEMAS: dict[str, tuple[str, Any]] = {
    "suite": ("a suite file", suite_schema),
    "criteria": ("the file of `agenteval grade --criteria`", criteria_schema),
    "transcript": ("a transcript; what `agenteval show --transcript --json` prints", StoredTranscript),
    "results": (
        "what `agenteval run --json` writes and `agenteval show EXECUTION --json` prints",
        ExecutionResults,
    ),
    "notification": ("what `agenteval run --notify` sends", ExecutionEnded),
    "run": ("what `agenteval show RUN --json` prints", ShownRun),
    "grade": ("what `agenteval grade --transcript --json` prints", tuple[CriterionDocument, ...]),
    "grade-execution": ("what `agenteval grade --execution --json` prints", GradedExecution),
    "found-agents": ("what `agenteval init --list --json` prints", AgentCandidatesDocument),
    "why": ("what `agenteval why --json` prints", Why),
    "fork": ("what `agenteval fork --json` prints", RunForks),
    "requests": ("what `agenteval show RUN --request N --json` prints", RunRequests),
    "difference": ("what `agenteval show RUN --diff RUN --json` prints", Difference),
    "stats": ("what `agenteval stats --json` prints", ExecutionStats),
    "validate": ("what `agenteval validate --json` prints", tuple[Problem, ...]),
    "judge-report": ("what `agenteval judge-report --json` prints", JudgeReport),
    "judge-replies": ("what `agenteval judge-report RUN/CRITERION --json` prints", JudgeReplies),
    "judge-reask": (
        "what `agenteval judge-report RUN/CRITERION --reask N --json` prints",
        RepeatedJudgment,
    ),
    "compare": ("what `agenteval compare --json` prints", ComparedSides),
    "baselines": ("what `agenteval baseline list --json` prints", tuple[ListedBaseline, ...]),
    "criterion": ("what `agenteval criterion TEST/CRITERION --json` prints", CriterionVersions),
    "trends": ("what `agenteval trends --json` prints", Trends),
    "flaky": ("what `agenteval flaky --json` prints", FlakyTests),
    "quarantine": ("what `agenteval quarantine --json` prints", Quarantines),
    "causes": ("what `agenteval causes --json` prints", FailureCauses),
    "triage": ("what `agenteval triage --json` prints", Triage),
    "make-test": ("what `agenteval make-test --json` prints", DraftedTestDocument),
    "review": ("what `agenteval review --json` prints", Review),
    "history": ("what `agenteval history --json` prints", tuple[ListedExecution, ...]),
    "name": ("what `agenteval name --json` prints", ListedExecution),
    "history-runs": ("what `agenteval history --runs --json` prints", tuple[ListedRun, ...]),
    "db": ("what `agenteval db --json` prints", HistoryHealth),
    "db-check": ("what `agenteval db check --json` prints", HistoryCheck),
    "db-prune": ("what `agenteval db prune --json` prints", HistoryPruning),
    "db-query": ("what `agenteval db query --json` prints", HistoryQueryResult),
    "db-views": ("what `agenteval db query --views --json` prints", HistoryViews),
    "db-import": ("what `agenteval db import --json` prints", tuple[HistoryMerge, ...]),
    "import": ("what `agenteval import --json` prints", tuple[ImportedFile, ...]),
    "agents": ("what `agenteval agents --json` prints", tuple[ListedAgent, ...]),
    "doctor": ("what `agenteval doctor --json` prints", Doctor),
    "agent-request": ("what a `command` or `python` agent gets", ProgramRequest),
    "agent-event": ("what a `command` or `python` agent may say: one event", PROGRAM_EVENT),
    "costs": (
        "what `agenteval stats --costs --json` prints",
        COSTS,
    ),
    "ab": ("what `agenteval stats --ab --json` prints", ABComparison),
    "plan": ("what `agenteval run --plan --json -` prints", PlanPreview),
    "watch": ("what `agenteval run --watch --json -` prints: an event a line", WatchEvent),
    "ps": ("what `agenteval ps --json` prints", LiveExecutions),
    "record": ("what `agenteval record --json` prints", RecordedProgram),
    "prices": ("what `agenteval prices --json` prints", ListedPrices),
    "prices-update": ("what `agenteval prices update --json` prints", PricesUpdated),
    "trust": ("what `agenteval trust --list --json` prints", TrustedRepositories),
    **{
        verb: (f"what `agenteval {verb} --json` prints", EntryPoint(DOCUMENTS, verb, target, ""))
        for verb, target in sorted(entry_points.own(DOCUMENTS).items())
    },
}


def schema(name: str) -> Schema:
    """The schema of that name, with `$schema` and `title`. Raises `AgentevalError` for another name."""
    if name not in SCHEMAS:
        fix = did_you_mean(name, SCHEMAS, f"schemas: {', '.join(SCHEMAS)}")
        raise AgentevalError(f"there is no schema {name!r}", fix=fix)
    about, source = SCHEMAS[name]
    if isinstance(source, EntryPoint):
        source = source.load_as("document")
    body = source() if isinstance(source, FunctionType) else schema_of(source)
    head = {"$schema": body.get("$schema", DIALECT), **({"$id": body["$id"]} if "$id" in body else {})}
    return {**head, "title": f"agenteval: {about}", **{k: v for k, v in body.items() if k not in _HEAD}}


_HEAD = ("$schema", "$id", "title")
