"""Makes a Django project ready before its code is called, as its `manage.py` does. Runs in the child: only the standard
library, of Python 3.8 or later.

Models can be imported only then, and settings be read.
"""

# pathlib takes longer to load than all else.
# ruff: noqa: PTH100, PTH110, PTH113, PTH118, PTH120, PTH123
from __future__ import annotations

import os
import re
import sys

_VARIABLE = "DJANGO_SETTINGS_MODULE"
_SETTINGS = re.compile(_VARIABLE + r"['\"]\s*(?:,|\]\s*=)\s*['\"]([\w.]+)['\"]")


def is_unready(error: BaseException) -> bool:
    """Whether an import failed because the project was not made ready."""
    return type(error).__name__ in ("ImproperlyConfigured", "AppRegistryNotReady") and type(error).__module__ == (
        "django.core.exceptions"
    )


def set_up(folder: str) -> bool:
    """Make the project ready whose `manage.py` is the nearest from `folder` up, if Django is imported. Whether that was
    done now: not where the project's code has done it, or where nothing names the settings. Raises what the project's
    settings and apps raise."""
    conf, django = sys.modules.get("django.conf"), sys.modules.get("django")
    if conf is None or django is None or conf.settings.configured:
        return False
    home, settings = _manage(folder)
    if _VARIABLE not in os.environ:
        if not settings:
            return False
        os.environ[_VARIABLE] = settings
    if home and home not in sys.path:
        sys.path.insert(0, home)
    django.setup()
    return True


def _manage(folder: str) -> tuple[str, str]:
    """Where the project's `manage.py` is, and the settings that it names."""
    place = os.path.abspath(folder)
    while True:
        path = os.path.join(place, "manage.py")
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                named = _SETTINGS.search(file.read())
            if named:
                return place, named.group(1)
        above = os.path.dirname(place)
        if above == place or os.path.exists(os.path.join(place, ".git")):
            return "", ""
        place = above
