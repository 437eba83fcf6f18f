"""`agenteval prices`: what models cost, where the prices are from, and newer ones."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agenteval_tui.agents.price_update import update_prices
from agenteval_tui.agents.prices import KnownPrice, Price, Prices
from agenteval_tui.cli.invocation import Invocation, common_options, json_option, pass_invocation
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.formats.documents.listings import (
    ListedPrice,
    ListedPrices,
    PriceChanged,
    PricesUpdated,
)

_SOURCES = {"yours": "your prices.yaml", "updated": "an update", "bundled": "the bundled list"}
_SHOWN = 20
_UNIT = "US dollars per million tokens"
_HEAD = ("model", "input", "output", "cached", "cache write", "for 1 h", "from")


@click.group("prices", invoke_without_command=True)
@json_option
@common_options
@click.pass_context
def command(context: click.Context, as_json: bool) -> int:
    """List all models with a known price: US dollars per million tokens, and the list it comes from.

    Your own prices.yaml in the configuration folder comes first: what you wrote by hand, then what `agenteval prices
    update` wrote below it. The bundled list comes last. An agent's own `price` takes precedence over all of these.
    """
    if context.invoked_subcommand is not None:
        return 0
    prices = Prices.load(directories.config_dir()).every()
    _print(context.ensure_object(Invocation), [(price.name, price) for price in prices], as_json)
    return 0


@command.command("show")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@json_option
@common_options
@pass_invocation
def show(invocation: Invocation, models: tuple[str, ...], as_json: bool) -> int:
    """Show what each MODEL costs, the name it was found by, and the list it was found in.

    A name is looked up as it is, then without the provider before it (`openai/gpt-4o`), then without the date after it
    (`gpt-4o-2024-08-06`). Exit code 1 if a price is not known.
    """
    prices = Prices.load(directories.config_dir())
    rows = [(model, prices.find(model)) for model in models]
    _print(invocation, rows, as_json)
    return 1 if any(price is None for _, price in rows) else 0


@command.command("update")
@click.argument("source")
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@json_option
@common_options
@pass_invocation
def update(invocation: Invocation, source: str, dry_run: bool, as_json: bool) -> int:
    """Copy prices from SOURCE, a file or an https:// address, to prices.yaml in your configuration folder.

    SOURCE is LiteLLM's model_prices_and_context_window.json, or has the format of prices.yaml. What you wrote in
    prices.yaml by hand stays and takes precedence. Models from an earlier update that SOURCE does not have stay too. No
    key and nothing else from your environment is sent to the address.
    """
    done = update_prices(directories.config_dir(), source, dry_run=dry_run)
    if as_json:
        invocation.out.json(
            PricesUpdated(
                file=str(done.path),
                written=not dry_run,
                changes=tuple(
                    PriceChanged(model=change.model, before=change.before, after=change.after)
                    for change in done.changes
                ),
                unchanged=done.unchanged,
                yours=done.yours,
                kept=done.kept,
                left_out=done.left_out,
            )
        )
        return 0
    out = invocation.out
    changed = [change for change in done.changes if change.before is not None]
    if changed:
        out.line((_UNIT, "dim"))
    for change in changed[:_SHOWN]:
        assert change.before is not None
        out.line(f"{one_line(change.model, 60)}: ", (_words(change.before), "dim"), f" -> {_words(change.after)}")
    if len(changed) > _SHOWN:
        out.line((f"and {len(changed) - _SHOWN} more (--json lists all)", "dim"))
    out.line(
        f"{count(len(done.changes) - len(changed), 'new model')}, {count(len(changed), 'changed price')}, "
        f"{done.unchanged} unchanged"
    )
    if done.yours:
        names = abridged([one_line(name, 60) for name in done.yours], 3)
        out.line(f"kept your own price for {count(len(done.yours), 'model')}: {names}")
    if done.kept:
        out.line(f"kept {count(done.kept, 'model')} from earlier updates that this list does not have")
    if done.left_out:
        entries = "entry has" if done.left_out == 1 else "entries have"
        out.line(f"left out: {done.left_out} {entries} no price by token")
    out.line("would write " if dry_run else "wrote ", one_line(str(done.path)))
    return 0


def _print(invocation: Invocation, prices: Sequence[tuple[str, KnownPrice | None]], as_json: bool) -> None:
    if as_json:
        listed = tuple(
            ListedPrice(
                model=model,
                name="" if known_price is None else known_price.name,
                source=None if known_price is None else known_price.source,
                price=None if known_price is None else known_price.price,
            )
            for model, known_price in prices
        )
        invocation.out.json(ListedPrices(prices=listed))
        return
    rows = [_row(model, known_price) for model, known_price in prices]
    widths = [max(len(row[place]) for row in (_HEAD, *rows)) for place in range(len(_HEAD) - 1)]
    invocation.out.line(_UNIT)
    invocation.out.line((_cells(_HEAD, widths), "dim"))
    for row in rows:
        invocation.out.line(_cells(row, widths))


def _row(model: str, known_price: KnownPrice | None) -> tuple[str, ...]:
    name = one_line(model, 60)
    if known_price is None:
        return (name, "?", "?", "", "", "", "not in any list")
    price = known_price.price
    figures = (price.input, price.output, price.cached, price.cache_write, price.cache_write_1h)
    named = "" if known_price.name == model else f", as {one_line(known_price.name, 60)}"
    return (
        name,
        *("" if figure is None else f"{figure:g}" for figure in figures),
        _SOURCES[known_price.source] + named,
    )


def _cells(row: Sequence[str], widths: Sequence[int]) -> str:
    figures = (f"{cell:>{width}}" for cell, width in zip(row[1:-1], widths[1:], strict=True))
    return "  ".join((f"{row[0]:<{widths[0]}}", *figures, row[-1]))


def _words(price: Price) -> str:
    more = ((price.cached, "cached"), (price.cache_write, "cache write"), (price.cache_write_1h, "cache write 1h"))
    parts = [f"{price.input:g} in", f"{price.output:g} out", *(f"{value:g} {what}" for value, what in more if value)]
    return ", ".join(parts)
