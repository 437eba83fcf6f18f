"""What is published of an execution: reports, and other tools' formats."""

from __future__ import annotations

import json

import click
from commands import HISTORY, leaves, words_of
from recorder import Files, Recorder

from agenteval_tui.formats.exporters.export import exporters


def reports(recorder: Recorder) -> Files:
    """Every form that `agenteval report` has."""
    command = dict(leaves())["report"]
    options = [one for one in command.params if isinstance(one, click.Option)]
    forms = [one.opts[0].removeprefix("--") for one in options if one.metavar == "FILE"]
    files: dict[str, str | object] = {}
    for form in forms:
        path = recorder.folder / f"report.{form}"
        said = recorder.call(
            "report",
            words_of(recorder)["fifth" if form == "json" else "second"],
            f"--{form}",
            path,
            db=recorder.copy(HISTORY),
        )
        assert said.code == 0, said.err
        text = recorder.settled(path.read_text("utf-8"))
        path.unlink()
        files[path.name] = json.loads(text) if form == "json" else text
    return files


def exports(recorder: Recorder) -> Files:
    """Every format of `agenteval export`, and what it says that the format can't keep."""
    files: dict[str, object] = {}
    for name in exporters():
        said = recorder.call("export", words_of(recorder)["failed"], "--format", name, db=recorder.copy(HISTORY))
        files[f"{name}.json"] = {"documents": said.documents, "stderr": said.err.splitlines()}
    said = recorder.call("export", "orders.suite.yaml", "--format", "power-ui")
    files["power-ui.json"] = {"documents": said.documents, "stderr": said.err.splitlines()}
    return files
