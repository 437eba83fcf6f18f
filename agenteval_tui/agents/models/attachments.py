"""Images and files of messages on their way to a model and back, in no protocol's form."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, Attached, Noted
from agenteval_tui.agents.models.message_mapping import ProviderMessage
from agenteval_tui.core.attachment_files import keep, kept
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.content_parts import attachment_and_bytes, text_and_attachments
from agenteval_tui.transcripts.model import Attachment, Note


class SentFile(Struct, frozen=True):
    """An image or a file as it is sent: by its bytes, or by its `url` ("": by bytes)."""

    media_type: str
    name: str
    url: str
    data: bytes

    @property
    def is_image(self) -> bool:
        """Whether models look at it."""
        return self.media_type.startswith("image/")

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def address(self) -> str:
        """The URL, or the bytes as a `data:` URL."""
        return self.url or f"data:{self.media_type or 'application/octet-stream'};base64,{self.base64}"


def parts_of(message: ProviderMessage) -> list[str | SentFile]:
    """The content of a message in its order. Only the user's hold more than their text: no protocol takes an image from
    anybody else. Raises `AgentevalError` where the bytes of one are gone."""
    if not message.attachments or message.role != "user":
        return [message.text] if message.text else []
    parts = text_and_attachments(message.text, message.attachments)
    return [part if isinstance(part, str) else _sent(part) for part in parts]


def refuse(file: SentFile, protocol: str, takes: str) -> AgentevalError:
    """The error for what a protocol has no form for."""
    message = f"{protocol} takes no {file.media_type or 'file of an unknown kind'}" + (
        " by its URL" if file.url else ""
    )
    return AgentevalError(f"{message}: {file.name or file.url}", fix=takes)


def received(part: Mapping[str, Any], kind: str) -> Iterator[AgentEvent]:
    """The events of an image or file in a model's reply: it is kept, or the run says that it was not read."""
    attachment, data = attachment_and_bytes(part, f"[{kind}]")
    if attachment is None:
        yield Noted(Note("unread", kind))
        return
    if data is not None:
        try:
            attachment = replace(attachment, sha256=keep(data))
        except AgentevalError as error:
            yield Noted(Note("left_out", f"the bytes of an image or file: {error.what}"))
    yield Attached(attachment)


def image_of_base64(data: object, media_type: str) -> dict[str, Any]:
    """A part for `received` of an image that comes as bare base64."""
    return {"type": "image", "data": data if isinstance(data, str) else "", "media_type": media_type}


def _sent(attachment: Attachment) -> SentFile:
    name = PurePath(attachment.name).name[:200]
    if attachment.url:
        return SentFile(attachment.media_type, name, attachment.url, b"")
    data = kept(attachment.sha256)
    if data is None:
        raise AgentevalError(
            f"the bytes of {attachment.name or 'an image or file'} are not on this machine",
            fix="run the suite again: they are read from its folder then",
        )
    return SentFile(attachment.media_type, name, "", data)
