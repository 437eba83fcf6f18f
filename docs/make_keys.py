"""Writes docs/keys.md from the list of actions.

python docs/make_keys.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval_tui.tui.action import EVERYWHERE, Action
from agenteval_tui.tui.actions import ACTIONS, BY_ID, key_word

HEAD = """# Keys

Made by `docs/make_keys.py` from `agenteval_tui/tui/actions.py`; do not edit.

In lists and texts, you can also use `j k`, the arrows, `pgup pgdn`, `^d ^u` (half a page), and `g G`. To change a key,
write a file `keys.yaml` into the configuration folder (`agenteval doctor` prints where that is), for example
`suites.run: ctrl+r`.
"""


WIDGETS = ("list", "text", "transcript", "folds", "evidence", "form", "choice", "rating", "look", "message")
"""The scopes of parts that are no sheets."""

MEANINGS: dict[str, tuple[str, ...]] = {
    "a": ("add, make new", "new", "new chat", "to dataset"),
    "A": ("apply the smallest edit", "smallest edit"),
    "b": ("make it the baseline", "baseline"),
    "B": ("clear the baseline", "clear baseline"),
    "c": ("compare", "compare", "agreement"),
    "C": ("causes", "causes"),
    "d": ("difference", "diff", "differ"),
    "D": ("duplicate", "duplicate"),
    "e": ("edit what is selected", "edit", "fix", "comment"),
    "E": ("edit the test as a form", "edit test"),
    "f": ("fold", "fold"),
    "F": ("only what needs attention, or all; in Inspect, fork", "all", "only open", "failures", "failed only", "fork"),
    "h": ("left", "close", "previous run", "earlier", "left side…"),
    "H": ("here, or all projects", "here/all"),
    "i": ("import", "import…"),
    "I": ("ignore", "ignore"),
    "J": ("move down", "move down"),
    "K": ("move up", "move up"),
    "l": ("right", "open", "next run", "later", "right side…"),
    "L": ("label", "label"),
    "m": ("make of what is here", "make criterion", "make a test"),
    "M": ("mark to here", "mark to here"),
    "n": ("next that matters", "next failure", "next", "next run", "divergence", "failed"),
    "N": ("notices", "notices"),
    "o": ("open outside", "$EDITOR", "open file"),
    "O": ("the original, as JSON", "JSON"),
    "p": ("previous that matters", "previous", "previous run"),
    "P": ("plan a run", "plan a run…"),
    "q": ("quit", "quit"),
    "Q": ("quarantine", "quarantine"),
    "r": ("run", "run", "run again", "check"),
    "R": ("run all that is shown, or is left", "run shown", "resume", "run for real"),
    "s": ("sort, split", "worst first", "split"),
    "S": ("stop", "stop"),
    "t": ("tool calls", "tool calls", "arguments", "tools"),
    "T": ("follow what runs (tail)", "follow"),
    "u": ("undo", "undo", "undo row"),
    "U": ("unmark", "unmark"),
    "v": ("where runs diverge", "divergence"),
    "V": ("versions", "versions"),
    "w": ("which runs", "which runs", "sample", "window"),
    "W": ("watch the code", "watch code"),
    "X": ("export", "export", "export…"),
    "x": ("delete", "delete"),
    "y": ("copy", "copy", "passed"),
    "Y": ("copy the text", "copy text"),
    "Z": ("forks or repetitions", "forks"),
    "z": ("zoom", "zoom"),
    ".": ("next evidence", "evidence"),
    ",": ("previous evidence", "previous evidence"),
    ">": ("next criterion", "criterion"),
    "<": ("previous criterion", "previous criterion"),
    "]": ("the next one", "older run", "next run", "skip", "measure"),
    "[": ("the one before", "newer run", "previous run", "previous measure"),
    "!": ("errors", "errors", "error"),
    '"': ("replies", "replies"),
    "#": ("tags", "tags"),
    "*": ("the decisive step", "decisive step"),
    "+": ("more", "more"),
    "=": ("more", "more"),
    "-": ("fewer", "fewer"),
    "$": ("what is paid for", "ask the model"),
    "/": ("find", "filter", "search"),
    ":": ("commands", "commands"),
    ";": ("jump", "jump"),
    "?": ("help", "help"),
}
"""By key: what it means on all screens, then the labels of the actions that have it. One key has two meanings: Review
asks a question, and there `y` and `n` answer it, as they do in every sheet that asks one."""


def by_letter() -> list[str]:
    """A row a key: what it means, and what that is on each screen."""
    users: dict[str, dict[str, list[str]]] = {}
    for action in ACTIONS:
        for key in dict.fromkeys(action.keys.split(",") if action.keys else ()):
            users.setdefault(key_word(key), {}).setdefault(action.label, []).append(action.scope)
    lines = [
        "## By letter\n",
        "Each key has the same meaning on all screens.\n",
        "| key | means | on |",
        "|---|---|---|",
    ]
    for key in sorted(users, key=lambda key: (len(key) > 1, key.casefold(), key)):
        labels = users[key]
        said = MEANINGS[key][0] if key in MEANINGS else ", ".join(labels)
        on = [
            f"{', '.join(dict.fromkeys(scopes))}{f' ({label})' if label != said else ''}"
            for label, scopes in labels.items()
        ]
        lines.append(f"| `{key}` | {said} | {'; '.join(on)} |")
    return [*lines, "", *EXCEPTION, ""]


EXCEPTION = [
    "On Review, `y` and `n` answer the question whether a run passed, as in every sheet that asks a question. There is",
    "nothing to copy there, and the next run comes by itself.",
]


def page() -> str:
    """The whole page."""
    scopes = list(dict.fromkeys(action.scope for action in ACTIONS if action.scope != EVERYWHERE))
    lines = [HEAD, *by_letter()]
    for scope in [*scopes, EVERYWHERE]:
        lines += section(scope.capitalize(), [action for action in ACTIONS if action.scope == scope])
    parts = [action for action in BY_ID.values() if action.part]
    lines += section("Lists, texts and fields", [action for action in parts if action.scope in WIDGETS])
    lines += section("Sheets", [action for action in parts if action.scope not in WIDGETS])
    return "\n".join(lines)


def section(title: str, actions: Sequence[Action]) -> list[str]:
    """A table of actions with their keys."""
    lines = [f"## {title}\n", "| keys | action | what it does |", "|---|---|---|"]
    for action in actions:
        words = dict.fromkeys(map(key_word, action.keys.split(",") if action.keys else ()))
        keys = " ".join(f"`{word}`" for word in words) or "palette"
        lines.append(f"| {keys} | `{action.id}` | {action.description} |")
    return [*lines, ""]


if __name__ == "__main__":
    (Path(__file__).parent / "keys.md").write_text(page(), encoding="utf-8")
