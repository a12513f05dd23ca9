"""Dataclasses whose methods nobody compiles before they are needed.

The one of the standard library writes six methods of a frozen class as text and compiles each when the module is imported: 0.7 ms a
class, a tenth of a small run. Here the class shares them with all others, and its `__init__` is compiled by its first call. To
type checkers and to readers it is the one of the standard library: fields, `replace` and `asdict` know it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(made: type | None = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
        """As `dataclasses.dataclass`, with the options that are used here; a method that the class has itself stays."""

        def of(made: type) -> type:
            own = set(vars(made))
            made = dataclasses.dataclass(init=False, repr=False, eq=False)(made)
            shared: dict[str, Any] = {"__init__": _first_init(made, frozen)}
            if repr:
                shared["__repr__"] = _repr
            if eq:
                shared |= _compared(made, hashed=frozen)
            if frozen:
                shared |= {"__setattr__": _refused, "__delattr__": _refused}
            for name, method in shared.items():
                if name not in own:
                    setattr(made, name, method)
            return made

        return of if made is None else of(made)


def _first_init(made: type, frozen: bool) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its place."""

    def first(self: Any, /, *args: Any, **named: Any) -> None:
        made.__init__ = compiled = _init(made, frozen)  # type: ignore[misc]
        compiled(self, *args, **named)

    return first


def _init(made: type, frozen: bool) -> Callable[..., None]:
    """The `__init__` of a class: of a frozen one, written past the `__setattr__` that refuses."""
    given, lines = ["self"], []
    known: dict[str, Any] = {"write": object.__setattr__, "missing": dataclasses.MISSING}
    for field in dataclasses.fields(made):
        name = value = field.name
        if field.default is not dataclasses.MISSING:
            known[f"default_{name}"] = field.default
            given.append(f"{name}=default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"] = field.default_factory
            given.append(f"{name}=missing")
            value = f"make_{name}() if {name} is missing else {name}"
        else:
            given.append(name)
        lines.append(f"write(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(given)}):\n " + "\n ".join(lines or ["pass"]), known)
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _compared(made: type, hashed: bool) -> dict[str, Any]:
    """Equal are those of one class whose fields are; the hash is that of the fields, or there is none."""
    names = [field.name for field in dataclasses.fields(made) if field.compare]
    values: Callable[[Any], Any] = (
        attrgetter(*names) if len(names) > 1 else lambda it: tuple(getattr(it, name) for name in names)
    )

    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hash_of if hashed else None}


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refused(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
