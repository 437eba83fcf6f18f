"""Marks on the fields of property models that say more than their Python type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegexText:
    """The string is a regular expression (`grading.patterns`): the editor checks and colours it as one."""
