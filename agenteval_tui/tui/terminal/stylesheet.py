"""A stylesheet that finds the styles of a widget once for all widgets that look the same.

Textual looks through all rules for each widget that is mounted, whenever a screen is shown again or a pane is disabled,
and for each of a widget's component classes (a text area has a dozen). That is a third of the time until a screen with
many fields is shown. Which rules hold depends on the types, ids, classes and pseudo-classes of a widget and of what it
is in. So what was found for one path of these holds for all, until the stylesheet is read anew. The styles of component
classes are made when they are asked for.

With a Textual whose private parts are not known (`textual_support.py`) Textual's own stylesheet is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

from textual.css.model import CombinatorType, RuleSet, Selector, SelectorType
from textual.css.styles import RenderStyles, RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from agenteval_tui.tui.terminal.textual_support import is_known

STANDS_ON: dict[str, str] = {
    "textual.css.match:_check_selectors": "2dbc95b0ca2b",
    "textual.css.model:RuleSet._post_parse": "1ff0b6bb5f54",
    "textual.css.model:Selector.check": "d016c4a383cb",
    "textual.css.model:_check_class": "1c9935747690",
    "textual.css.model:_check_id": "c5332560ce1a",
    "textual.css.model:_check_type": "8217a4325c9e",
    "textual.css.model:_check_universal": "5122b205eaab",
    "textual.css.styles:Styles.clear_rule": "1f364accab34",
    "textual.css.styles:Styles.refresh": "3a1044b8cab3",
    "textual.css.styles:Styles.set_rule": "61760a8fcaf2",
    "textual.css.stylesheet:Stylesheet._process_component_classes": "852b5e4b93c6",
    "textual.css.stylesheet:Stylesheet.apply": "1faf3687bbba",
    "textual.css.stylesheet:Stylesheet.parse": "21678f7a02b1",
    "textual.css.stylesheet:Stylesheet.replace_rules": "2db1c7976ac6",
    "textual.css.stylesheet:Stylesheet.reparse": "dd193eb05f8b",
    "textual.css.stylesheet:Stylesheet.update_nodes": "386367db2e9d",
    "textual.dom:DOMNode._get_component_classes": "c664337c28f0",
    "textual.dom:DOMNode.get_component_styles": "b92de91553e1",
    "textual.dom:DOMNode.has_pseudo_classes": "087f5fe7f240",
}
"""Textual's functions that this module replaces or relies on, with the first digits of the SHA-256 of their source."""

IS_KNOWN = is_known(STANDS_ON)
MOST = 4_000
"""The most places to remember. A place is a widget with all its ancestors; a screen of 200 widgets has a hundred."""

_Simple = tuple[SelectorType, str]
_NAMED = frozenset({SelectorType.TYPE, SelectorType.CLASS, SelectorType.ID})
_ANY: _Simple = (SelectorType.UNIVERSAL, "*")
_SYSTEM = "-textual-system"  # a widget of this class is not `*`
_ORDER = frozenset({"first-of-type", "last-of-type", "first-child", "last-child", "empty"})


class _Kind:
    """The properties that style rules use of a kind of widget: widgets of one type with the same classes, and the same
    id if rules name it.

    Compared by identity, because each kind has one object.
    """

    __slots__ = ("has_focus_within", "has_hover", "has_odd_or_even", "has_order", "outer", "states", "states_outside")

    def __init__(
        self, states: set[str], outer: frozenset[_Simple], states_outside: set[str], of_rules: set[str]
    ) -> None:
        """`states`: the pseudo-classes that rules may use of such a widget; `outer` and `states_outside`: the selectors
        and pseudo-classes that rules use of it to style its descendants; `of_rules`: the pseudo-classes in all rules
        that may match it."""
        self.states = tuple(sorted(states))
        self.outer = outer
        self.states_outside = tuple(sorted(states_outside))
        self.has_hover = "hover" in of_rules
        self.has_focus_within = "focus-within" in of_rules
        self.has_order = not of_rules.isdisjoint(_ORDER)
        self.has_odd_or_even = "odd" in of_rules or "even" in of_rules


class RememberingStylesheet(Stylesheet):
    """Textual's stylesheet, with a memory."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._read: list[RuleSet] | None = None  # the rules that what follows was made of
        self._asked: dict[_Simple, set[str]] = {}  # by selector the pseudo-classes that are asked of the same widget
        self._asked_outside: dict[_Simple, set[str]] = {}  # those asked of what a widget is in
        self._ids: set[str] = set()
        self._kinds: dict[tuple[type, str | None, frozenset[str]], _Kind] = {}
        self._numbers: dict[tuple[int, frozenset[_Simple], tuple[bool, ...]], int] = {}
        self._found: dict[tuple[int, _Kind, tuple[bool, ...]], RulesMap] = {}
        self._places: dict[DOMNode, int] | None = None  # while several widgets are updated

    @classmethod
    def of(cls, stylesheet: Stylesheet) -> RememberingStylesheet:
        """One with all that `stylesheet` has read."""
        made = cls()
        vars(made).update(vars(stylesheet))
        return made

    def apply(
        self, node: DOMNode, *, animate: bool = False, cache: dict[tuple[Any, ...], RulesMap] | None = None
    ) -> None:
        rules = self.rules
        if rules is not self._read or len(self._found) > MOST:
            self._begin(rules)
        around, kind = node._parent, self._kind(node)
        outside = self._place(around, {} if self._places is None else self._places) if _is_node(around) else 0
        key = outside, kind, _states(node, kind.states)
        found = self._found.get(key)
        if found is None or (animate and "transitions" in found):
            super().apply(node, animate=animate)
            rules_of_node = node.styles.base.get_rules()
            if not animate or "transitions" not in rules_of_node:  # else some are on their way
                self._found[key] = rules_of_node
            return
        node._has_hover_style = kind.has_hover
        node._has_focus_within = kind.has_focus_within
        node._has_order_style = kind.has_order
        node._has_odd_or_even = kind.has_odd_or_even
        base = node.styles.base
        known = base._rules
        if not known and not node._is_mounted:
            known.update(found)
            base._updates += 1
            node._nodes.updated()
        elif known != found:
            for name in known.keys() | found.keys():
                value = found.get(name)
                if known.get(name) != value:
                    setattr(base, name, value)
        node.notify_style_update()
        self._process_component_classes(node)

    def update_nodes(self, nodes: Iterable[DOMNode], animate: bool = False) -> None:
        # Nothing changes while they are updated: where a widget is, is found once for all that is in it.
        self._places = {}
        try:
            super().update_nodes(nodes, animate)
        finally:
            self._places = None

    def _place(self, node: DOMNode, known: dict[DOMNode, int]) -> int:
        """The number of what rules may ask of a widget and of all that it is in, for the sake of what is in it.
        `known`: those of other widgets."""
        found = known.get(node)
        if found is None:
            around, kind = node._parent, self._kind(node)
            outside = self._place(around, known) if _is_node(around) else 0
            key = outside, kind.outer, _states(node, kind.states_outside)
            found = known[node] = self._numbers.setdefault(key, len(self._numbers) + 1)
        return found

    def _begin(self, rules: list[RuleSet]) -> None:
        self._read = rules
        self._asked, self._asked_outside = {}, {}
        self._kinds, self._numbers, self._found = {}, {}, {}
        if self._places:
            self._places.clear()
        for rule in rules:
            for one in rule.selector_set:
                inner = len(one.selectors) - 1
                while one.selectors[inner].combinator is CombinatorType.SAME and inner:
                    inner -= 1
                for place, selector in enumerate(one.selectors):
                    asked = self._asked if place >= inner else self._asked_outside
                    asked.setdefault(_simple(selector), set()).update(selector.pseudo_classes)
        self._ids = {name for kind, name in self._asked.keys() | self._asked_outside.keys() if kind is SelectorType.ID}

    def _kind(self, node: DOMNode) -> _Kind:
        key = type(node), node._id if node._id in self._ids else None, frozenset(node._classes)
        kind = self._kinds.get(key)
        if kind is None:
            simple: set[_Simple] = {*((SelectorType.TYPE, one) for one in node._css_type_names)}
            simple.update((SelectorType.CLASS, one) for one in node._classes)
            if _SYSTEM not in node._classes:
                simple.add(_ANY)
            if node._id is not None:
                simple.add((SelectorType.ID, node._id))
            outer = frozenset(simple & self._asked_outside.keys())
            rules_map = self.rules_map
            names = rules_map.keys() & node._selector_names
            kind = self._kinds[key] = _Kind(
                set().union(*(self._asked.get(one, ()) for one in simple)),
                outer,
                set().union(*(self._asked_outside[one] for one in outer)),
                {one for selector in names for rule in rules_map[selector] for one in rule.pseudo_classes},
            )
        return kind

    def _process_component_classes(self, node: DOMNode) -> None:
        names = node._get_component_classes()
        if not names:
            return
        before = dict(node._component_styles)
        made = node._component_styles = _ComponentStyles(self, node, names)
        # Only those that were used can be seen.
        if any(name not in names or made[name] != styles for name, styles in before.items()):
            node.refresh()


def _is_node(around: object) -> TypeGuard[DOMNode]:
    return isinstance(around, DOMNode)


def _states(node: DOMNode, asked: tuple[str, ...]) -> tuple[bool, ...]:
    """Which of these pseudo-classes it has."""
    has: Mapping[str, Callable[[Any], bool]] = node._PSEUDO_CLASSES
    return tuple([name in has and has[name](node) for name in asked])


def _simple(selector: Selector) -> _Simple:
    """The part of a selector that asks for one thing; what any widget may be asked for has no name of its own."""
    return (selector.type, selector.name) if selector.type in _NAMED else _ANY


class _ComponentStyles(dict[str, RenderStyles]):
    """The styles of a widget's component classes, by class. Each is made when it is asked for."""

    def __init__(self, stylesheet: Stylesheet, node: DOMNode, names: frozenset[str]) -> None:
        super().__init__()
        self._stylesheet = stylesheet
        self._node = node
        self._names = names

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __missing__(self, name: str) -> RenderStyles:
        if name not in self._names:
            raise KeyError(name)
        virtual = DOMNode(classes=name)
        virtual._attach(self._node)
        self._stylesheet.apply(virtual)
        self[name] = virtual.styles
        return virtual.styles


def remembering(stylesheet: Stylesheet) -> Stylesheet:
    """The stylesheet to use in the place of Textual's."""
    return RememberingStylesheet.of(stylesheet) if IS_KNOWN else stylesheet
