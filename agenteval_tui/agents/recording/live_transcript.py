"""The transcript of a program's run while the program still runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.transcripts.model import Transcript

SHOW_S = 0.2
"""The fewest seconds between two transcripts."""
_SHARE = 10  # each transcript is built from all exchanges, which may take a tenth of the time


async def transcripts(session: Session) -> AsyncIterator[Transcript]:
    """The transcript after each change: a new request, or a new answer. It does not end."""
    while True:
        await session.news.wait()
        # Before the look: what comes meanwhile wakes the next one.
        session.news.clear()
        began = time.perf_counter()
        transcript = transcript_of(session.exchanges())
        took = time.perf_counter() - began
        yield transcript
        await asyncio.sleep(max(SHOW_S, _SHARE * took))
