"""Themes: the bundled ones load; a broken one is an error that names file and key, never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.themes import TOKENS, default_theme, load_theme, load_themes


def test_the_bundled_themes_load_and_know_every_token() -> None:
    themes, problems = load_themes([directories.bundled("themes")])
    assert problems == []
    assert {"dusk", "paper", "contrast", "sixteen"} <= set(themes)
    for theme in themes.values():
        known = {**theme.to_color_system().generate(), **theme.variables}
        assert not [token for token in TOKENS if token not in known]
    assert default_theme() == themes["dusk"], "what is shown before the files are read"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\ncolors: {}", "did you mean `colours`"),
        ("name: x\ncolours: {pased: red}", "did you mean `passed`"),
        ("name: x\ncolours: {passed: grenish}", "is no colour"),
        ("- a list", "a theme is a mapping"),
        ("name: [x", "no valid YAML"),
    ],
)
def test_a_broken_theme_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(AgentevalError) as caught:
        load_theme(path)
    assert said in str(caught.value)
    assert "mine.yaml" in str(caught.value)


def test_a_broken_theme_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a")
    (tmp_path / "b.yaml").write_text("name: b\ncolours: 3")
    themes, problems = load_themes([tmp_path])
    assert list(themes) == ["a"]
    assert len(problems) == 1
