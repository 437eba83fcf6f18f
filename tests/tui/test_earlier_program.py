"""The header of a failed run says that its test passed before the agent's code changed; the sheet says which files."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing import make
from shop import app_on, settle, text_of, until

from agenteval_tui.history.programs import KeepPrograms
from agenteval_tui.history.store import Store


async def test_a_run_that_passed_with_earlier_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_SCOPE", "all")
    db = tmp_path / "made.db"
    with Store.open(db) as store:
        for execution, run, digest in (("E1", "", "a"), ("E2", "text", "b")):
            make(store, execution, smoke=[run])
            store.write(KeepPrograms(execution, {"demo": {"tools.py": digest * 64}})).result()
    app = app_on(tmp_path, db)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("4")
        await settle(pilot)
        await until(pilot, lambda: "passed with earlier code" in text_of(app))
        await pilot.press("alt+w")
        await until(pilot, lambda: "files changed since: tools.py" in " ".join(text_of(app).split()))
