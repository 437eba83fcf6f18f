"""New prices for the user's prices.yaml: from LiteLLM's list or a prices.yaml, a file or an address."""

from __future__ import annotations

import asyncio
import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from agenteval_tui.agents.http.client import HttpClient
from agenteval_tui.agents.http.connection_pool import Connections, without_credentials
from agenteval_tui.agents.http.errors import ErrorMapper, is_markup
from agenteval_tui.agents.key_destinations import is_secure_or_local
from agenteval_tui.agents.network_options import Timeouts
from agenteval_tui.agents.prices import FILE, UPDATED, Price, Prices, price_of, prices_in, read_both, split
from agenteval_tui.core.atomic_write import PRIVATE, locked, write_whole
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.private_files import make_missing, read_small_bytes
from agenteval_tui.suites.files import decode_utf8

LARGEST = 16 << 20
"""Bytes of a list of prices."""
_LARGEST_YAML = 1 << 20  # LiteLLM's list is JSON; YAML takes far longer to read
_TIMEOUTS = Timeouts(connect=10.0, first_token=20.0, silence=15.0)
_LONGEST_S = 60.0
_LONGEST_NAME = 300
# LiteLLM's words for what we have per million tokens.
LITELLM_FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
}
_EMBEDDING = "embedding"
_MODES = ("chat", "responses", "completion", _EMBEDDING)
# Providers whose own server knows the model without the provider's name, which LiteLLM writes before it.
_UNPREFIXED = ("gemini/", "mistral/", "deepseek/", "xai/")
_JSON_OBJECT = re.compile(r"\s*\{\s*[\"}]")


class NewPrices(Struct, frozen=True):
    """The prices of a list. `left_out` of its entries have no price by token (images, audio, prices by the hour)."""

    prices: dict[str, Price]
    left_out: int = 0


class PriceChange(Struct, frozen=True):
    """What an update changes for a model: the price that counted before (None: none
    was known) and the new one."""

    model: str
    before: Price | None
    after: Price


class Update(Struct, frozen=True):
    """What an update did to prices.yaml. `yours`: models of the list that are priced by hand, which stays so; `kept`:
    models of earlier updates that this list does not have."""

    path: Path
    changes: tuple[PriceChange, ...]
    unchanged: int
    yours: tuple[str, ...]
    kept: int
    left_out: int


def update_prices(config_dir: Path, source: str, *, dry_run: bool = False) -> Update:
    """Put the prices of a file or an address below those that the user wrote by hand into `prices.yaml`.

    The file is written whole or not at all. Raises `AgentevalError` where one of the two can't be read, and then
    nothing is written.
    """
    new = parse(read_source(source), source)
    path = config_dir / FILE
    try:
        if dry_run:
            return _merge(path, new)[0]
        make_missing(config_dir)
        with locked(config_dir, needed=False):
            update, text = _merge(path, new)
            # A link to a file elsewhere, as in a repository of settings, stays one.
            real = path.resolve()
            before = real.stat() if real.exists() else None
            write_whole(real, [text.encode()], mode=None if before else PRIVATE, like=before)
    except OSError as error:
        raise AgentevalError(f"the prices can't be written: {error.strerror or error}", where=str(path)) from None
    return update


def _merge(path: Path, new: NewPrices) -> tuple[Update, str]:
    written = ""
    own: dict[str, Price] = {}
    updated: dict[str, Price] = {}
    if path.exists():
        own, updated = read_both(path)
        written = split(decode_utf8(path.read_bytes(), path))[0]
    by_hand, all_prices = Prices(own), Prices(own, updated)
    changes: list[PriceChange] = []
    yours: list[str] = []
    unchanged = 0
    for name, price in new.prices.items():
        known_price = all_prices.find(name)
        hand = by_hand.find(name)
        if hand is not None and hand.source == "yours":
            yours.append(name)
        elif known_price is not None and known_price.price == price:
            unchanged += 1
        else:
            changes.append(PriceChange(name, None if known_price is None else known_price.price, price))
    merged = {**updated, **new.prices}
    unlisted = sum(name not in new.prices for name in updated)
    lines = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(_fields(merged[name]))}" for name in sorted(merged)
    )
    if written and not written.endswith("\n"):
        written += "\n"
    text = f"{written}{UPDATED}\n{{\n{lines}\n}}\n"
    return Update(path, tuple(changes), unchanged, tuple(yours), unlisted, new.left_out), text


def _fields(price: Price) -> dict[str, float]:
    return {name: value for name, value in asdict(price).items() if value is not None}


# Reading a list


def read_source(source: str) -> str:
    """The text of a file, or of what an https address (http on this machine) gives. Raises `AgentevalError`."""
    if "://" in source:
        return asyncio.run(_download(source))
    path = Path(source)
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise AgentevalError("this is a folder", where=source, fix="name a file in it")
    except OSError:
        pass  # what reads it says so
    data = read_small_bytes(path, "the list of prices", LARGEST)
    if data is None:
        raise AgentevalError("there is no such file", where=source, fix="check the path, or give an https:// address")
    return decode_utf8(data, path)


async def _download(address: str) -> str:
    place = without_credentials(address)
    if place != address.partition("?")[0].partition("#")[0]:
        raise AgentevalError(
            "prices are not fetched with a password", where=place, fix="download the file, and give its path"
        )
    if not is_secure_or_local(address):
        raise AgentevalError(
            "prices are fetched from https:// addresses only, and by http:// from this machine",
            where=place,
            fix="give an https:// address, or a file",
        )
    connections = Connections()
    try:
        server = ErrorMapper(place, option="SOURCE", usual="")
        client = HttpClient(
            connections.to(address).client, address, {"user-agent": "agenteval"}, server, _TIMEOUTS, LARGEST
        )
        async with asyncio.timeout(_LONGEST_S):
            text, failed = await client.request("GET", "")
    except TimeoutError:
        raise InfrastructureError(
            f"the list of prices did not come within {_LONGEST_S:.0f} s", where=place, fix="try again"
        ) from None
    finally:
        await connections.close()
    if failed is not None:
        fix = failed.error.fix
        if failed.error.kind in ("auth", "permission"):
            fix = "give an address that needs no key, or download the file and give that"
        raise InfrastructureError(failed.error.message, fix=fix)
    return text


def parse(text: str, place: str) -> NewPrices:
    """The prices of a list in LiteLLM's shape or in that of prices.yaml. Raises `AgentevalError` in one sentence."""
    text = text.removeprefix("\ufeff")
    if is_markup(text):
        raise AgentevalError(
            "this is a web page, not a list of prices", where=place, fix="give the address of the file itself (raw)"
        )
    if _JSON_OBJECT.match(text):
        new = _parse_json(text, place)
    elif len(text) > _LARGEST_YAML:
        raise AgentevalError(f"a YAML list of prices has at most {_LARGEST_YAML >> 20} MB", where=place)
    else:
        own, updated = split(text)
        new = NewPrices({**(prices_in(updated, place) if updated else {}), **prices_in(own, place)})
    for name in new.prices:
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise AgentevalError(
                f"{name[:60]!r} can't be the name of a model", where=place, fix="a name is one line of letters"
            )
    if not new.prices:
        fix = "give LiteLLM's model_prices_and_context_window.json, or a prices.yaml"
        raise AgentevalError("there is no price by token in this list", where=place, fix=fix)
    return new


def _parse_json(text: str, place: str) -> NewPrices:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        at = f"{place}:{error.lineno}:{error.colno}"
        raise AgentevalError("this JSON is incomplete", where=at, fix="download it again") from None
    except (ValueError, RecursionError):
        raise AgentevalError("this JSON can't be read", where=place, fix="download it again") from None
    if list(data) == ["models"] and isinstance(data["models"], dict):
        data = data["models"]
    litellm = any(
        isinstance(entry, dict) and ("litellm_provider" in entry or "mode" in entry) for entry in data.values()
    )
    prices: dict[str, Price] = {}
    left_out = 0
    for name, entry in data.items():
        if not isinstance(entry, dict):
            fix = "write `{input: ..., output: ...}`"
            raise AgentevalError(f"the price of {_quoted(name)} must be an object", where=place, fix=fix)
        try:
            price = litellm_price(entry) if litellm else price_of(entry)
        except AgentevalError as error:
            raise AgentevalError(f"{_quoted(name)}: {error.what}", where=place, fix=error.fix) from None
        if price is None:
            left_out += 1
            continue
        prefix = next((candidate for candidate in _UNPREFIXED if litellm and name.startswith(candidate)), "")
        if prefix:
            prices[name.removeprefix(prefix)] = price  # before the same name of a reseller
        else:
            prices.setdefault(name, price)
    return NewPrices(prices, left_out)


def litellm_price(entry: Mapping[str, Any]) -> Price | None:
    """The price in an entry of LiteLLM's list; None where it has none by token (a zero stands for "not by token").

    Raises `AgentevalError` where a price is not a number of dollars.
    """
    if entry.get("mode") not in _MODES:
        return None
    fields: dict[str, Any] = {}
    for ours, theirs in LITELLM_FIELDS.items():
        value = entry.get(theirs)
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            fields[ours] = round(value * 1e6, 6) if number else value
        except OverflowError:
            fields[ours] = float("inf")
    needed = ("input",) if entry["mode"] == _EMBEDDING else ("input", "output")
    if not all(fields.get(name) for name in needed):
        return None
    if entry["mode"] == _EMBEDDING:
        fields["output"] = 0.0  # there is none
    return price_of(fields)


def _quoted(name: str) -> str:
    return json.dumps(name[:_LONGEST_NAME], ensure_ascii=False)
