"""What is shown of people's labels."""

from __future__ import annotations

from agenteval_tui.history.labels import Label

UNKNOWN = "criterion unknown"
"""Of a label from an older history that several criteria of the run may be meant by: no verdict of one of them."""


def label_text(label: Label) -> str:
    """`label of tone by kim: failed, 2 of 5: too rude`. Raw: it holds foreign text."""
    of = f" of {label.criterion}" if label.criterion else f" ({UNKNOWN})" if label.unknown else " of the run"
    who = f" by {label.who}" if label.who else ""
    comment = f": {label.comment}" if label.comment else ""
    return f"label{of}{who}: {label.said}{comment}"
