"""Where litellm sends the keys that it finds in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.key_destinations import texts_of
from agenteval_tui.suites.trust import Sending


def destination(config: Mapping[str, Any]) -> Sending:
    """What an agent of kind `litellm` sends of the user's own: to an address, which may be in the model's name, or to a
    provider."""
    model = str(config.get("model", ""))
    provider, slash, rest = model.partition("/")
    names_provider = slash and not any(sign in model for sign in ("${", "://")) and rest
    # Parameters can name an address, too (`api_base`).
    more = [text for text in texts_of(config.get("params")) if "://" in text or "${" in text]
    place = str(config.get("base_url") or (f"{provider} (through litellm)" if names_provider else f"litellm's {model}"))
    return Sending("the keys that litellm finds", ", ".join((place, *more)))
