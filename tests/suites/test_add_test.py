"""Adding a test to a suite changes nothing that stood there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core import directories
from agenteval_tui.suites.editing import add_test, free_id
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import FileChanged, SaveFailed

TEST: dict[str, Any] = {
    "id": "new-one",
    "name": "What: a # name",
    "prompt": "Two lines\n  and {{ braces }}\n",
    "criteria": [
        {
            "name": "Calls",
            "prototype_class": "ToolResponse",
            "config_uxon": '{\n  "metrics": [{"type": "ToolCheck", "tools": [{"name": "a"}]}]\n}\n',
        }
    ],
}
ONE = (
    "  - id: one\n    prompt: hi   # said\n    criteria: [{name: c, prototype_class: TextResponse, config_uxon: {}}]\n"
)
FILES = {
    "block": f"# head\nname: 'A'\ntests:\n{ONE}  # the end\n",
    "two with an empty line": f"tests:\n{ONE}\n{ONE.replace('one', 'two')}\n# tail\n",
    "no indentation": "tests:\n- id: one\n  prompt: hi\n  criteria:\n  - name: c\n    prototype_class: T\n"
    "    config_uxon: |\n      {}\nagent: x\n",
    "flow": "tests: [{id: one, prompt: hi, criteria: [{name: c, prototype_class: T, config_uxon: {}}]}]  # end\n",
    "no tests yet": "name: A\n# later",
    "empty tests": "name: A\ntests: []  # none\nagent: x\n",
    "nothing below": "name: A\ntests:\nagent: x\n",
    "CRLF": f"tests:\n{ONE}agent: x\n".replace("\n", "\r\n"),
    "keeps blank lines": ONE.replace("hi   # said", "|+\n      hi\n\n").join(["tests:\n", "\n\n"]),
    "no line end": f"tests:\n{ONE}".rstrip(),
    "byte order mark": f"\ufefftests:\n{ONE}",
}


def is_kept(before: bytes, after: bytes) -> bool:
    """Is `after` `before` with one piece put in? (`[]` may go: it is what the piece replaces.)"""
    before = before.replace(b" []", b"") if b"tests: []" in before else before
    start = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
    rest = before[start:]
    return after[:start] == before[:start] and after.endswith(rest)


@pytest.mark.parametrize("name", FILES)
def test_only_the_added_bytes_are_new(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.suite.yaml"
    path.write_bytes(FILES[name].encode())
    loaded = load_suite(path)
    before = path.read_bytes()
    saved = add_test(loaded, TEST)
    assert is_kept(before, path.read_bytes()), path.read_text()
    assert saved.suite is not None
    assert loaded.suite is not None
    assert [test.id for test in saved.suite.tests] == [*(test.id for test in loaded.suite.tests), "new-one"]
    test = saved.suite.tests[-1]
    assert (test.name, test.prompt) == (TEST["name"], TEST["prompt"])
    assert test.criteria[0].config_uxon == TEST["criteria"][0]["config_uxon"]
    assert (b"\r\n" in path.read_bytes()) == (name == "CRLF")


def test_the_sample_suites_take_one_and_are_right(tmp_path: Path) -> None:
    for source in directories.bundled("sample_suites").rglob("*.suite.yaml"):
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        saved = add_test(load_suite(path), TEST)
        assert saved.ok, saved.problems
        assert is_kept(source.read_bytes(), path.read_bytes())


def test_an_id_is_free(tmp_path: Path) -> None:
    path = tmp_path / "a.suite.yaml"
    path.write_text(f"tests:\n{ONE}")
    loaded = load_suite(path)
    assert free_id(loaded, "One") == "one-2"
    assert free_id(loaded, "Wo ist meine Bestellung?") == "wo-ist-meine-bestellung"
    assert free_id(loaded, "!!!") == "test"


def test_what_can_not_be_added_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.suite.yaml"
    path.write_text(f"tests:\n{ONE}")
    loaded = load_suite(path)
    with pytest.raises(SaveFailed, match="there is another test with the id"):
        add_test(loaded, {**TEST, "id": "ONE"})
    with pytest.raises(SaveFailed, match="would be invalid"):
        add_test(loaded, {**TEST, "criteria": []})
    assert path.read_text() == f"tests:\n{ONE}"
    path.write_text(f"# somebody\ntests:\n{ONE}")
    with pytest.raises(FileChanged):
        add_test(loaded, TEST)
    path.write_text("tests: [\n")
    with pytest.raises(SaveFailed, match="YAML error"):
        add_test(load_suite(path), TEST)
