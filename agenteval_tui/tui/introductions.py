"""What each screen is for and what to do there first, and what its parts are for: the beginning of its help.

`{suites.run}` stands for the key that a person has for this action.
"""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.tui.actions import with_keys

SCREENS: dict[str, str] = {
    "suites": "The suites that are open, with their tests, criteria and last outcomes. Press {suites.run} to run what"
    " is selected, then {suites.inspect} on what failed to see why.",
    "edit": "A test as a form, its criteria, and live what they say about a recorded run. Choose a test at the left,"
    " change a field, and save with {edit.save}: only the lines that you changed are written.",
    "run": "An execution while it runs: a cell for each run, and the transcript of the chosen one. Press"
    " {run.next_failure} to go to the first failure, and {run.inspect} to see why it failed.",
    "inspect": "One run: its transcript, the evidence of a criterion, and the criterion's config side by side. Read the"
    " evidence first; then {inspect.relax} lists the smallest edits with which the run passes, and"
    " {inspect.suggest} criteria that agree with the runs you label.",
    "history": "All executions and runs that are stored. Press {history.open} to see the runs of an execution, and"
    " {history.search} to search prompts, answers and tool calls.",
    "compare": "What got worse and what got better between two executions, worst first. Press {compare.open} on a test"
    " to see both transcripts side by side.",
    "trends": "How pass rates, latency, tokens and cost developed. Choose a test in the list, move over the plot with"
    " {trends.previous} and {trends.next}, and open what you see with {trends.open}.",
    "agents": "The agents that are configured, and a conversation with one of them. Choose an agent, press"
    " {agents.chat} and ask it something; {agents.test} makes a test of the conversation.",
    "causes": "All failures, grouped by what caused them, the most frequent first. Open one with {causes.open}, then"
    " decide once for all of its runs: {causes.fix} fixes the criterion, {causes.accept} accepts the new behaviour.",
    "review": "Runs that need the verdict of a person, one after the other. Read the question and the answer, then"
    " press {review.passed} or {review.failed}.",
    "difference": "Two runs of a test side by side, step by step. Press {difference.next} to go to the first"
    " difference.",
    "branches": "All repetitions of a test as one tree of steps. Press {branches.fork} to go to the step where passing"
    " and failing runs part.",
}
"""By scope: what the screen is for, and what to do there first."""

PARTS: dict[str, dict[str, str]] = {
    "suites": {
        "tree": "The tree has suites, their tests and their criteria; the figures are those of the newest runs.",
        "detail": "The details of what is selected in the tree: its prompt, its criteria, why it fails.",
        "filter": "The filter keeps the tests that match words, or tag:x, agent:x, outcome:x.",
    },
    "edit": {
        "tests": "The tests of all suites; the form beside the list has the selected one.",
        "criteria": "The criteria of the test, with what each says about the recorded run.",
        "config": "The config of the criterion; what it changes for all stored runs is below it.",
        "live": "The recorded run that the criterion is tried on.",
        "filter": "The filter keeps the tests whose id or name has these words.",
    },
    "run": {
        "cells": "A row for each test, a cell for each of its runs, in the order in which they started.",
        "stream": "The transcript of the chosen run, while it is written.",
    },
    "inspect": {
        "transcript": "The messages and tool calls of the run; what the criterion looked at is marked.",
        "looked": "What the criterion expected and what it got, condition by condition.",
        "config": "The criterion's config. Each edit grades all stored runs again at once; nothing is saved before you"
        " save.",
        "find": "Words to search for in the transcript.",
    },
    "history": {
        "list": "The newest executions are at the top; mark rows to compare, export or delete them.",
        "search": "Words in prompts, answers and tool calls, or outcome:x, agent:x, test:x.",
    },
    "compare": {
        "changes": "Tests and criteria whose outcome changed, the worst first.",
        "details": "The figures of the selected change, and what it is attributed to.",
        "search": "The filter keeps the rows whose test or criterion has these words.",
    },
    "trends": {
        "list": "The tests (or suites, tags, agents); the plot above shows the selected one.",
        "search": "The filter keeps the rows that match these words.",
    },
    "agents": {
        "agents": "The configured agents, and whether they can be reached.",
        "detail": "How the selected agent is configured, and where.",
        "chat": "The conversation so far; nothing of it is stored.",
        "prompt": "What you want to ask the agent; enter sends it.",
        "filter": "The filter keeps the agents that have these words.",
    },
    "causes": {
        "causes": "A row for each cause: how many failures it has, and what was decided about it.",
        "details": "What the selected cause is, an example, and the tests in which it occurs.",
        "search": "The filter keeps the causes that have these words.",
    },
    "review": {
        "rating": "Your verdict on this run: 1 to 5, or passed or failed.",
        "transcript": "What was asked and what the agent did.",
        "looked": "What the criteria say about it.",
        "comment": "A comment that is stored with your verdict.",
    },
    "difference": {"difference": "The steps of both runs, side by side where there is room."},
    "branches": {
        "tree": "A step a row, with how many runs took it, and how many of these passed.",
        "details": "The step that is selected, with the runs that took it.",
    },
}
"""By scope and the id of the widget that has the focus: what it is for."""


def introduction(scope: str, keymap: Mapping[str, str]) -> str:
    """Two sentences about a screen, "" for none."""
    return with_keys(SCREENS.get(scope, ""), keymap)


def part_purpose(scope: str, widget: str | None) -> str:
    """A sentence about the widget with this id, "" for none."""
    return PARTS.get(scope, {}).get(widget or "", "")
