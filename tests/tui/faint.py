"""What can hardly be read of a screen as it is painted: text and lines with too little contrast to what is behind them.

The contrasts of a theme's tokens are tested in test_themes.py. This looks at what was made of them: a widget's own
ground, a tint over it, text that is turned round.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.theme_tokens import RULE_CONTRAST, TEXT_CONTRAST, contrast
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

STRUCTURE = re.compile(r"[\s·\u2500-\u259f\u2800-\u28ff]*")
"""Lines, bars and dots are seen and not read."""

ROUNDED = 0.05  # a colour has 256 steps


def faint(app: AgentevalApp) -> list[str]:
    """The pieces of the screen that can hardly be read, each with its contrast. What is behind a sheet is faint on
    purpose; so is everything where the terminal chooses the colours."""
    frames = [frame.region for frame in app.screen.query(SheetFrame)]
    found = []
    for y, strip in enumerate(app.screen._compositor.render_strips()[: app.size.height]):
        x = 0
        for piece in strip:
            start, x = x, x + piece.cell_length
            if frames and not any(frame.contains(start, y) for frame in frames):
                continue
            ratio = contrast_of(piece.text, piece.style)
            if ratio is not None:
                found.append(f"row {y}: {piece.text.strip()!r} has {ratio:.2f}:1, {piece.style}")
    return found


def faint_pieces(pieces: list[Segment]) -> list[str]:
    """The same of pieces that are on no screen."""
    ratios = [(piece, contrast_of(piece.text, piece.style)) for piece in pieces]
    return [f"{piece.text.strip()!r} has {ratio:.2f}:1, {piece.style}" for piece, ratio in ratios if ratio is not None]


@lru_cache(maxsize=10_000)
def contrast_of(text: str, style: Style | None) -> float | None:
    """The contrast of a text that can hardly be read; None for one that can."""
    if style is None or style.color is None or style.bgcolor is None or not text.strip():
        return None
    colour, ground = style.color.triplet, style.bgcolor.triplet
    if colour is None or ground is None:
        return None
    ratio = contrast(Color(*colour), Color(*ground))
    wanted = RULE_CONTRAST if STRUCTURE.fullmatch(text) else TEXT_CONTRAST
    return None if ratio >= wanted - ROUNDED else ratio
