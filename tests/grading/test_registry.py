"""Names and plug-ins: a metric and a prototype class that another package offers by entry points."""

from __future__ import annotations

import configparser
import io
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval_tui.cli.commands import doctor
from agenteval_tui.core import entry_points
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading import registry
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config import schema
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.grading.type_names import short_name
from agenteval_tui.transcripts.model import Message, Transcript

ROOT = Path(__file__).resolve().parents[2]

PLUGIN = '''
from typing import Annotated
from pydantic import Field
from agenteval_tui.grading.metrics.metric import Context, Metric
from agenteval_tui.grading.config.model import RegexText
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.extracted_value import Value

class Shouts(Metric):
    """Counts capital letters."""
    at_least: int = Field(description="How many there must be.")
    pattern: Annotated[str, RegexText()] = Field("/a/", description="A pattern.")

    def check(self, value: Value, context: Context) -> MetricResult:
        if value.text == "boom":
            raise RuntimeError("the plug-in broke")
        capitals = sum(char.isupper() for char in value.text)
        line = Evidence("at_least", capitals >= self.at_least, f"{capitals} capitals", self.at_least, capitals)
        return self.result(capitals >= self.at_least, min(1.0, capitals / self.at_least), (line,))

class FirstMessage(Prototype):
    """What was said first."""
    def extract(self, transcript):
        return Value(transcript, transcript.messages[0].content) if transcript.messages else None

class NoMetric: ...
'''
ENTRY_POINTS = """
[agenteval.metrics]
Shouts = shouting:Shouts
TextMatch = shouting:Shouts
Broken = not_there:Broken
NoMetric = shouting:NoMetric

[agenteval.prototypes]
FirstMessage = shouting:FirstMessage
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "shouting.py").write_text(PLUGIN)
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    caches = (
        entry_points._plugins,
        registry._load,
        registry.metric,
        registry.prototype,
        schema.metric_schema,
        schema._config_schema,
    )
    for one in caches:
        one.cache_clear()
    yield
    sys.modules.pop("shouting", None)
    for one in caches:
        one.cache_clear()


def answer(text: str) -> Transcript:
    return Transcript((Message("assistant", text),), final_output=text)


@pytest.mark.usefixtures("plugin")
def test_plugins_register_by_entry_points() -> None:
    spec = CriterionSpec("it", "FirstMessage", {"metrics": [{"type": "acme.Shouts", "at_least": 4}]})
    result = Checker(spec).check(answer("HEy"))
    assert (result.outcome, result.score) == (Outcome.FAILED, 0.5)
    assert result.metrics[0].type == "Shouts"
    assert result.metrics[0].evidence[0].found == 2
    assert result.value == "HEy"
    assert criterion_sentence(Checker(spec).check(Transcript())).startswith("nothing extracted")
    broken = Checker(spec).check(answer("boom"))
    assert broken.outcome is Outcome.ERROR
    assert "the plug-in broke" in criterion_sentence(broken)
    # The editor knows its properties; a built-in name keeps its built-in metric.
    (one,) = diagnose('{"metrics": [{"type": "Shouts", "at_lest": 4}]}', "FirstMessage")
    assert "at_least" in one.message
    assert registry.metric("TextMatch").__module__ == "agenteval_tui.grading.metrics.text_match"


@pytest.mark.usefixtures("plugin")
def test_plugins_that_cannot_be_loaded_are_errors_of_who_uses_them() -> None:
    for name, words in (("Broken", "cannot be loaded"), ("NoMetric", "no Metric class")):
        spec = CriterionSpec("it", "TextResponse", {"metrics": [{"type": name}]})
        result = Checker(spec).check(answer("x"))
        assert result.outcome is Outcome.ERROR
        assert words in criterion_sentence(result)
    fine = CriterionSpec("it", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "x"}]})
    assert Checker(fine).check(answer("x")).outcome is Outcome.PASSED
    assert diagnose('{"metrics": [{"type": "TextMatch", "contains": "x"}]}', "TextResponse") == ()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("TextMatch", "TextMatch"),
        ("axenox.GenAI.TextMatch", "TextMatch"),
        ("\\axenox\\GenAI\\AI\\TestCriteria\\ToolResponseTestCriterion", "ToolResponse"),
        ("axenox/genai/ToolResponseTestCriterion.php", "ToolResponse"),
        ("  TextResponseTestCriterion.PHP ", "TextResponse"),
        ("TestCriterion", "TestCriterion"),
        ("Metric", "Metric"),
        ("", ""),
        ("...", ""),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_grading_imports_no_screens_files_or_network() -> None:
    code = (
        "import sys; import agenteval_tui.grading.grade, agenteval_tui.grading.config.diagnostics\n"
        "import agenteval_tui.grading.explain, agenteval_tui.grading.codec\n"
        "from agenteval_tui.grading.compile import Checker; from agenteval_tui.grading.spec import CriterionSpec\n"
        "from agenteval_tui.transcripts.model import Transcript\n"
        "for p in ('TextResponse', 'ToolResponse'):\n"
        "    for t in ('TextMatch', 'ToolCheck'):\n"
        "        Checker(CriterionSpec('a', p, {'metrics': [{'type': t}]})).check(Transcript())\n"
        "bad = {'textual', 'rich', 'httpx', 'sqlite3', 'yaml', 'asyncio', 'jinja2', 'jsonschema'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_importing_the_package_loads_no_models() -> None:
    code = (
        "import sys; import agenteval_tui.grading.grade, agenteval_tui.grading.codec, agenteval_tui.grading.explain\n"
        "assert 'pydantic' not in sys.modules and 'rapidfuzz' not in sys.modules and 'regex' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.usefixtures("plugin")
def test_a_plug_in_replaces_nothing_and_that_is_said(tmp_path: Path) -> None:
    said = list(entry_points.conflicts())
    assert said == ["'TextMatch' of shouting 1.0 is not used: agenteval has its own 'TextMatch' in agenteval.metrics"]
    second = tmp_path / "louder-2.0.dist-info"
    second.mkdir()
    (second / "METADATA").write_text("Metadata-Version: 2.1\nName: louder\nVersion: 2.0\n")
    (second / "entry_points.txt").write_text("[agenteval.metrics]\nShouts = louder:Shouts\n")
    entry_points._plugins.cache_clear()
    with pytest.raises(AgentevalError, match=r"'Shouts' is offered by two packages .*(shouting 1.0|louder 2.0) and "):
        registry.metric("Shouts")
    assert len(list(entry_points.conflicts())) == 2
    states = [(one.name, one.state) for one in doctor._plug_ins()]
    assert states == [("plug-ins", "warning"), ("plug-ins", "warning"), ("plug-ins", "ok")]
    assert entry_points.plugin_packages() == ("louder 2.0", "shouting 1.0")
    assert registry.metric_names().count("Shouts") == 1


def test_own_entry_points_are_read_as_the_standard_library_reads_them() -> None:
    every = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    declared = {group: points for group, points in every.items() if group.startswith("agenteval.")}
    assert every.keys() - declared.keys() == {"pytest11"}
    for group, points in declared.items():
        assert entry_points.own(group) == points
        for name in points:
            found = entry_points.find(group, name)
            assert found is not None
            assert found.load() is not None
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_dict(every)
    text = io.StringIO()
    parser.write(text)  # what is in a wheel
    assert entry_points.read_groups(text.getvalue()) == declared
