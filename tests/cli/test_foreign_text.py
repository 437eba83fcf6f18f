"""Whatever stands in suites and answers: no verb gives a terminal anything that it would act on."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import yaml
from attacks import ATTACKS

from agenteval_tui.cli.output import Output

ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u061c\U000e0000-\U000e007f]"
)


def test_signs_have_look_alikes_where_there_is_only_ascii() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii", errors="backslashreplace")
    out = Output(stream, {})
    out.line(("✓ ", "good"), "3 × a → b…, ≥ 2")
    out.text((("✗ ü", "bad"),))
    stream.flush()
    assert written.getvalue() == b"+ 3 x a -> b..., >= 2\nx \\xfc\n"


def test_no_verb_obeys_what_it_is_told(cli: Any, tmp_path: Path) -> None:
    texts = {name: text for name, text in ATTACKS.items() if name != "surrogate"}  # which no YAML can hold
    tests = [
        {
            "id": f"t{number}",
            "name": text,
            "prompt": f"Where is my order {text}?".replace("{", ""),
            "criteria": [
                {
                    "name": text,
                    "prototype_class": "TextResponse",
                    "config_uxon": {"metrics": [{"type": "TextMatch", "contains": text, "name": text}]},
                }
            ],
        }
        for number, text in enumerate(texts.values())
    ]
    everything = "".join(texts.values())
    suite = tmp_path / "a.suite.yaml"
    document = {
        "name": everything,
        "agent": "shop",
        "agents": {"shop": {"kind": "demo", "version": "v1", "pace": 0}},
        "tests": tests,
    }
    suite.write_text(yaml.safe_dump(document, allow_unicode=False), "utf-8")
    verbs: list[list[object]] = [
        ["validate", suite],
        ["run", suite, "--plan"],
        ["run", suite],
        ["show"],
        ["stats"],
        ["stats", "--costs"],
        ["history"],
        ["history", "--runs"],
        ["resume"],
        ["run", suite, "--test", everything],
        ["run", suite, "--agent", everything],
        ["attach", everything],
        ["trust", tmp_path / "\x1b[31337m\u202e"],
    ]
    for arguments in verbs:
        done = cli(*arguments)
        assert "Traceback" not in done.err
        assert not ACTS.search(done.out + done.err), arguments[0]
    assert "31337" in cli("show").out  # they were there
