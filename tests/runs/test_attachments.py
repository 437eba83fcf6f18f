"""Images and files in the messages of a suite: read, checked, trusted, stored, resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.analysis.lint import check_suite
from agenteval_tui.core import attachment_files
from agenteval_tui.core.attachment_files import kept
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.response_cache import request_hash
from agenteval_tui.runs.task_payload import Tasks, _message
from agenteval_tui.runs.trust_check import needs_of
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts import codec
from agenteval_tui.transcripts.model import Attachment, Message, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
SUITE = """
name: Pictures
agent: shop
agents:
  shop: {kind: demo, pace: 0}
tests:
  - id: look
    messages:
      - role: user
        content:
          - text: "What is on {{what}}?"
          - image: PICTURE
            description: a {{animal}}
          - file: https://example.com/report.pdf
    variables: {what: this picture, animal: cat, name: cat.png}
    criteria:
      - {name: C, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Length", "min": 1}]}'}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "suites"
    made.mkdir()
    (made / "cat.png").write_bytes(PNG)
    (tmp_path / "outside.png").write_bytes(PNG)
    return made


def write(folder: Path, picture: str) -> Path:
    path = folder / "pictures.suite.yaml"
    path.write_text(SUITE.replace("PICTURE", picture))
    return path


def planned(folder: Path, picture: str) -> Plan:
    return make_plan([load_suite(write(folder, picture))], PlanOptions(), user_agents={})


@pytest.mark.parametrize("picture", ["cat.png", '"{{name}}"'])
def test_a_picture_of_a_suite_is_read_and_kept(folder: Path, picture: str) -> None:
    plan = planned(folder, picture)
    (message,) = plan.runs[0].messages
    assert message.content == "What is on this picture?\n[image: a cat]\n[file: report.pdf]"
    image, linked = message.attachments
    assert (image.media_type, image.size, image.name, image.description) == ("image/png", len(PNG), "cat.png", "a cat")
    assert kept(image.sha256) == PNG
    assert linked == Attachment("application/pdf", name="report.pdf", url="https://example.com/report.pdf",
                                mark="[file: report.pdf]")  # fmt: skip
    # As it is kept for a later process.
    (task,) = [json.loads(json.dumps(Tasks(plan).of(run))) for run in plan.runs]
    assert _message(task["messages"][0]) == message


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        ("dog.png", "this image can't be read: No such file"),
        (".", "this image is not a regular file"),
        ("note.txt", "models do not accept this as an image: it is text/plain"),
        ("empty.png", "this image is empty"),
        ("wrong.png", "models do not accept this as an image: it is application/pdf"),
        ("large.png", "this has 20.0 MB; an image or file in a message may have 20 MB"),
        ("data:image/png;base64,AAAA", "not a web address"),
        ("file:///etc/passwd", "not a web address"),
    ],
)
def test_what_can_not_be_sent_is_said_by_validate_and_by_the_plan(folder: Path, picture: str, said: str) -> None:
    (folder / "note.txt").write_text("hello")
    (folder / "empty.png").touch()
    (folder / "wrong.png").write_bytes(b"%PDF-1.7")
    with (folder / "large.png").open("wb") as file:
        file.truncate(attachment_files.LARGEST + 1)
    path = write(folder, picture)
    (problem,) = [one for one in check_suite(load_suite(path), {}) if one.code == "attachment"]
    assert said in problem.message
    assert problem.line == 12
    with pytest.raises(AgentevalError, match="test 'look'") as error:
        planned(folder, picture)
    assert said in str(error.value)


@pytest.mark.parametrize("outside", ["../outside.png", "link.png"])
def test_a_picture_outside_of_the_folder_needs_trust(folder: Path, outside: str) -> None:
    (folder / "link.png").symlink_to(folder.parent / "outside.png")
    path = write(folder, outside)
    (problem,) = [one for one in check_suite(load_suite(path), {}) if one.code == "attachment"]
    assert problem.message == f"{outside} is outside the suite's folder"
    with pytest.raises(NotTrustedError) as error:
        planned(folder, outside)
    (need,) = error.value.needs
    assert need.what == (f"sends the file {outside}",)
    assert needs_of(planned(folder, "cat.png")) == ()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("{text: a, image: b}", "a part can be only one of text, image and file; this one has text and image"),
        ("{description: a}", "a part is a text, image or file"),
        ("{text: a, media_type: b}", "a text has no media_type"),
        ("{picture: a}", 'has no "picture"'),
    ],
)
def test_a_wrong_part_has_its_place(folder: Path, part: str, said: str) -> None:
    text = SUITE.replace('- text: "What is on {{what}}?"', f"- {part}").replace("PICTURE", "cat.png")
    (folder / "a.suite.yaml").write_text(text)
    assert said in " ".join(problem.message for problem in load_suite(folder / "a.suite.yaml").problems)


def test_only_the_user_sends_images(folder: Path) -> None:
    path = write(folder, "cat.png")
    path.write_text(path.read_text().replace("role: user", "role: system"))
    said = [problem.message for problem in load_suite(path).problems]
    assert "only user messages can have images and files" in said


ONE = Attachment("image/png", 3, "ab" * 32, "secret-key-123.png", "of secret-key-123", "", "[image: of secret-key-123]")
TOLD = Transcript((Message("user", f"look\n{ONE.mark}", attachments=(ONE,)), Message("assistant", "a cat")))


def test_transcripts_keep_what_was_attached() -> None:
    digest, data = pack_transcript(TOLD)
    assert unpack_transcript(data) == TOLD
    assert digest != pack_transcript(Transcript((Message("user", f"look\n{ONE.mark}"), TOLD.messages[1])))[0]
    assert codec.from_json(json.loads(json.dumps(codec.to_json(TOLD)))) == TOLD
    for wrong in ([{"sha256": "../../etc/passwd"}], [{"size": "3"}], [{"nonsense": 1}], [3]):
        with pytest.raises(AgentevalError, match="this transcript can't be read"):
            codec.from_json({"version": 1, "messages": [{"role": "user", "content": "", "attachments": wrong}]})


def test_secrets_are_in_nothing_that_is_said_of_an_attachment() -> None:
    clean = TranscriptRedactor(["secret-key-123"]).transcript(TOLD)
    assert "secret-key-123" not in repr(clean)
    assert clean.messages[0].attachments[0].sha256 == ONE.sha256


async def test_agents_that_are_no_models_are_told_the_marks_and_the_run_says_so(
    execution: Callable[..., Any], folder: Path
) -> None:
    ran = execution(SUITE.replace("PICTURE", '"https://example.com/cat.png"'))
    await ran.engine.run()
    ran.store.flush()
    (row,) = ran.store.runs_of_execution(ran.engine.plan.execution_id)
    transcript = ran.store.transcript(row.id)
    assert [note.what for note in transcript.notes] == ["2 attachments: agents of this kind get their marks only"]
    assert len(transcript.messages[0].attachments) == 2


def test_what_is_kept_is_bounded_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachment_files, "_MOST", 10)
    monkeypatch.setattr(attachment_files, "_YOUNG_S", -60.0)
    first = attachment_files.keep(b"1234567")
    assert attachment_files.kept(first) == b"1234567"
    second = attachment_files.keep(b"7654321")
    assert (attachment_files.kept(first), attachment_files.kept(second)) == (None, b"7654321")
    (attachment_files._folder() / second).write_bytes(b"changed")
    assert attachment_files.kept(second) is None
    assert attachment_files.kept("../secret") is None
    with pytest.raises(AgentevalError, match=r"this has 20\.0 MB"):
        attachment_files.keep(b"x" * (attachment_files.LARGEST + 1))


def test_equal_words_with_other_pictures_are_another_question() -> None:
    def hashed(*attachments: Attachment) -> str:
        return request_hash("a", AgentRequest((Message("user", "look", attachments=attachments),)), ())

    assert len({hashed(), hashed(ONE), hashed(replace(ONE, sha256="cd" * 32))}) == 3
