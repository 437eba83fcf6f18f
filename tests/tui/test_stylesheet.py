"""The stylesheet with a memory finds for each widget what Textual's own finds."""

from __future__ import annotations

import random

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widgets import Button, Input, Label, ListItem, ListView, TextArea

from agenteval_tui.tui.terminal import stylesheet
from agenteval_tui.tui.terminal.stylesheet import RememberingStylesheet
from agenteval_tui.tui.terminal.terminal_app import TerminalApp


class StyledApp(TerminalApp):
    CSS = """
    * { &:first-child { tint: red 10%; } }
    Vertical { height: auto; }
    .row { height: 3; width: 50%; }
    .row Input { width: 20; }
    .row > Label { width: 7; }
    .row.wide > Label, #left Label.plain { width: 11; }
    .row:focus-within Label { text-style: bold; }
    #left .row Input:focus { background: blue; }
    #left > .row Input { background: green; margin: 1; }
    #right Input:disabled { color: red; }
    Input:even { border: none; }
    #left TextArea:focus .text-area--cursor { color: yellow; }
    ListView > ListItem.-highlight Label { color: green; }
    .gone { display: none; }
    .slow Input { transition: offset 200ms; }
    """
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        for side in ("left", "right"):
            with Vertical(id=side):
                for number in range(2):
                    with Horizontal(classes="row", id=f"row-{side}-{number}"):
                        yield Label("label", classes="plain" if number else "")
                        yield Input(value="text", id=f"input-{side}-{number}", compact=bool(number))
                yield TextArea("text", id=f"area-{side}")
        yield ListView(ListItem(Label("one")), ListItem(Label("two")))


async def test_each_widget_has_the_styles_that_textual_finds() -> None:
    """Whatever has the focus, is disabled, comes, goes, or changes its classes."""
    assert stylesheet.IS_KNOWN
    app, made = StyledApp(), random.Random(4)
    async with app.run_test() as pilot:
        assert isinstance(app.stylesheet, RememberingStylesheet)
        for _ in range(15):
            await change(app, made)
            await pilot.pause()
            app.stylesheet.update(app.screen)  # Textual does not tell all that is in a widget of its focus
            for node in app.screen.walk_children(with_self=True):
                compare(app, node)
    places = app.stylesheet._found
    assert len(places) < 400, "most are found again"


async def change(app: StyledApp, made: random.Random) -> None:
    named = [one for one in app.screen.query("*") if one.id]
    one = made.choice(named)
    for name in made.sample(("row", "wide", "plain", "gone", "slow"), 2):
        one.toggle_class(name)
    made.choice(named).disabled = made.random() < 0.5
    app.set_focus(made.choice([None, *app.screen.query("Input, TextArea")]))
    if made.random() < 0.3:
        await app.screen.query_one("#left").mount(Horizontal(Label("new"), Button("new"), classes="row"))
    if made.random() < 0.3:
        await made.choice(list(app.screen.query("Button, #right > *"))).remove()
    if made.random() < 0.1:
        app.theme = made.choice(["textual-light", "nord"])


def compare(app: TerminalApp, node: DOMNode) -> None:
    found = node.styles.base.get_rules()
    components = {name: node.get_component_styles(name).base.get_rules() for name in node._get_component_classes()}
    Stylesheet.apply(plain(app), node)
    assert node.styles.base.get_rules() == found, node.css_path_nodes
    for name, rules in components.items():
        assert node.get_component_styles(name).base.get_rules() == rules, (node, name)
    # Nothing was remembered of what the plain one made.
    app.stylesheet.apply(node)


def plain(app: TerminalApp) -> Stylesheet:
    """One of Textual's own, with the same rules."""
    made = Stylesheet()
    made.__dict__.update({name: value for name, value in vars(app.stylesheet).items() if name in vars(made)})
    return made
