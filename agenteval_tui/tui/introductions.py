"""What each screen is for and what to do there first, and what its parts are for: the beginning of its help.

`{suites.run}` stands for the key that a person has for this action.
"""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.tui.actions import ACTIONS, with_keys

SCREENS: dict[str, str] = {
    "suites": "Your suites, with their tests, criteria and latest outcomes. Press {suites.run} to run what is "
    "selected, then {suites.inspect} on a failure to see why.",
    "edit": "Edit a test as a form and see at once what its criteria say about a recorded run. Choose a test at "
    "the left, change a field, and save with {edit.save}: only the lines that you changed are written.",
    "run": "Watch an execution: one cell per run, and the transcript of the chosen run. Press {run.next_failure} "
    "to go to the first failure, and {run.inspect} to see why it failed.",
    "watch": "Edit an agent in your own editor: after each save its recorded runs are run again from their recordings, "
    "and the verdicts that change are listed. Press {watch.difference} to see both runs of a row side by side.",
    "inspect": "One run: its transcript, the evidence of a criterion and the criterion's config, side by side. "
    "Read the evidence first. Press {inspect.relax} for the smallest edits that make the run pass.",
    "history": "All stored executions and runs. Press {history.open} to see the runs of an execution, and "
    "{history.search} to search prompts, answers and tool calls.",
    "compare": "What got worse and what got better between two executions, with the worst first. Press "
    "{compare.open} on a test to see both transcripts side by side.",
    "trends": "How pass rates, latency, tokens and cost change over time. Choose a test in the list, move along "
    "the plot with {trends.previous} and {trends.next}, and open what you see with {trends.open}.",
    "agents": "Your configured agents, and a chat with the chosen one. Press {agents.chat} and ask it something, then "
    "{agents.test} to turn the conversation into a test.",
    "causes": "All failures, grouped by cause, most frequent first. Open a cause with {causes.open}, then decide "
    "once for all its runs: press {causes.fix} to fix the criterion, or {causes.accept} to accept the new behaviour.",
    "review": "Runs that need a person's verdict, one at a time. Read the question and the answer, then press "
    "{review.passed} or {review.failed}.",
    "difference": "Two runs of a test side by side, step by step. Press {difference.next} to go to the first "
    "difference.",
    "branches": "All repetitions of a test as one tree of steps. Press {branches.fork} to go to the step where "
    "passing and failing runs diverge.",
    "error": "Why the agent did not finish, and the code in which it broke: your own frames first, the last call on "
    "top. Press {error.next} to go to the caller, and {error.editor} to open its line.",
    "context": "What the model was asked for one answer, and what changed since the request before. Press "
    "{context.next} to go to the next request, and {context.answer} to go to its answer in the transcript.",
}
"""By scope: what the screen is for, and what to do there first."""

PARTS: dict[str, dict[str, str]] = {
    "suites": {
        "tree": "The tree has suites, their tests and their criteria; the figures come from the newest runs.",
        "detail": "The details of what is selected in the tree: its prompt, its criteria, why it fails.",
        "filter": "The filter keeps the tests that match words, or tag:x, agent:x, outcome:x.",
    },
    "edit": {
        "tests": "The tests of all suites; the form beside the list shows the selected test.",
        "criteria": "The criteria of the test, with what each says about the recorded run.",
        "config": "The config of the criterion; below it you see what an edit changes for all stored runs.",
        "live": "The recorded run on which the criterion is tried.",
        "filter": "The filter keeps the tests with these words in their id or name.",
    },
    "watch": {
        "runs": "The runs that differ now from the recorded ones: those that pass come first.",
        "details": "The selected run: why it is what it is now, and the first message that differs.",
    },
    "run": {
        "cells": "One row per test, one cell per run, in the order they started.",
        "stream": "The transcript of the chosen run, live.",
    },
    "inspect": {
        "transcript": "The messages and tool calls of the run; the parts that the criterion checked are marked.",
        "looked": "What the criterion expected and what it got, condition by condition.",
        "config": "The criterion's config. Each edit re-grades all stored runs at once; nothing is written until "
        "you save.",
        "find": "Words to search for in the transcript.",
    },
    "history": {
        "list": "The newest executions are at the top; mark rows to compare, export or delete them.",
        "search": "Words in prompts, answers and tool calls, or outcome:x, agent:x, test:x.",
    },
    "compare": {
        "changes": "Tests and criteria with a changed outcome, worst first.",
        "details": "The figures of the selected change, and its likely cause.",
        "search": "The filter keeps the rows with these words in the test or criterion.",
    },
    "trends": {
        "list": "The tests (or suites, tags, agents); the plot above shows the selected one.",
        "search": "The filter keeps the rows that match these words.",
    },
    "agents": {
        "agents": "Your configured agents, and whether they respond.",
        "detail": "The selected agent's configuration, and the file it comes from.",
        "chat": "The conversation so far; it is not stored.",
        "prompt": "Your message to the agent. Press enter to send it.",
        "filter": "The filter keeps the agents that match these words.",
    },
    "causes": {
        "causes": "One row per cause: how many failures it has, and what you decided about it.",
        "details": "The selected cause, an example, and the tests it occurs in.",
        "search": "The filter keeps the causes that match these words.",
    },
    "review": {
        "rating": "Your verdict on this run: 1 to 5, or passed or failed.",
        "transcript": "The question, and what the agent did.",
        "looked": "The verdict of each criterion.",
        "comment": "A comment that is stored with your verdict.",
    },
    "difference": {"difference": "The steps of both runs, side by side where there is room."},
    "branches": {
        "tree": "One row per step: how many runs took it, and how many of those passed.",
        "details": "The selected step, and the runs that took it.",
    },
    "error": {"error": "The frames of the traceback, with their lines and variables."},
    "context": {"context": "What changed in the request; below it, its system prompt, messages and tools."},
}
"""By scope and the id of the widget that has the focus: what it is for."""


def introduction(scope: str, keymap: Mapping[str, str]) -> str:
    """Some sentences about a screen, "" for none."""
    of_actions = (action.introduction for action in ACTIONS if action.scope == scope)
    return with_keys(" ".join(filter(None, (SCREENS.get(scope, ""), *of_actions))), keymap)


def part_purpose(scope: str, widget: str | None) -> str:
    """A sentence about the widget with this id, "" for none."""
    return PARTS.get(scope, {}).get(widget or "", "")
