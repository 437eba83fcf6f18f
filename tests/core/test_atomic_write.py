from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval_tui.core.atomic_write import PRIVATE, locked, write_pieces, write_whole


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_written_with_its_permissions_and_without_a_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, (b"on", b"e"), mode=PRIVATE)
    assert (path.read_bytes(), mode_of(path)) == (b"one", 0o600)
    path.chmod(0o664)
    write_whole(path, (b"two",), like=path.stat(), durable=False)
    assert (path.read_bytes(), mode_of(path)) == (b"two", 0o664)
    write_whole(path, (b"three",))  # neither mode nor model: what the umask leaves
    assert (path.read_bytes(), mode_of(path)) == (b"three", 0o644)
    assert os.listdir(tmp_path) == ["a.json"]


def test_what_breaks_midway_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("before")

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_whole(path, pieces())

    def refuse(draft: Path) -> None:
        assert (draft.read_bytes(), draft.suffix) == (b"whole", ".csv")
        raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        write_whole(path, (b"whole",), check=refuse, suffix=".csv")
    with pytest.raises(FileExistsError):
        write_whole(path, (b"whole",), force=False)
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", ["a.json"])


def test_a_lock_on_a_folder_and_on_a_file_holds_until_the_end(tmp_path: Path) -> None:
    import fcntl

    for path in (tmp_path, tmp_path / "list.lock"):
        with locked(path):
            other = os.open(path, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
    assert mode_of(tmp_path / "list.lock") == 0o600


@pytest.mark.parametrize("force", [True, False])
def test_a_device_or_a_pipe_is_written_into_and_never_replaced(tmp_path: Path, force: bool) -> None:
    """Root may put a file in place of /dev/stdout, or of the pipe of `>(gzip)`."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reads = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in (pipe, link):
            write_pieces(path, ["a", "b"], force=force)
            assert os.read(reads, 100) == b"ab"
            with pytest.raises(OSError, match="a device or a pipe"):
                write_whole(path, [b"x"])
    finally:
        os.close(reads)
    assert pipe.is_fifo()
    assert link.is_symlink()
