"""`dataclass`, made quicker where it is `frozen=True, slots=True`, as nearly all of ours are.

The standard one compiles six functions a class, each from a text of its own, when its module is imported: a short verb
imports a hundred such classes, and that was a fifth of its time (Python 3.11). Here only `__init__` is compiled; the
others are the same few closures for every class. What a class does is the same: its fields, `replace`, `asdict`,
`match`, copies and pickles are those of the standard library, which also makes every other kind of dataclass.

They are also made in half the time. A frozen class must set each field by `object.__setattr__`, several times as slow
as an assignment. So an object with many fields is, while its `__init__` fills it, of a class with the same slots that
is not frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`."""
        if options == {"frozen": True, "slots": True}:
            return _frozen if cls is None else _frozen(cls)
        return dataclasses.dataclass(cls, **options)

    @dataclasses.dataclass(frozen=True, slots=True)
    class _Example:
        """What the standard library says of such a class."""

    _getstate, _setstate = _Example.__getstate__, _Example.__setstate__
    _ABSENT = object()  # of an argument whose default is made anew each time
    _FEW = 4  # fields up to which changing the class twice costs more than it spares

    def _frozen(cls):
        inherits = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
        if inherits or any("InitVar" in str(one) for one in vars(cls).get("__annotations__", {}).values()):
            return dataclasses.dataclass(cls, frozen=True, slots=True)
        # Without the functions that cost, and not frozen: that would be two more of them.
        made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=True)
        made.__dataclass_params__ = _Example.__dataclass_params__
        fields = dataclasses.fields(made)
        methods = {"__init__": _init(made, fields), **_methods(made, fields)}
        for name, method in methods.items():
            method.__qualname__ = f"{made.__qualname__}.{name}"
        for name, method in {**methods, "__getstate__": _getstate, "__setstate__": _setstate}.items():
            # `__hash__` is None, not absent, where a class has an `__eq__` of its own.
            if vars(made).get(name) is None:
                setattr(made, name, method)
        return made

    def _init(cls, fields):
        names = {"_set": object.__setattr__, "_absent": _ABSENT}
        taken, by_name, body = ["self"], [], []
        for number, one in enumerate(fields):
            value = one.name
            if one.default is not dataclasses.MISSING:
                names[f"_default{number}"] = one.default
                default = f"=_default{number}"
            elif one.default_factory is not dataclasses.MISSING:
                names[f"_make{number}"] = one.default_factory
                default = "=_absent"
                value = f"_make{number}() if {one.name} is _absent else {one.name}" if one.init else f"_make{number}()"
            else:
                default = ""
            if one.init:
                (by_name if one.kw_only else taken).append(one.name + default)
            if one.init or one.default_factory is not dataclasses.MISSING:
                body.append((one.name, value))
            elif default:
                body.append((one.name, f"_default{number}"))
        set_all = [f"_set(self, {name!r}, {value})" for name, value in body]
        if len(fields) > _FEW and cls.__bases__ == (object,):
            names |= {"_its_class": cls, "_unfrozen": type(cls.__name__, (), {"__slots__": cls.__slots__})}
            lines = [
                " if self.__class__ is _its_class:",
                "  _set(self, '__class__', _unfrozen)",
                *[f"  self.{name} = {value}" for name, value in body],
                "  self.__class__ = _its_class",
                " else:",  # a class made of this one, which may have more than the fields
                *[f"  {one}" for one in set_all],
            ]
        else:
            lines = [f" {one}" for one in set_all]
        if hasattr(cls, "__post_init__"):
            lines.append(" self.__post_init__()")
        signature = ", ".join([*taken, "*", *by_name] if by_name else taken)
        exec("\n".join([f"def __init__({signature}):", *lines, " return None"]), names)  # noqa: S102 - a text of ours
        return names["__init__"]

    def _methods(cls, fields):
        names = {one.name for one in fields}
        shown = [one.name for one in fields if one.repr]
        compared = _getter([one.name for one in fields if one.compare])
        hashed = _getter([one.name for one in fields if (one.compare if one.hash is None else one.hash)])

        @recursive_repr()
        def __repr__(self):  # noqa: N807
            return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

        def __eq__(self, other):  # noqa: N807
            return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self):  # noqa: N807
            return hash(hashed(self))

        def __setattr__(self, name, value):  # noqa: N807
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self, name):  # noqa: N807
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        return {one.__name__: one for one in (__repr__, __eq__, __hash__, __setattr__, __delattr__)}

    def _getter(names):
        """The values of these fields as a tuple, as the standard library compares and hashes them."""
        if len(names) > 1:
            return attrgetter(*names)
        return (lambda one: (getattr(one, names[0]),)) if names else (lambda _: ())
