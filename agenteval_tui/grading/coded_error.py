"""The error of a check that could not run: a code with fields, whose words are made last."""

from __future__ import annotations

from typing import Any

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.sentences import error_sentence


class CodedError(Exception):
    """Why something could not be checked: a code with fields, or, raised by a plug-in, a message.

    Its sentence is made when it is shown (`grading.sentences`).
    """

    code: str = Code.MESSAGE

    def __init__(self, message: str = "", code: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.code = code or self.code
        if message and self.code != Code.MESSAGE:
            message, fields = "", {"message": message, **fields}
        self.message = message
        self.fields: dict[str, Any] = fields

    def __str__(self) -> str:
        if self.message:
            return self.message
        return error_sentence(self.code, self.fields)
