"""What a check may know beside the value that it looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from agenteval_tui.grading.remote_requests import Reply


class Context(Struct, frozen=True):
    """The expected value (the criterion's, else the row's variable `expected_value`) and the row's variables.

    `explain` is False when thousands of transcripts are graded at once: the metric then leaves evidence out and
    gives outcome and score only. `replies` holds what judges and other respondents said, by the hash of the question
    (`grading.remote`); None: nothing was asked. `criterion` is the name of the criterion that checks, `negate` and
    `pass_threshold` are what it makes of its metrics.
    """

    expected_value: Any = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    explain: bool = True
    replies: Mapping[str, Reply] | None = None
    criterion: str = ""
    negate: bool = False
    pass_threshold: float | None = None
