"""The kind `python` in a Django project: it is made ready as its `manage.py` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.agents.base import Failed

from .conftest import Run

pytest.importorskip("django", reason="it is one of the development dependencies")

MANAGE = 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")\n'
SETTINGS = "INSTALLED_APPS = ['orders']\nSTATE = 'shipped'\nSECRET_KEY = 'x'\nDATABASES = {}\n"
MODEL = "from django.db import models\nclass Order(models.Model):\n    name = models.TextField()\n"
AT_IMPORT = "from orders.models import Order\ndef answer(prompt): return Order._meta.label + ' ' + prompt\n"
IN_CALL = "from django.conf import settings\ndef answer(prompt): return settings.STATE + ' ' + prompt\n"
BY_ITSELF = (
    "import django\nfrom django.conf import settings\nsettings.configure(STATE='lost')\ndjango.setup()\n" + IN_CALL
)


def project(folder: Path, bot: str, *, manage: str = MANAGE) -> None:
    files = {
        "manage.py": manage,
        "shop/__init__.py": "",
        "shop/settings.py": SETTINGS,
        "orders/__init__.py": "",
        "orders/models.py": MODEL,
        "orders/bot.py": bot,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("bot", "answer"), [(AT_IMPORT, "orders.Order Hi"), (IN_CALL, "shipped Hi"), (BY_ITSELF, "lost Hi")]
)
@pytest.mark.parametrize("target", ["orders.bot:answer", "orders/bot.py:answer"])
async def test_its_models_and_settings_are_there(
    run_agent: Run, tmp_path: Path, bot: str, answer: str, target: str
) -> None:
    project(tmp_path, bot)
    ran = await run_agent({"kind": "python", "callable": target}, "Hi")
    assert ran.transcript.final_output == answer


async def test_settings_that_nothing_names_are_not_guessed(run_agent: Run, tmp_path: Path) -> None:
    project(tmp_path, AT_IMPORT, manage="print('ours')\n")
    ran = await run_agent({"kind": "python", "callable": "orders.bot:answer"}, "Hi")
    assert isinstance(ran.events[-1], Failed)
    assert "ImproperlyConfigured" in ran.events[-1].error.message


async def test_settings_that_the_environment_names_come_before_those_of_manage_py(
    run_agent: Run, tmp_path: Path
) -> None:
    project(tmp_path, IN_CALL)
    (tmp_path / "shop" / "other.py").write_text(SETTINGS.replace("shipped", "open"), "utf-8")
    config = {"kind": "python", "callable": "orders.bot:answer", "env": {"DJANGO_SETTINGS_MODULE": "shop.other"}}
    assert (await run_agent(config, "Hi")).transcript.final_output == "open Hi"


@pytest.mark.parametrize("bot", [AT_IMPORT, IN_CALL])
async def test_an_error_of_its_settings_is_that_of_the_agent(run_agent: Run, tmp_path: Path, bot: str) -> None:
    project(tmp_path, bot)
    (tmp_path / "shop" / "settings.py").write_text("KEYS = {}\nKEYS['shop']\n", "utf-8")
    ran = await run_agent({"kind": "python", "callable": "orders.bot:answer"}, "Hi")
    assert isinstance(ran.events[-1], Failed)
    error = ran.events[-1].error
    assert "KeyError: 'shop' (settings.py, line 2)" in error.message
    assert error.traceback is not None
    assert [raised.type for raised in error.traceback.exceptions] == ["KeyError"]
