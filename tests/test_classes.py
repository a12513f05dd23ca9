"""Classes of `oomdoc.classes` are what those of the standard library are."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from oomdoc.classes import dataclass

Decorator = Callable[..., Any]


def made(decorated: Decorator, frozen: bool) -> tuple[type, type]:
    """A class and one that inherits from it."""

    @decorated(frozen=frozen)
    class Base:
        """One."""

        name: str
        many: list[int] = dataclasses.field(default_factory=list)
        note: str = dataclasses.field(default="-", compare=False, repr=False)

        def __post_init__(self) -> None:
            if self.name == "":
                raise ValueError("no name")

    @decorated(frozen=frozen)
    class Further(Base):
        """Two."""

        more: float = 1.5

    return Base, Further


@pytest.mark.parametrize("frozen", [True, False])
def test_they_are_made_shown_compared_and_replaced_as_those_of_the_library(frozen: bool) -> None:
    for ours, theirs in zip(made(dataclass, frozen), made(dataclasses.dataclass, frozen), strict=True):
        for given in ({"name": "a"}, {"name": "b", "many": [1], "note": "x"}):
            one, other = ours(**given), theirs(**given)
            assert repr(one) == repr(other)
            assert dataclasses.asdict(one) == dataclasses.asdict(other)
            assert [field.name for field in dataclasses.fields(one)] == [
                field.name for field in dataclasses.fields(other)
            ]
            assert repr(dataclasses.replace(one, name="c")) == repr(dataclasses.replace(other, name="c"))
            assert one == ours(**{**given, "note": "y"})
            assert one != ours(**{**given, "name": "z"})
            assert one != other
        assert ours("a").many is not ours("a").many
        with pytest.raises(ValueError, match="no name"):
            ours("")
        with pytest.raises(TypeError, match="name"):
            ours()
        with pytest.raises(TypeError, match="unknown"):
            ours(name="a", unknown=1)
    base, further = made(dataclass, frozen)
    assert further("a", more=2) != further("a", more=3)
    assert base("a") != further("a")


def test_a_frozen_one_refuses_and_has_a_hash() -> None:
    @dataclass(frozen=True)
    class Place:
        """A place."""

        source: str
        line: int = 1

    place = Place("a.log")
    with pytest.raises(dataclasses.FrozenInstanceError, match="line"):
        place.line = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="line"):
        del place.line  # type: ignore[misc]
    assert len({place, Place("a.log"), Place("b.log")}) == 2


def test_an_open_one_can_be_changed_and_has_no_hash() -> None:
    @dataclass
    class Count:
        """A count."""

        n: int = 0

    count = Count()
    count.n += 1
    assert count == Count(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(count)


@dataclass(frozen=True)
class Sent:
    """What goes to another process."""

    name: str
    at: float = 0.5


def test_they_come_back_from_a_pickle_before_any_is_made_anew() -> None:
    sent = Sent("a")
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_methods_of_the_class_itself_stay() -> None:
    @dataclass(frozen=True, eq=False)
    class Own:
        """With a text of its own."""

        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

    one = Own("a")
    assert repr(one) == "<a>"
    assert one != Own("a")
    assert len({one, Own("a")}) == 2
