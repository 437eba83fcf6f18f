"""Writes docs/keys.md from the list of actions.

python docs/make_keys.py
"""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.tui.actions import ACTIONS, EVERYWHERE, key_word

HEAD = """# Keys

Made by `docs/make_keys.py` from `agenteval_tui/tui/actions.py`; do not edit.

Lists and texts also know `j k`, the arrows, `pgup pgdn`, `^d ^u` (half a page), `g G`. To change a key, write a file
`keys.yaml` into the configuration folder (`agenteval doctor` says where it is), for example `suites.run: ctrl+r`.
"""


def by_letter() -> list[str]:
    """A row a key: what it means on each screen."""
    meanings: dict[str, dict[str, list[str]]] = {}
    for action in ACTIONS:
        for key in dict.fromkeys(action.keys.split(",") if action.keys else ()):
            meanings.setdefault(key_word(key), {}).setdefault(action.label, []).append(action.scope)
    lines = ["## By letter\n", "| key | means | on |", "|---|---|---|"]
    for key in sorted(meanings, key=lambda key: (len(key) > 1, key.casefold(), key)):
        for label, scopes in meanings[key].items():
            lines.append(f"| `{key}` | {label} | {', '.join(dict.fromkeys(scopes))} |")
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    scopes = list(dict.fromkeys(action.scope for action in ACTIONS if action.scope != EVERYWHERE))
    lines = [HEAD, *by_letter()]
    for scope in [*scopes, EVERYWHERE]:
        lines += [f"## {scope.capitalize()}\n", "| keys | action | what it does |", "|---|---|---|"]
        for action in ACTIONS:
            if action.scope == scope:
                words = dict.fromkeys(map(key_word, action.keys.split(",") if action.keys else ()))
                keys = " ".join(f"`{word}`" for word in words) or "palette"
                lines.append(f"| {keys} | `{action.id}` | {action.description} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "keys.md").write_text(page(), encoding="utf-8")
