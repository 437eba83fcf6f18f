from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.typed_path import typed_path


@pytest.mark.parametrize(
    "text", ["there", " there ", "~/there", "~nobody-of-this-name/there", "a\nb", "\x1b[31m", "🙂"]
)
def test_what_may_be_a_name_is_a_path(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "there").touch()
    assert typed_path(text).is_file() is (text.strip() in ("there", "~/there"))


@pytest.mark.parametrize(("text", "words"), [("a" * 300, "too long"), ("a/" * 3000, "too long"), ("a\0b", "null")])
def test_what_can_be_no_name_is_said_with_a_remedy(text: str, words: str) -> None:
    with pytest.raises(AgentevalError, match=words) as caught:
        typed_path(text)
    assert caught.value.fix
    assert len(caught.value.where) < 100
