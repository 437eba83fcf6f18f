"""The views that people's own SQL reads: published, documented (docs/sql.md), and versioned.

Tables change with releases; views don't. A view may get more columns. What makes a query wrong that was right (a column
that goes, or means something else) makes a new `VERSION`.
"""

# ruff: noqa: S608 - statements are put together from words of ours

from __future__ import annotations

from msgspec import Struct

VERSION = 1


class ViewColumn(Struct, frozen=True):
    """A column of a view: how it is called, the SQL that makes it, and what it holds."""

    name: str
    sql: str
    about: str


class SqlView(Struct, frozen=True):
    """A view: its columns, and the tables that they are read from."""

    name: str
    about: str
    columns: tuple[ViewColumn, ...]
    source: str

    @property
    def statement(self) -> str:
        """What makes it, for one connection only: nothing is written into the history."""
        columns = ", ".join(f"{column.sql} AS {column.name}" for column in self.columns)
        return f"CREATE TEMP VIEW {self.name} AS SELECT {columns} FROM {self.source}"


def _time(milliseconds: str) -> str:
    return f"strftime('%Y-%m-%d %H:%M:%S', {milliseconds} / 1000.0, 'unixepoch')"


def _columns(*columns: tuple[str, str, str]) -> tuple[ViewColumn, ...]:
    return tuple(ViewColumn(*column) for column in columns)


def _passed(outcome: str) -> str:
    return f"CASE {outcome} WHEN 'passed' THEN 1 WHEN 'failed' THEN 0 END"


# Of the repository of the agent's own code where that is known, else of the suites'.
_COMMIT = (
    "(SELECT json_extract(one.value, '$.{}') FROM json_each(e.commits) AS one"
    " ORDER BY instr(json_extract(one.value, '$.of'), 'agents') = 0 LIMIT 1)"
)
_COUNTED = "r.superseded = 0"  # so are neither forks nor older gradings

EXECUTIONS = SqlView(
    "executions",
    "One row per execution: what one `agenteval run`, import or fork did.",
    _columns(
        ("id", "e.uid", "its id"),
        ("name", "nullif(e.name, '')", "what a person called it"),
        ("note", "nullif(e.note, '')", "a person's note"),
        ("meta", "e.meta", "metadata as JSON: `json_extract(meta, '$.model')`"),
        ("commit_hash", _COMMIT.format("commit"), "the commit of the agent's repository, else of the suites'"),
        ("branch", f"nullif({_COMMIT.format('branch')}, '')", "its branch"),
        ("dirty", _COMMIT.format("dirty"), "1: files differed from the commit; 0: they did not"),
        ("title", "e.title", "which suites or tests it ran"),
        ("kind", "e.kind", "`run`, `import` or `fork`"),
        ("status", "e.status", "`running`, `finished`, `cancelled`, `stopped`, `failed` or `interrupted`"),
        ("started", _time("e.started_ms"), "when it started, UTC"),
        ("finished", _time("e.finished_ms"), "when it ended, UTC"),
        ("project", "nullif(e.project, '')", "the folder of its project"),
        ("suites", "e.suites", "names of its suites, as a JSON list"),
        ("agents", "e.agents", "names of its agents, as a JSON list"),
        ("runs", "e.runs", "its runs"),
        ("passed", "e.passed", "runs that passed"),
        ("failed", "e.failed", "runs that failed"),
        ("errors", "e.errors", "runs that ended in an error"),
        ("needs_review", "e.needs_review", "runs that wait for a person"),
        ("skipped", "e.skipped", "runs that were not needed, or not graded"),
        ("cancelled", "e.cancelled", "runs that were cancelled"),
        ("input_tokens", "e.input_tokens", "tokens that its agents read"),
        ("output_tokens", "e.output_tokens", "tokens that its agents wrote"),
        ("cost", "e.cost", "US dollars for its agents"),
    ),
    "main.executions e",
)
_RUN_COLUMNS = _columns(
    ("id", "r.uid", "its id"),
    ("execution", "e.uid", "the id of its execution"),
    ("execution_name", "nullif(e.name, '')", "what a person called its execution"),
    ("project", "nullif(e.project, '')", "the folder of its project"),
    ("suite", "s.name", "the name of its suite"),
    ("suite_file", "s.key", "the file of its suite"),
    ("test", "t.test_id", "the id of its test"),
    ("test_name", "t.name", "the name of its test"),
    ("variation", "nullif(r.variation, '')", "its variation"),
    ("row", "nullif(r.row, 0)", "the row of the dataset, from 1"),
    ("repetition", "r.repetition", "which repetition of the test it is, from 1"),
    ("agent", "r.agent", "the name of the agent"),
    ("agent_version", "nullif(r.agent_version, '')", "the hash of the agent's configuration"),
    ("outcome", "r.status", "`passed`, `failed`, `error`, `needs_review`, `skipped`, `cancelled`, `queued`, `running`"),
    ("passed", _passed("r.status"), "1: it passed; 0: it failed; NULL: it has no verdict"),
    ("score", "r.score", "from 0 to 1"),
    ("why", "nullif(r.why, '')", "the first reason, in one line"),
    ("error_kind", "nullif(r.error_kind, '')", "the class of its error"),
    ("started", _time("coalesce(r.started_ms, e.started_ms)"), "when it started, UTC (else its execution)"),
    ("duration_ms", "r.duration_ms", "how long the agent took"),
    ("attempts", "r.attempts", "how often the agent was asked"),
    ("input_tokens", "r.input_tokens", "tokens that the agent read"),
    ("output_tokens", "r.output_tokens", "tokens that the agent wrote"),
    ("cost", "r.cost", "US dollars for the agent"),
    ("tool_calls", "r.steps", "how many tools it called; NULL if that can't be seen"),
    ("cached", "r.cached", "1 if the answer came from the history"),
    ("prompt", "p.prompt", "the user's last message before the first answer"),
    ("output_start", "r.output_head", "the beginning of the answer"),
    ("tags", "p.tags", "the test's tags, as a JSON list"),
    ("variables", "p.variables", "the values of the dataset's row, as JSON"),
)
_RUN_SOURCE = (
    "main.runs r JOIN main.executions e ON e.id = r.execution JOIN main.tests t ON t.id = r.test"
    " JOIN main.suites s ON s.id = t.suite JOIN main.plans p ON p.id = r.plan"
)
RUNS = SqlView(
    "runs",
    "One row per run that counts: without forks, and of runs that were graded again only the newest grading.",
    _RUN_COLUMNS,
    f"{_RUN_SOURCE} WHERE {_COUNTED}",
)
ALL_RUNS = SqlView(
    "all_runs",
    "One row per run, also for runs that `runs` leaves out.",
    (
        *_RUN_COLUMNS,
        ViewColumn("counts", _COUNTED, "1: it is in `runs`"),
        ViewColumn("graded_again_of", "nullif(r.recording, '')", "the id of the run that it grades again"),
        ViewColumn("fork_of", "nullif(r.fork_of, '')", "the id of the run that it continues"),
    ),
    _RUN_SOURCE,
)
CRITERIA = SqlView(
    "criteria",
    "One row for each criterion of each run that counts.",
    _columns(
        ("run", "r.uid", "the id of the run"),
        ("number", "c.position + 1", "its place in the run, from 1"),
        ("criterion", "c.name", "its name"),
        ("outcome", "c.outcome", "`passed`, `failed`, `error`, `skipped` or `needs_review`"),
        ("passed", _passed("c.outcome"), "1: it passed; 0: it failed; NULL: it has no verdict"),
        ("score", "c.score", "from 0 to 1"),
        ("version", "v.hash", "the hash of the criterion's content"),
        ("cause", "nullif(c.cause, '')", "the signature of the failure, as `agenteval causes` groups by it"),
    ),
    "main.criterion_results c JOIN main.runs r ON r.id = c.run LEFT JOIN main.criteria v ON v.id = c.criterion"
    f" WHERE {_COUNTED}",
)
TOOL_CALLS = SqlView(
    "tool_calls",
    "One row for each tool call of each run that counts.",
    _columns(
        ("run", "r.uid", "the id of the run"),
        ("number", "c.position + 1", "its place among the run's calls, from 1"),
        ("tool", "c.name", "the name of the tool"),
        ("arguments", "c.arguments", "the arguments as JSON: `json_extract(arguments, '$.order_id')`"),
        ("status", "c.status", "`ok` or `error`"),
        ("duration_ms", "c.duration_ms", "how long it took"),
    ),
    f"main.runs r JOIN main.tool_calls c ON c.transcript = r.transcript WHERE {_COUNTED}",
)
LABELS = SqlView(
    "labels",
    "One row for each label that a person gave a run or one of its criteria.",
    _columns(
        ("run", "r.uid", "the id of the run"),
        ("criterion", "l.criterion_name", "the name of the criterion; NULL: the run as a whole"),
        ("passed", "l.passed", "1 or 0, as the person said"),
        ("rating", "l.rating", "from 1 (bad) to 5 (good)"),
        ("comment", "nullif(l.comment, '')", "the person's comment"),
        ("who", "nullif(l.who, '')", "the person"),
        ("at", _time("l.at_ms"), "when, UTC"),
    ),
    "main.labels l JOIN main.runs r ON r.id = l.run WHERE l.key = ''",
)
FEEDBACK = SqlView(
    "feedback",
    "One row for each score by key that a run was given.",
    _columns(
        ("run", "r.uid", "the id of the run"),
        ("key", "l.key", "what was scored, such as `user_satisfaction`"),
        ("score", "l.score", "from 0 (bad) to 1 (good)"),
        ("comment", "nullif(l.comment, '')", "a comment"),
        ("who", "nullif(l.who, '')", "the person or the program"),
        ("at", _time("l.at_ms"), "when, UTC"),
    ),
    "main.labels l JOIN main.runs r ON r.id = l.run WHERE l.key != ''",
)
VIEWS = (EXECUTIONS, RUNS, CRITERIA, TOOL_CALLS, LABELS, FEEDBACK, ALL_RUNS)
