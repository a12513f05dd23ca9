"""Records behave as the standard library's data classes: the same class declared both ways."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from oomdoc import records

MAKERS = [records.dataclass, dataclasses.dataclass]


def frozen(maker: Callable[..., Any]) -> Any:
    @maker(frozen=True)
    class Base:
        name: str
        size: int = 3

        def __post_init__(self) -> None:
            made.append(self.name)

    @maker(frozen=True)
    class Pool(Base):
        blocks: list[int] = field(default_factory=list, compare=False)
        note: str = field(default="quiet", repr=False)

    made: list[str] = []
    return Pool, made


def open_to_change(maker: Callable[..., Any]) -> Any:
    @maker
    class Count:
        seen: int = 0
        names: dict[str, int] = field(default_factory=dict)

    return Count


@dataclasses.dataclass(frozen=True)
class Standard:
    left: int
    right: str = "r"


@records.dataclass(frozen=True)
class Ours:
    left: int
    right: str = "r"


@pytest.mark.parametrize("maker", MAKERS)
def test_a_frozen_record(maker: Callable[..., Any]) -> None:
    Pool, made = frozen(maker)  # noqa: N806
    one, other = Pool("a", blocks=[1]), Pool("a", 3, [2])
    assert made == ["a", "a"]
    assert one == other and hash(one) == hash(other) == hash(("a", 3, "quiet"))
    assert one != Pool("b") and one != ("a", 3, "quiet")
    assert repr(one).endswith("Pool(name='a', size=3, blocks=[1])")
    assert Pool("a").blocks == [] and Pool("a").blocks is not Pool("a").blocks
    assert dataclasses.replace(one, size=4) == Pool("a", 4)
    assert [each.name for each in dataclasses.fields(Pool)] == ["name", "size", "blocks", "note"]
    assert dataclasses.asdict(one) == {"name": "a", "size": 3, "blocks": [1], "note": "quiet"}
    for name in ("size", "unheard_of"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, 5)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(one, name)
    for wrong in ({}, {"name": "a", "colour": "red"}):
        with pytest.raises(TypeError):
            Pool(**wrong)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_record_that_changes(maker: Callable[..., Any]) -> None:
    Count = open_to_change(maker)  # noqa: N806
    count = Count()
    count.seen += 1
    assert count == Count(1) and Count() != Count(1) and count.names == {}
    with pytest.raises(TypeError):
        hash(count)


def test_before_the_first_object_a_class_is_known_as_one_of_records() -> None:
    Pool, _ = frozen(records.dataclass)  # noqa: N806
    assert dataclasses.is_dataclass(Pool) and Pool.__match_args__ == ("name", "size", "blocks", "note")


def test_copies_are_equal_and_of_the_same_hash() -> None:
    one = Ours(1)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one and hash(again) == hash(one) == hash(Standard(1))
    assert repr(one) == "Ours(left=1, right='r')"


def test_what_is_written_in_the_class_stays() -> None:
    @records.dataclass(frozen=True, eq=False, repr=False)
    class Kind:
        name: str

        def __repr__(self) -> str:
            return "by hand"

    one = Kind("a")
    assert repr(one) == "by hand" and one != Kind("a") and hash(one) != hash(Kind("a")) and one.name == "a"
