"""Writes docs/keys.md from the list of actions.

python docs/make_keys.py
"""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.tui.actions import ACTIONS, EVERYWHERE, key_word

HEAD = """# Keys

Made by `docs/make_keys.py` from `agenteval_tui/tui/actions.py`; do not edit.

Lists and texts also know `j k`, the arrows, `pgup pgdn`, `g G`. To change a key, write a file `keys.yaml` into the
configuration folder (`agenteval doctor` says where it is), for example `suites.run: ctrl+r`.
"""


def page() -> str:
    """The whole page."""
    scopes = list(dict.fromkeys(action.scope for action in ACTIONS if action.scope != EVERYWHERE))
    lines = [HEAD]
    for scope in [*scopes, EVERYWHERE]:
        lines += [f"## {scope.capitalize()}\n", "| keys | action | what it does |", "|---|---|---|"]
        for action in ACTIONS:
            if action.scope == scope:
                keys = " ".join(f"`{word}`" for word in dict.fromkeys(map(key_word, action.keys.split(","))))
                lines.append(f"| {keys} | `{action.id}` | {action.description} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "keys.md").write_text(page(), encoding="utf-8")
