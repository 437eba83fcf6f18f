"""The user's notify.yaml: how to be told that an execution has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from agenteval_tui.core.errors import AgentevalError, raise_first
from agenteval_tui.core.private_files import read_small_bytes
from agenteval_tui.core.terminal_sequences import SEQUENCES, Sequence, known_sequence
from agenteval_tui.suites.decode import read_model
from agenteval_tui.suites.environment import environment_for, expand
from agenteval_tui.suites.files import decode_utf8
from agenteval_tui.suites.yaml.line_index import ProblemReport
from agenteval_tui.suites.yaml.tree import compose, is_null

NOTIFY_FILE = "notify.yaml"
VARIABLE = "AGENTEVAL_NOTIFY"
LONG_S = 30.0


class NotifySettings(BaseModel):
    """What notify.yaml may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    terminal: Literal["auto", "osc9", "osc777", "osc99", "bell", "off"] = Field(
        default="auto",
        description="The sequence for your terminal; auto: the best one it is known to support, else the bell; off: "
        "none.",
    )
    after: float = Field(
        default=LONG_S,
        ge=0,
        allow_inf_nan=False,
        description="Notify you about executions that took at least this many seconds.",
    )
    webhook: str = Field(
        default="", description="The address of a web hook for executions started in the app; it can use ${VARIABLES}."
    )

    def sequence(self, environment: Mapping[str, str]) -> Sequence:
        """What to send to the terminal; `AGENTEVAL_NOTIFY` wins. Raises `AgentevalError` where it is not a sequence."""
        choice = environment.get(VARIABLE, "").strip().casefold() or self.terminal
        if choice not in ("auto", *SEQUENCES):
            choices = ", ".join(("auto", *SEQUENCES))
            raise AgentevalError(f"{VARIABLE} is {choice!r}", fix=f"set it to one of: {choices}")
        return known_sequence(environment) if choice == "auto" else cast(Sequence, choice)


def load_notify_settings(config_dir: Path, environment: Mapping[str, str]) -> NotifySettings:
    """The settings of notify.yaml, with `${VAR}` put in; those of a user who wrote none where there is no such file.

    Raises `AgentevalError` with the first thing that is wrong.
    """
    path = config_dir / NOTIFY_FILE
    content = read_small_bytes(path, "the file about notifications")
    if content is None:
        return NotifySettings()
    text = decode_utf8(content, path)
    report = ProblemReport(text, path)
    root, _ = compose(text, report)
    notify_settings = (
        NotifySettings() if root is None or is_null(root) else read_model(NotifySettings, root, NOTIFY_FILE, report)
    )
    raise_first(report.problems[:1])
    assert notify_settings is not None  # what is wrong in a model is always reported
    address = expand(notify_settings.webhook, environment_for(config_dir, environment))
    return notify_settings.model_copy(update={"webhook": address})
