"""An example or two for every verb, for its help and for the page of the command line.

Each is a whole command line that works in a folder with suites and a history; tests parse every one.
"""

from __future__ import annotations

Example = tuple[str, str]
"""What to type, and what that does."""

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "init": (
        ("agenteval init", "find the agents of this folder, and write a first suite for one"),
        ("agenteval init --list", "what it finds, and why"),
        ("agenteval init services/bot --agent 1", "the first agent in a folder, without a question"),
        ("agenteval init evals --agent-kind openai", "in evals/, for an OpenAI-compatible server"),
    ),
    "run": (
        ("agenteval run", "the suites of this folder"),
        (
            "agenteval run evals --tag smoke --repeat 5 --fail-under-test 0.8",
            "each smoke test must pass 4 times out of 5",
        ),
        ("agenteval run evals --failed", "only the tests that failed last time"),
        ("agenteval run evals --plan", "what would run, and what it may cost"),
        ('agenteval run evals --notify "$SLACK_WEBHOOK"', "post the result to a chat"),
    ),
    "record": (
        ("agenteval record -- python agent.py", "its model calls become a run in the history"),
        ("agenteval record --suite shop.suite.yaml --test refunds -- node agent.js", "graded by that test"),
        ("agenteval record --cassette shop.jsonl --replay -- python agent.py", "from a recording, without a network"),
        ("agenteval record --mcp-config mcp.json -- my-agent --mcp mcp.json", "with the MCP servers that it starts"),
    ),
    "replay": (
        (
            "agenteval replay refunds -- python agent.py",
            "the newest run of a test, with your changed agent",
        ),
        ("agenteval replay 2f9c0a1b --max-cost 0.20 -- node agent.js", "a run by its id, within a limit"),
    ),
    "debug": (
        ("agenteval debug refunds", "breakpoint() and exceptions of the agent open pdb here"),
        ("agenteval debug 2f9c0a1b", "with the recorded answers of this run's models"),
        ("agenteval debug 'refunds#3' --listen 5678", "wait for an editor, with the third repetition"),
    ),
    "resume": (
        ("agenteval resume", "the rest of the newest execution"),
        ("agenteval resume last --errors --max-cost 2", "also the runs in error, for at most $2 in total"),
    ),
    "validate": (
        ("agenteval validate evals", "all problems of the suites in evals/"),
        ("agenteval validate --json -", "a suite on standard input, for a program"),
    ),
    "grade": (
        ("agenteval grade evals --execution last", "stored runs with the criteria as they are now"),
        ("agenteval grade --criteria c.yaml --transcript t.json --json", "one transcript, as JSON"),
    ),
    "shrink": (
        ("agenteval shrink refunds", "the smallest input with which `refunds` still fails"),
        ("agenteval shrink refunds --save-test refunds-small --max-cost 1", "for at most $1, saved as a test"),
        ("agenteval shrink refunds --export curl", "as a request that runs without agenteval"),
    ),
    "fork": (
        ("agenteval fork refunds --at 5 --set tool_result=@order.json", "if the tool had returned this file"),
        (
            "agenteval fork refunds --at 4 --set 'arguments={\"id\": 7}' -n 10",
            "if it had called the tool with these arguments",
        ),
        ("agenteval fork refunds --system @prompt.md --max-cost 0.50", "with another system prompt, from the start"),
        ("agenteval fork refunds --without-tool cancel_order", "if it had not had this tool"),
        ("agenteval fork refunds", "the stored forks of the run"),
    ),
    "audit": (("agenteval audit evals", "would the criteria notice wrong answers?"),),
    "listen": (
        ("agenteval listen", "store the traces that programs send to port 4318"),
        ("agenteval listen --save-test heard.suite.yaml", "and make a test from each question"),
        ("agenteval listen --criteria c.yaml --runs 20 --json", "grade 20 runs, one JSON document per run"),
    ),
    "show": (
        ("agenteval show", "the newest execution"),
        ("agenteval show refunds", "the newest run of the test `refunds`"),
        ("agenteval show last --json", "as one JSON document"),
    ),
    "open": (
        ("agenteval open refunds", "the app at the newest run of the test `refunds`"),
        ("agenteval open refunds.html", "the app at the runs of a page that `agenteval share` wrote"),
    ),
    "why": (
        ("agenteval why", "the newest failure"),
        ("agenteval why refunds/1 --markdown", "the first criterion of a test, for a pull request"),
    ),
    "blame": (
        ("agenteval blame", "the step where the newest failure went wrong"),
        ("agenteval blame refunds --json", "of the newest run of a test, with the evidence as codes and fields"),
    ),
    "causes": (
        ("agenteval causes", "what the failures of the newest execution have in common"),
        ("agenteval causes last --md", "as Markdown"),
    ),
    "history": (
        ("agenteval history", "the executions of this project, newest first"),
        ("agenteval history --runs --test refunds 'order number'", "runs of a test that mention an order number"),
    ),
    "stats": (
        ("agenteval stats last", "pass rates with intervals, pass@k and pass^k"),
        ("agenteval stats last --costs", "what agents, judges and simulated users used"),
    ),
    "trends": (
        ("agenteval trends --window 7d --group test", "the last week, test by test"),
        ("agenteval trends --window 24h --alert-below 0.7", "exit code 1 below 70 %"),
    ),
    "flaky": (("agenteval flaky --window 7d", "the flaky tests of the last week"),),
    "compare": (
        ("agenteval compare baseline last", "the newest execution against the baseline of its tests"),
        ("agenteval compare --agent shop/v1 --agent shop/v2", "two agents over the same tests"),
        ("agenteval compare meta.model:mini meta.model:max", "the newest execution with each value of `--meta model=`"),
    ),
    "judge-report": (("agenteval judge-report", "how often judges agree with people"),),
    "report": (("agenteval report last --html report.html --junit junit.xml", "two reports of the newest execution"),),
    "share": (
        ("agenteval share", "the newest execution as one HTML file in this folder"),
        ("agenteval share refunds refunds.html --force", "the newest run of the test `refunds`, for a ticket"),
    ),
    "triage": (
        ("agenteval triage", "the decisions so far"),
        ("agenteval triage 2f9c0a1b quarantine --until 14d --note 'model update'", "decide about a cause, by its id"),
    ),
    "quarantine": (("agenteval quarantine", "what is in quarantine, and until when"),),
    "quarantine add": (
        ("agenteval quarantine add refunds --until 14d --reason flaky", "let a test run for two weeks without gating"),
    ),
    "quarantine end": (("agenteval quarantine end refunds", "end its quarantine"),),
    "quarantine list": (("agenteval quarantine list --all", "including those that have ended"),),
    "make-test": (
        ("agenteval make-test 2f9c0a1b", "a run by its id: into its suite, or recorded.suite.yaml"),
        ("agenteval make-test 2f9c0a1b 77ab01cd --suite shop.suite.yaml", "from what two runs of one question share"),
    ),
    "label": (
        ("agenteval label refunds failed --comment 'wrong sum'", "your verdict on the newest run of a test"),
        ("agenteval label refunds/1 4", "on its first criterion, 4 of 5"),
        ("agenteval label refunds --key user_satisfaction 0.8", "feedback, a score from 0 to 1"),
    ),
    "name": (
        ("agenteval name last v2.1 --note 'new system prompt'", "call the newest execution v2.1"),
        ("agenteval name v2.1 --meta model=mini", "metadata, to search and group by"),
    ),
    "review": (("agenteval review", "the runs that need a person"),),
    "suggest": (
        ("agenteval suggest refunds", "criteria that agree with the labels of a test's runs"),
        ("agenteval suggest 'refunds/Is polite' --from-judge", "what could be checked without the judge"),
    ),
    "baseline": (("agenteval baseline", "the baselines of this project"),),
    "baseline list": (("agenteval baseline list --json", "as one JSON document"),),
    "baseline set": (("agenteval baseline set last", "the newest execution, for all of its tests"),),
    "baseline clear": (("agenteval baseline clear refunds --yes", "of one test, without asking"),),
    "criterion": (
        ("agenteval criterion 'refunds/Names the order'", "its versions"),
        ("agenteval criterion refunds/1 --diff 1 2", "what changed from version 1 to version 2"),
    ),
    "ps": (("agenteval ps", "what is running on this machine"),),
    "attach": (
        ("agenteval attach", "the execution that is running"),
        ("agenteval attach last --fail-under 0.9", "with a gate on its pass rate"),
    ),
    "pause": (("agenteval pause", "no new runs until `agenteval continue`"),),
    "continue": (("agenteval continue", "start runs again"),),
    "cancel": (("agenteval cancel last", "finished runs are kept"),),
    "import": (
        ("agenteval import results.json", "the format is detected"),
        ("agenteval import promptfooconfig.yaml --to evals/shop.suite.yaml", "tests of another tool, as a suite"),
    ),
    "export": (
        ("agenteval export last runs.jsonl --format openai", "runs, as chat messages"),
        ("agenteval export evals/shop.suite.yaml shop.json --format power-ui", "the tests of a suite"),
    ),
    "db": (("agenteval db", "where the history is, its size and its health"),),
    "db check": (("agenteval db check", "read and check all of it"),),
    "db query": (
        ('agenteval db query "SELECT test, avg(passed) FROM runs GROUP BY test"', "your own question, in SQL"),
        ("agenteval db query --views", "the views and their columns"),
    ),
    "db vacuum": (("agenteval db vacuum", "free unused space"),),
    "db export": (("agenteval db export backup.db", "a copy, even while runs are being written"),),
    "db import": (("agenteval db import other.db", "runs and decisions from another machine"),),
    "db move": (("agenteval db move /old/evals /new/evals", "suites that were moved keep their history"),),
    "db prune": (
        ("agenteval db prune --older-than 90d --dry-run", "what would be deleted"),
        ("agenteval db prune --older-than 90d --yes", "delete it"),
    ),
    "db salvage": (("agenteval db salvage damaged.db --to saved.db", "save what can be read of a damaged file"),),
    "agents": (
        ("agenteval agents", "the configured agents"),
        ("agenteval agents check evals", "do they respond?"),
    ),
    "demo": (("agenteval demo", "the sample suites, with a separate history"),),
    "demo-server": (("agenteval demo-server --port 8137", "an OpenAI-compatible server to try"),),
    "serve": (("agenteval serve --port 8080", "the app in a browser on this machine"),),
    "lsp": (("agenteval lsp", "the command that an editor starts; see agenteval docs editors"),),
    "mcp": (
        ("agenteval mcp", "for a coding agent that only reads"),
        ("agenteval mcp --allow-edit --allow-run", "for one that may also edit suites and run them"),
    ),
    "docs": (
        ("agenteval docs", "the pages"),
        ("agenteval docs keys", "one page"),
    ),
    "schema": (
        ("agenteval schema suite", "the JSON Schema of suites, for an editor"),
        ("agenteval schema --list", "all schemas"),
    ),
    "trust": (
        ("agenteval trust", "trust the repository of the current folder"),
        ("agenteval trust --list", "what is trusted, and which secrets may go where"),
    ),
    "prices": (("agenteval prices", "all models with a known price"),),
    "prices show": (
        ("agenteval prices show gpt-4o openai/gpt-4o-mini", "what these cost, and according to which list"),
    ),
    "prices update": (
        ("agenteval prices update model_prices_and_context_window.json", "the prices of LiteLLM's list, downloaded"),
        ("agenteval prices update --dry-run https://example.com/prices.yaml", "what another list would change"),
    ),
    "doctor": (("agenteval doctor", "terminal, history, configuration and agents"),),
    "help": (
        ("agenteval help run", "the same as `agenteval run --help`"),
        ("agenteval help db prune", "the help of a subcommand"),
    ),
    "completion": (
        ('eval "$(agenteval completion bash)"', "in ~/.bashrc"),
        ('eval "$(agenteval completion zsh)"', "in ~/.zshrc, after compinit"),
        ("agenteval completion fish > ~/.config/fish/completions/agenteval.fish", "once"),
    ),
}


def examples_text(name: str) -> str:
    """The examples of a verb, as the last part of its help; "" if it has none. `\\b` keeps click from wrapping them."""
    listed = EXAMPLES.get(name, ())
    if not listed:
        return ""
    lines = "".join(f"\n  {command}\n      {says}" for command, says in listed)
    return f"\b\n{'Example' if len(listed) == 1 else 'Examples'}:{lines}"
