"""Saving a config changes that config only: of the sample suites, seen by PyYAML and by their bytes."""

from __future__ import annotations

import json
import random
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from tally import Tally

from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import save_config

SUITES = sorted(Path(__file__).resolve().parents[2].glob("sample_suites/*.suite.yaml"))
LINES = [
    "",
    "{",
    "}",
    "  a: 1",
    '"x": "y",',
    "// ä 😀",
    "# no comment",
    "'",
    "- b",
    "\ttab",
    "{{country}}",
    "x: y",
    ": ",
]


def value_node(document: yaml.Node, *path: str | int) -> yaml.Node:
    """The node at a path of keys and indices."""
    for step in path:
        if isinstance(document, yaml.MappingNode):
            document = next(value for key, value in document.value if key.value == step)
        else:
            document = document.value[step]
    return document


def value(dice: random.Random, depth: int = 2) -> Any:
    kind = dice.random()
    if depth and kind < 0.25:
        return [value(dice, depth - 1) for _ in range(dice.randint(0, 3))]
    if depth and kind < 0.5:
        return {dice.choice(["a", "no", "k e", "ü"]): value(dice, depth - 1) for _ in range(dice.randint(0, 3))}
    return dice.choice([None, True, 1, 0.5, "", "a", "no", "1e3", "ä 😀", "x: y", "it's", "# x", " pad "])


def new_text(dice: random.Random, old: str) -> str:
    """Another config: one of JSON, an edit of the old one, or any lines."""
    kind = dice.random()
    if kind < 0.4:
        made = {"metrics": [{"type": "TextMatch", "contains": value(dice)}], "a": value(dice)}
        return json.dumps(made, indent=dice.choice([None, 2]), ensure_ascii=False)
    if kind < 0.7 and old:
        at = dice.randrange(len(old) + 1)
        return old[:at] + dice.choice(LINES) + old[min(len(old), at + dice.randint(0, 5)) :]
    return "\n".join(dice.choice(LINES) for _ in range(dice.randint(0, 6)))


def compare(count: int, seed: int) -> Tally:
    """So many saves; each begins with the sample suite as it is shipped, or as the save before left it."""
    dice, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        while tally.cases < count:
            source = dice.choice(SUITES)
            path = Path(folder, source.name)
            ends = dice.choice(["\n", "\r\n"])
            path.write_bytes(source.read_bytes().replace(b"\n", ends.encode()))
            for _ in range(min(8, count - tally.cases)):
                text = path.read_bytes().decode().replace("\r\n", "\n")
                before = yaml.safe_load(text)
                test = dice.randrange(len(before["tests"]))
                criterion = dice.randrange(len(before["tests"][test]["criteria"]))
                place = ("tests", test, "criteria", criterion, "config_uxon")
                node = value_node(yaml.compose(text), *place)
                loaded = load_suite(path)
                old = loaded.config_source(before["tests"][test]["id"], criterion)
                new = new_text(dice, old.text)
                saved = save_config(loaded, before["tests"][test]["id"], criterion, new)
                raw = path.read_bytes().decode()
                written = raw.replace("\r\n", "\n")
                after = yaml.safe_load(written)
                config = after["tests"][test]["criteria"][criterion]["config_uxon"]
                right = json.loads(new) == config if isinstance(config, dict) else config == new
                left, expected = deepcopy(after), deepcopy(before)
                for one in (left, expected):
                    del one["tests"][test]["criteria"][criterion]["config_uxon"]
                head, tail = text[: node.start_mark.index], text[node.end_mark.index :]
                tally.same(
                    right
                    and left == expected
                    and written.startswith(head.rstrip())
                    and written.endswith(tail.lstrip())
                    and raw.count("\r\n") == (raw.count("\n") if ends == "\r\n" else 0)
                    and saved.text.replace("\r\n", "\n") == written,
                    source.name, place, ends, old.text, new, config,
                )  # fmt: skip
    return tally
