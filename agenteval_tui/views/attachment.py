"""An image or file of a message in one line, as every screen and page shows it."""

from __future__ import annotations

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import file_size
from agenteval_tui.transcripts.model import Attachment

_SHOWN = 120  # characters of a name, a description or an address


def attachment_text(attachment: Attachment) -> str:
    """`[image/png 34 KB sha256 ab12cd34…] cat.png: a cat on a mat`. Foreign text in it is made displayable."""
    facts = [one_line(attachment.media_type, 60) or "file"]
    if attachment.size is not None:
        facts.append(file_size(attachment.size))
    if attachment.sha256:
        facts.append(f"sha256 {one_line(attachment.sha256, 9)}")
    words = ": ".join(one_line(text, _SHOWN) for text in (attachment.name, attachment.description) if text.strip())
    return " ".join(filter(None, (f"[{' '.join(facts)}]", words, one_line(attachment.url, _SHOWN))))
