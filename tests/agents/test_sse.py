"""Server-sent events: any cut, any line ending."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.http.sse import ServerEvent, SseReader


def read(*pieces: bytes) -> list[ServerEvent]:
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.close()


def test_fields_comments_and_line_endings() -> None:
    first = b"\xef\xbb\xbf: hello\r\nevent: error\r\ndata: one\r\ndata:two\r\nid: 7\r\n\r\n"
    assert read(first + b"data\n\n\n\ndata: {}\r\rdata: last") == [
        ServerEvent("error", "one\ntwo"),
        ServerEvent("", ""),
        ServerEvent("", "{}"),
        ServerEvent("", "last"),
    ]


@given(
    st.lists(st.tuples(st.sampled_from(["", "error"]), st.text(st.characters(exclude_characters="\r\n"))), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(1, 7), min_size=1, max_size=30),
)
def test_any_cut_gives_the_same_events(sent: list[tuple[str, str]], end: str, sizes: list[int]) -> None:
    text = "".join(
        f"event: {name}{end}data: {data}{end}{end}" if name else f"data: {data}{end}{end}" for name, data in sent
    )
    whole, pieces = text.encode("utf-8", "surrogatepass"), list[bytes]()
    at = 0
    for size in sizes * (1 + len(whole) // sum(sizes)):
        pieces.append(whole[at : at + size])
        at += size
    assert read(*pieces) == read(whole)
    assert len(read(whole)) == len(sent)


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_no_bytes_break_it(pieces: list[bytes]) -> None:
    read(*pieces)
