"""A person's own keys: keys.yaml, what is wrong in it, and which actions it lets collide."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.keys import Keys

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.core.private_files import UnreadableError, read_small
from agenteval_tui.tui.action import EVERYWHERE
from agenteval_tui.tui.actions import BY_ID, answering, key_word

NAME = "keys.yaml"

MOST_KEYS = 8  # for one action
MOST_NAMED = 3  # actions in one sentence

# What a person writes for a key that Textual has another name for.
_NAMES = {
    "?": "question_mark",
    "/": "slash",
    ".": "full_stop",
    ",": "comma",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "+": "plus",
    "=": "equals_sign",
    "-": "minus",
    ";": "semicolon",
    "!": "exclamation_mark",
    "esc": "escape",
    "pgdn": "pagedown",
    "pgup": "pageup",
    "return": "enter",
    ":": "colon",
    "*": "asterisk",
    "#": "number_sign",
    "$": "dollar_sign",
    "%": "percent_sign",
    "&": "ampersand",
    "@": "at",
    "'": "apostrophe",
    '"': "quotation_mark",
    "(": "left_parenthesis",
    ")": "right_parenthesis",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "\\": "backslash",
    "^": "circumflex_accent",
    "_": "underscore",
    "`": "grave_accent",
    "{": "left_curly_bracket",
    "}": "right_curly_bracket",
    "|": "vertical_line",
    "~": "tilde",
}

# Keys that reach no program in a terminal as themselves: they arrive as a different key (docs/keys.md).
_NEVER_SENT = {
    "ctrl+m": "enter",
    "ctrl+i": "tab",
    "ctrl+h": "backspace",
    "ctrl+j": "enter",
    "ctrl+left_square_bracket": "escape",
    "alt+b": "ctrl+left",
    "alt+f": "ctrl+right",
}
_MODIFIERS = ("ctrl", "alt", "shift", "super", "hyper", "meta")


def read_keymap(path: Path) -> tuple[dict[str, str], list[str]]:
    """(a person's keys by action id, what is wrong with the file, a sentence each). What is right in it counts.

    The file is a YAML mapping from action id to keys, several with commas between them.
    """
    try:
        text = read_small(path, "it")
    except AgentevalError as error:
        why = f"{error.what} ({error.fix})"
        return {}, [why if isinstance(error, UnreadableError) else f"can't be read: {why}"]
    if text is None:
        return {}, []
    import yaml

    try:
        data = yaml.load(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        return {}, [f"{place}not valid YAML: {getattr(error, 'problem', '') or 'nested too deep'}"]
    if data is None:
        return {}, []
    if not isinstance(data, Mapping):
        return {}, ["key bindings map actions to keys, such as `suites.run: ctrl+r`"]
    keymap: dict[str, str] = {}
    problems: list[str] = []
    unknown: list[str] = []
    names = list(BY_ID)
    for action, written in data.items():
        if action not in names:
            unknown.append(str(action))
            continue
        keys, wrong = _keys(written)
        if wrong:
            problems.append(f"`{action}`: {wrong}")
        else:
            keymap[str(action)] = keys
    if unknown:
        problems.insert(0, _said_of_unknown(unknown, names))
    return keymap, [*problems, *collisions(keymap)]


def _said_of_unknown(unknown: Sequence[str], names: Sequence[str]) -> str:
    """Which actions do not exist, in one sentence, however many they are."""
    if len(unknown) > 1:
        named = abridged([f"`{name}`" for name in unknown], MOST_NAMED)
        return f"there are no actions {named}: the help (?, then i) lists the actions"
    hint = did_you_mean(unknown[0], names, "the help (?, then i) lists the actions", quotes="`")
    return f"there is no action `{unknown[0]}`: {hint}"


def _keys(value: object) -> tuple[str, str]:
    """(keys as Textual names them, what is wrong with them)."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a digit
    listed = value.split(",") if isinstance(value, str) and value != "," else [value]
    if isinstance(value, list):
        listed = value
    keys: list[str] = []
    for part in listed:
        word = str(part).strip() if isinstance(part, str | int) else ""
        if len(word) == 2 and word[0] == "^":
            word = f"ctrl+{word[1].lower()}"  # as the app itself writes it
        *modifiers, last = word.split("+") if word not in ("+", "") else [word]
        name = "+".join([*(m.lower() for m in modifiers), _NAMES.get(last, last if len(last) == 1 else last.lower())])
        if not last or name.startswith("+"):
            return "", "no key given; write keys such as `ctrl+r` or `x, delete`"
        if name in _NEVER_SENT:
            return "", f"terminals send {key_word(name)} as {_NEVER_SENT[name]}: choose another key"
        if wrong := _impossible(name):
            return "", wrong
        keys.append(name)
    if not keys or len(keys) > MOST_KEYS:
        return "", f"an action has 1 to {MOST_KEYS} keys"
    return ",".join(keys), ""


def _impossible(name: str) -> str:
    """Why no terminal sends a key of that name; "" where one may."""
    *modifiers, last = name.split("+")
    strange = [modifier for modifier in modifiers if modifier not in _MODIFIERS]
    named = {Key.value.rsplit("+")[-1] for Key in Keys if Key.value[0] != "<"}.union(_NAMES.values())
    if strange or (len(last) > 1 and last not in named and not _is_character(last)):
        wrong, among = (strange[0], _MODIFIERS) if strange else (last, tuple(named))
        others = [name for name in among if len(name) > 1]
        hint = did_you_mean(wrong, others, "write keys such as `ctrl+r`, `f5`, or `x, delete`", quotes="`")
        return f"there is no key `{one_line(wrong, 40)}`: {hint}"
    if modifiers == ["shift"] and len(last) == 1:
        return f"terminals send shift+{last} as another character: write that, such as `{last.upper()}`"
    return ""


def _is_character(name: str) -> bool:
    """Whether it is the name of a character, as Unicode has it, with `_` for spaces and hyphens."""
    for written in (name.replace("_", " "), name.replace("_", "-")):
        try:
            unicodedata.lookup(written)
        except KeyError:
            continue
        return True
    return False


def collisions(keymap: Mapping[str, str]) -> list[str]:
    """Where the person's keys give one key to two actions of a screen or sheet, or hide one that works everywhere.

    A collision that exists without them does not count.
    """
    problems: list[str] = []
    for scope in dict.fromkeys(action.scope for action in BY_ID.values()):
        users = grouped(
            (key, action.id)
            for action in answering(scope)
            for key in filter(None, keymap.get(action.id, action.keys).split(","))
        )
        for key, ids in users.items():
            if len(ids) < 2 or not any(action_id in keymap for action_id in ids):
                continue
            if all(key in BY_ID[action_id].keys.split(",") for action_id in ids):
                continue
            where = f"on {scope}" if scope != EVERYWHERE else "everywhere"
            message = f"{key_word(key)} is {' and '.join(f'`{action_id}`' for action_id in ids)} {where}"
            if scope != EVERYWHERE and all(BY_ID[action_id].scope == EVERYWHERE for action_id in ids):
                continue  # said once, for everywhere
            problems.append(message)
    return problems
