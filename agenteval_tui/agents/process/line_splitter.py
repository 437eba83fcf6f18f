"""Lines from bytes that come in pieces."""

from __future__ import annotations


class LineSplitter:
    """Cuts a stream of bytes into lines; what a line lacks is kept until it comes."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._looked = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their ends."""
        self._rest += data
        # What was searched before is not searched again: else a line of many megabytes would take time that grows with
        # its square.
        last = self._rest.rfind(b"\n", self._looked)
        if last < 0:
            self._looked = len(self._rest)
            return []
        whole = bytes(self._rest[:last])
        del self._rest[: last + 1]
        self._looked = len(self._rest)
        return whole.split(b"\n")

    @property
    def rest(self) -> bytes:
        """What came after the last line's end."""
        return bytes(self._rest)
