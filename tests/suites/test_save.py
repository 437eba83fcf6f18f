"""Saving a config changes only its bytes."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.yaml.save import FileChanged, SaveFailed, save_config

SUITE = """\
# A suite with much around the configs.   \n\
name:   'Prüfung 😀'     # quoting and spacing stay
defaults: { repeat: 1 ,timeout: 60 }

tests:

  - id: one
    name: Eins
    prompt: >-
      folded
      text
    criteria:
      - name: literal
        prototype_class: TextResponse
        config_uxon: |     # the block
            {
              // a comment
              "metrics": []
            }

      # between
      - {name: flow, prototype_class: ToolResponse, config_uxon: {metrics: [{type: ToolCheck, tools: [a, b]}]}}  # end
      - name: block
        prototype_class: ToolResponse
        config_uxon:                      # YAML
          # about metrics
          metrics:
          - type: TextMatch   # the type
            contains_all: [ "a", 'b' ]
            weight: 1
          - type: Other
        weight: 2.0
      - name: quoted
        prototype_class: TextResponse
        config_uxon: '{"a": 1}'   # quoted
        severity: warning
  # trailing comment
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.suite.yaml"
    path.write_bytes(SUITE.encode())
    return path


def load(path: Path) -> LoadedSuite:
    loaded = load_suite(path)
    assert loaded.ok, [str(problem) for problem in loaded.problems]
    return loaded


def test_an_edit_in_a_literal_block_changes_these_characters_only(path: Path) -> None:
    loaded = load(path)
    text = loaded.config_source("one", 0).text
    saved = save_config(loaded, "one", 0, text.replace('"metrics": []', '"metrics": [1],\n\n  "x": "ä😀"'))
    assert saved.config_source("one", 0).text == '{\n  // a comment\n  "metrics": [1],\n\n  "x": "ä😀"\n}\n'
    assert path.read_text("utf-8") == SUITE.replace(
        '              "metrics": []', '              "metrics": [1],\n\n              "x": "ä😀"'
    )
    assert load(path).digest == saved.digest


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_ends_byte_order_mark_and_mode_stay(path: Path, newline: str, bom: bytes) -> None:
    path.write_bytes(bom + SUITE.replace("\n", newline).encode())
    path.chmod(0o640)
    loaded = load(path)
    saved = save_config(loaded, "one", 0, '{\n  "new": 1\n}\n')
    expected = SUITE.replace('// a comment\n              "metrics": []', '"new": 1').replace("\n", newline)
    assert path.read_bytes() == bom + expected.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert saved.config_source("one", 0).text == '{\n  "new": 1\n}\n'
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("new", "header"),
    [
        ("{}", "|-     # the block"),
        ("{}\n", "|     # the block"),
        ("{}\n\n", "|+     # the block"),
        ("  {}\n", "|4     # the block"),
    ],
)
def test_the_text_is_saved_as_it_is_to_its_last_newline(path: Path, new: str, header: str) -> None:
    saved = save_config(load(path), "one", 0, new)
    assert saved.config_source("one", 0).text == new
    assert f"config_uxon: {header}\n" in path.read_text("utf-8")
    assert path.read_text("utf-8").split("# between")[1] == SUITE.split("# between")[1]


@pytest.mark.parametrize(
    "new", ["", " ", "\n", "\tx", "a\x07b", "a\u2028b\nc", "\ufeff{}", "x\n   \n", "# no comment", "---\n"]
)
@pytest.mark.parametrize("criterion", [0, 1, 2, 3])
def test_odd_texts_survive_in_every_style(path: Path, new: str, criterion: int) -> None:
    saved = save_config(load(path), "one", criterion, new)
    assert saved.config_source("one", criterion).text == new
    assert load(path).config_source("one", criterion).text == new
    for other in {0, 1, 2, 3} - {criterion}:
        assert saved.config_source("one", other).text == load_before().config_source("one", other).text


def load_before() -> LoadedSuite:
    from agenteval_tui.suites.load import load_text

    return load_text(SUITE, "a.suite.yaml")


def test_yaml_stays_yaml_and_only_the_value_that_differs_changes(path: Path) -> None:
    loaded = load(path)
    text = loaded.config_source("one", 1).text
    save_config(loaded, "one", 1, text.replace('"a"', '"describe_table"'))
    assert path.read_text("utf-8") == SUITE.replace("tools: [a, b]", "tools: [describe_table, b]")


@pytest.mark.parametrize(
    ("old", "new", "line", "becomes"),
    [
        ('"b"\n', '"b c: d"\n', "contains_all: [ \"a\", 'b' ]", "contains_all: [ \"a\", 'b c: d' ]"),
        ('"a",\n', "", "contains_all: [ \"a\", 'b' ]", "contains_all: [ 'b' ]"),
        ('"b"\n', '"b", "c"\n', "contains_all: [ \"a\", 'b' ]", "contains_all: [ \"a\", 'b', \"c\" ]"),
        ('"weight": 1\n', '"weight": 1.5\n', "            weight: 1\n", "            weight: 1.5\n"),
        (',\n      "weight": 1\n', "\n", "            weight: 1\n", ""),
        ('"weight": 1\n', '"weight": 1, "name": "no"\n', "            weight: 1\n",
         '            weight: 1\n            name: "no"\n'),
        ('"Other"\n    }', '"Other"\n    }, {"type": "T"}', "          - type: Other\n",
         "          - type: Other\n          - {type: \"T\"}\n"),
        ('"TextMatch"', '"ToolCheck"', "type: TextMatch   # the type", "type: ToolCheck   # the type"),
        ('"Other"', "null", "type: Other", "type: null"),
    ],
)  # fmt: skip
def test_edits_of_a_config_in_block_yaml(path: Path, old: str, new: str, line: str, becomes: str) -> None:
    import json

    loaded = load(path)
    text = loaded.config_source("one", 2).text
    if old == '"a",\n':
        text = text.replace('        "a",\n', "")
    else:
        assert old in text
        text = text.replace(old, new)
    json.loads(text)
    save_config(loaded, "one", 2, text)
    assert path.read_text("utf-8") == SUITE.replace(line, becomes)


def test_a_whole_entry_of_block_yaml_goes_with_its_lines(path: Path) -> None:
    loaded = load(path)
    saved = save_config(loaded, "one", 2, '{"metrics": [{"type": "Other"}]}')
    after = path.read_text("utf-8")
    assert "TextMatch" not in after
    assert "# about metrics" in after
    assert after.split("        weight: 2.0")[1] == SUITE.split("        weight: 2.0")[1]
    assert saved.suite is not None
    assert saved.suite.tests[0].criteria[2].config_uxon == {"metrics": [{"type": "Other"}]}


def test_formatting_the_json_of_a_yaml_config_changes_nothing(path: Path) -> None:
    loaded = load(path)
    before = path.stat()
    saved = save_config(loaded, "one", 1, '{"metrics":[{"tools":["a","b"],"type":"ToolCheck"}]}')
    assert saved is loaded
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_comment_makes_a_yaml_config_a_text(path: Path) -> None:
    new = '{\n  // why\n  "metrics": []\n}\n'
    saved = save_config(load(path), "one", 2, new)
    assert saved.config_source("one", 2).text == new
    assert "        config_uxon: |                      # YAML\n          {\n            // why\n" in path.read_text(
        "utf-8"
    )
    flow = save_config(saved, "one", 1, new)
    assert flow.config_source("one", 1).text == new
    assert r'config_uxon: "{\n  // why\n  \"metrics\": []\n}\n"}  # end' in path.read_text("utf-8")


def test_quotes_stay_on_one_line_and_several_lines_become_a_block(path: Path) -> None:
    loaded = load(path)
    saved = save_config(loaded, "one", 3, '{"it\'s": 2}')
    assert path.read_text("utf-8") == SUITE.replace("""'{"a": 1}'""", """'{"it''s": 2}'""")
    save_config(saved, "one", 3, '{\n  "b": 1\n}')
    block = '|-   # quoted\n          {\n            "b": 1\n          }'
    assert path.read_text("utf-8") == SUITE.replace("""'{"a": 1}'   # quoted""", block)


def test_a_file_without_a_last_newline(path: Path) -> None:
    cut = SUITE[: SUITE.index("        severity: warning")].rstrip("\n")
    path.write_text(cut, encoding="utf-8")
    saved = save_config(load(path), "one", 3, '{\n  "b": 1\n}\n')
    assert saved.config_source("one", 3).text == '{\n  "b": 1\n}\n'
    saved = save_config(saved, "one", 3, '{\n  "b": 2\n}')
    assert saved.config_source("one", 3).text == '{\n  "b": 2\n}'


def test_a_changed_file_is_not_overwritten_and_the_difference_is_told(path: Path) -> None:
    loaded = load(path)
    theirs = SUITE.replace("timeout: 60", "timeout: 90")
    path.write_text(theirs, encoding="utf-8")
    with pytest.raises(FileChanged) as caught:
        save_config(loaded, "one", 0, "{}")
    assert "-defaults: { repeat: 1 ,timeout: 60 }\n+defaults: { repeat: 1 ,timeout: 90 }\n" in caught.value.diff
    assert path.read_text("utf-8") == theirs


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("b.suite.yaml")
    link.symlink_to(path.name)
    save_config(load(link), "one", 3, '{"a": 2}')
    assert link.is_symlink()
    assert path.read_text("utf-8") == SUITE.replace('{"a": 1}', '{"a": 2}')


def as_nobody(action: Callable[[], str]) -> str:
    """What `action` returns, done by a user without rights (in a child process where the tests run as root)."""
    if os.geteuid() != 0:
        return action()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, action().encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as stream:
        return stream.read().decode()


@pytest.mark.parametrize(("folder_mode", "file_mode", "said"), [
    (0o555, 0o666, "this file can't be saved: Permission denied"),
    (0o777, 0o444, "this file is read-only"),
])  # fmt: skip
def test_what_may_not_be_written_is_said_and_nothing_is_lost(folder_mode: int, file_mode: int, said: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "a.suite.yaml"
        path.write_bytes(SUITE.encode())
        loaded = load(path)
        save_config(loaded, "one", 3, '{"a": 1}')  # nothing to change; all modules are there for the child process
        path.chmod(file_mode)
        folder.chmod(folder_mode)

        def save() -> str:
            try:
                save_config(loaded, "one", 0, "{}")
            except SaveFailed as error:
                return str(error)
            return "saved"

        told = as_nobody(save)
        folder.chmod(0o755)
        assert said in told
        assert told.startswith(str(path))
        assert path.read_text("utf-8") == SUITE
        assert os.listdir(folder) == [path.name]


def test_a_file_that_is_gone_and_half_a_character(path: Path) -> None:
    loaded = load(path)
    with pytest.raises(SaveFailed, match="half a character"):
        save_config(loaded, "one", 0, "a\ud800")
    path.unlink()
    with pytest.raises(SaveFailed, match="there is no such file"):
        save_config(loaded, "one", 0, "{}")


def test_a_full_disk_leaves_the_file_and_no_rubbish(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(path)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SaveFailed, match="No space left on device"):
        save_config(loaded, "one", 0, "{}")
    assert path.read_text("utf-8") == SUITE
    assert os.listdir(path.parent) == [path.name]


SHARED_CONFIG = """\
tests:
  - &first
    id: one
    prompt: p
    criteria:
      - &c {name: a, prototype_class: TextResponse, config_uxon: &cfg '{"a": 1}'}
      - {name: b, prototype_class: TextResponse, config_uxon: *cfg}
  - {<<: *first, id: two}
  - {id: three, prompt: p, criteria: [{<<: *c, name: c, config_uxon: '{}'}]}
"""


def test_a_config_that_serves_several_criteria_is_not_changed_behind_their_back(path: Path) -> None:
    path.write_text(SHARED_CONFIG, encoding="utf-8")
    loaded = load(path)
    assert loaded.suite is not None
    assert [test.id for test in loaded.suite.tests] == ["one", "two", "three"]
    with pytest.raises(SaveFailed, match="without other changes"):
        save_config(loaded, "one", 0, '{"a": 2}')
    assert path.read_text("utf-8") == SHARED_CONFIG
    save_config(loaded, "three", 0, '{"z": 2}')
    assert path.read_text("utf-8") == SHARED_CONFIG.replace("'{}'", "'{\"z\": 2}'")


def test_an_alias_is_replaced_by_a_text_of_its_own(path: Path) -> None:
    text = SHARED_CONFIG.replace("  - {<<: *first, id: two}\n", "")
    path.write_text(text, encoding="utf-8")
    saved = save_config(load(path), "one", 1, '{"a": 2}')
    assert path.read_text("utf-8") == text.replace("config_uxon: *cfg", r'config_uxon: "{\"a\": 2}"')
    assert saved.config_source("one", 0).text == '{"a": 1}'


def test_a_file_with_other_errors_can_be_saved_but_not_one_with_broken_yaml(path: Path) -> None:
    wrong = SUITE.replace("        weight: 2.0", "        wieght: 2.0").replace(
        "  - id: one", "  - name: x\n  - id: one"
    )
    path.write_text(
        wrong.replace(
            "  # trailing comment\n",
            "  - {id: two, prompt: p, criteria: [{name: a, prototype_class: T, config_uxon: '{}'}]}\n",
        ),
        encoding="utf-8",
    )
    loaded = load_suite(path)
    assert not loaded.ok
    saved = save_config(loaded, "two", 0, "{'a'}")
    assert saved.config_source("two", 0).text == "{'a'}"
    path.write_text(SUITE + "  - [", encoding="utf-8")
    with pytest.raises(SaveFailed, match="YAML error"):
        save_config(load_suite(path), "one", 0, "{}")
    assert path.read_text("utf-8") == SUITE + "  - ["
