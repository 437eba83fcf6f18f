"""Make agenteval_tui/agents/prices.yaml from LiteLLM's list of prices.

    pip download --no-deps --dest /tmp litellm==VERSION     # the file is inside of the wheel
    python docs/make_prices.py model_prices_and_context_window_backup.json VERSION > agenteval_tui/agents/prices.yaml

The names are those that the provider's own server has. Models with open weights cost something else on each server:
those stand below the server's name only.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from agenteval_tui.agents.price_update import LITELLM_FIELDS

# The list's provider: what its names begin with there, and here.
PROVIDERS = {
    "openai": ("", ""),
    "anthropic": ("", ""),
    "gemini": ("gemini/", ""),
    "mistral": ("mistral/", ""),
    "deepseek": ("deepseek/", ""),
    "xai": ("xai/", ""),
    "cohere_chat": ("", ""),
    "groq": ("groq/", "groq/"),
}
# No models by token alone, or not for everybody.
LEFT_OUT = re.compile(
    r"^ft:|audio|tts|search|image|realtime|computer-use|deep-research|lyria|robotics|container|live|guard|cyber"
    r"|daybreak|rosalind|omni|exp|gemma|learnlm|beta|multi-agent|gv2|vibe|leanstral|voxtral|pixtral|fim|code-agent"
    r"|glm|customtools|vision|aya"
)
DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|\d{2}-\d{4}|\d{2}-\d{2})$")
HEAD = """\
# What models cost: US dollars per million tokens.
#
# input        tokens of the request that were not read from a cache
# output       tokens of the answer, reasoning included
# cached       tokens of the request that the server read from its cache (absent: as `input`)
# cache_write  tokens of the request that the server wrote into its cache (absent: as `input`)
# cache_write_1h  tokens of `cache_write` that the cache keeps for an hour (absent: as `cache_write`)
#
# Prices age: check them with your provider before you rely on them. Higher prices for long requests, discounts for
# batches, and fees for tools are not in here. What a server reports as its cost counts, whatever stands here.
# Your own prices.yaml in the configuration folder wins over this file, and `price` of an agent over both.
#
# The figures are from LiteLLM {version} (model_prices_and_context_window_backup.json, MIT licence),
# taken over by docs/make_prices.py: change that, not this file.
"""


def prices_of(data: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """{provider: {name: {"input": ..., ...}}} in dollars per million tokens."""
    found: dict[str, dict[str, dict[str, float]]] = {provider: {} for provider in PROVIDERS}
    for key, entry in data.items():
        provider = entry.get("litellm_provider")
        if provider not in PROVIDERS or entry.get("mode") not in ("chat", "responses", "embedding"):
            continue
        there, here = PROVIDERS[provider]
        name = here + key.removeprefix(there)
        if LEFT_OUT.search(key) or (there and not key.startswith(there)):
            continue
        price = {ours: round(entry[theirs] * 1e6, 6) for ours, theirs in LITELLM_FIELDS.items() if entry.get(theirs)}
        if entry["mode"] == "embedding":
            price.setdefault("output", 0.0)  # there is none
        if {"input", "output"} <= price.keys():
            found[provider][name] = price
    for named in found.values():
        for name in [*named]:
            base = DATED.sub("", name)
            # The price of a version is that of its model, unless it is said.
            if base != name and named.get(base) == named[name]:
                del named[name]
    return found


def main(file: str, version: str) -> None:
    """Print the YAML file."""
    lines = [HEAD.format(version=version)]
    for provider, named in prices_of(json.loads(Path(file).read_text("utf-8"))).items():
        lines.append(f"# {provider.removesuffix('_chat')}")
        for name, price in sorted(named.items()):
            fields = ", ".join(f"{field}: {value:g}" for field, value in price.items())
            lines.append(f"{name}: {{{fields}}}")
        lines.append("")
    sys.stdout.write("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
