"""Our quick dataclasses do what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import InitVar, field
from typing import Any

import pytest

from agenteval_tui.core.quick_dataclass import dataclass as quick


def _classes(dataclass: Callable[..., Any]) -> dict[str, Any]:
    @dataclass(frozen=True, slots=True)
    class Plain:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, repr=False, compare=False)
        e: int = field(default=5, init=False)
        f: tuple[int, ...] = field(default=(), kw_only=True)

    @dataclass(frozen=True, slots=True)
    class Checked:
        a: tuple[int, ...]

        def __post_init__(self) -> None:
            if not self.a:
                raise ValueError("empty")

    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    @dataclass(frozen=True, slots=True)
    class Equal:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=True, slots=True)
    class Given:
        a: InitVar[int]
        b: int = 1

    @dataclass(frozen=True, slots=True)
    class Child(Checked):
        b: int = 2

    class Loose(Checked):
        """It has a `__dict__`."""

    class LoosePlain(Plain):
        """It has a `__dict__`, and more fields than are set one by one."""

    @dataclass(frozen=True, slots=True)
    class Derived:
        a: int
        b: int = 2
        c: int = 3
        d: int = 4
        total: int = field(default=0, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.a + self.b)

    made = (Plain, Checked, Empty, Equal, Given, Child, Loose, LoosePlain, Derived)
    return {one.__name__: one for one in made}


OURS, THEIRS = _classes(quick), _classes(dataclasses.dataclass)


def _outcome(does: Callable[[Any], Any], classes: dict[str, Any]) -> Any:
    try:
        return repr(does(classes)).replace(f"{_classes.__qualname__}.<locals>.", "")
    except Exception as error:
        return type(error).__name__, str(error)


def _set(one: Any, name: str) -> Any:
    setattr(one, name, 3)
    return getattr(one, name)


@pytest.mark.parametrize(
    "does",
    [
        lambda of: of["Plain"](1, "x", f=(2,)),
        lambda of: of["Plain"](),
        lambda of: of["Plain"](1, "x", [1], 2, 3),
        lambda of: of["Plain"](1, unknown=2),
        lambda of: of["Plain"](1).c is not of["Plain"](1).c,
        lambda of: [one.name for one in dataclasses.fields(of["Plain"])],
        lambda of: dataclasses.asdict(of["Plain"](1)),
        lambda of: dataclasses.replace(of["Plain"](1), a=7, d=9).d,
        lambda of: dataclasses.replace(of["Plain"](1), e=7),
        lambda of: (of["Plain"](1, d=1) == of["Plain"](1, d=2), of["Plain"](1) == of["Plain"](2)),
        lambda of: (of["Plain"](1) == 1, of["Child"]((1,)) == of["Checked"]((1,))),
        lambda of: hash(of["Checked"]((1, 2))) == hash(((1, 2),)),
        lambda of: hash(of["Plain"](1)),
        lambda of: hash(of["Equal"](1)) == hash((1,)),
        lambda of: (of["Empty"](), hash(of["Empty"]()), of["Empty"]() == of["Empty"]()),
        lambda of: of["Equal"](1) == of["Equal"](2),
        lambda of: of["Checked"](()),
        lambda of: of["Given"](3),
        lambda of: of["Child"]((1,), 3),
        lambda of: _set(of["Plain"](1), "a"),
        lambda of: _set(of["Loose"]((1,)), "a"),
        lambda of: type(of["Plain"](1)) is of["Plain"],
        lambda of: (of["LoosePlain"](1, "x", [1]), type(of["LoosePlain"](1)) is of["LoosePlain"]),
        lambda of: _set(of["LoosePlain"](1), "a"),
        lambda of: (of["Derived"](1), _set(of["Derived"](1), "total")),
        lambda of: delattr(of["Plain"](1), "a"),
        lambda of: of["Plain"].__match_args__,
        lambda of: of["Plain"].__slots__,
        lambda of: copy.deepcopy(of["Plain"](1, "x", [1])),
        lambda of: copy.copy(of["Plain"](1, "x", [1])) == of["Plain"](1, "x", [1]),
        lambda of: [*inspect.signature(of["Plain"]).parameters],
        lambda of: of["Plain"].__dataclass_params__,
    ],
)
def test_each_thing_is_as_with_the_standard_library(does: Callable[[Any], Any]) -> None:
    assert _outcome(does, OURS) == _outcome(does, THEIRS)


def test_what_is_no_field() -> None:
    """In the standard library (Python 3.11) this is a TypeError about `super`."""
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'new'"):
        _set(OURS["Plain"](1), "new")
    assert _set(OURS["Loose"]((1,)), "new") == 3


@quick(frozen=True, slots=True)
class AtTheTop:
    """Found by its name, as pickles need."""

    a: int
    b: tuple[str, ...] = ()


@quick(frozen=True, slots=True)
class WideAtTheTop:
    """One with more fields than are set one by one."""

    a: int
    b: tuple[str, ...] = ()
    c: int = 3
    d: int = 4
    e: list[int] = field(default_factory=list)


@pytest.mark.parametrize("one", [AtTheTop(1, ("x",)), WideAtTheTop(1, ("x",), e=[2])])
def test_pickles(one: object) -> None:
    assert pickle.loads(pickle.dumps(one)) == one
