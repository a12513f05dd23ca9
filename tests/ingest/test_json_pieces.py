"""JSON piece by piece: the same values as json's own, wherever chunks are cut, and an end for every broken text."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest.json_pieces import ITEM, BrokenError, Piece, pieces
from oomdoc.intake.scan import Chunk, chunks


def read(text: str, size: int = 1 << 20, whole: Callable[[tuple[str, ...]], bool] = lambda path: False) -> list[Piece]:
    return list(pieces(chunks(io.BytesIO(text.encode()), size), whole))


def leaves(value: Any, path: tuple[str, ...] = (), places: tuple[int, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key), places)]
    if isinstance(value, list):
        return [leaf for at, inner in enumerate(value) for leaf in leaves(inner, (*path, ITEM), (*places, at))]
    return [(path, value, places)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(JSON, st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_leaves_are_those_of_json(value: Any, size: int, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert [(piece.path, piece.value, piece.places) for piece in read(text, size)] == leaves(value)


@settings(max_examples=80, deadline=None)
@given(st.lists(JSON, max_size=5), st.integers(1, 40))
def test_whole_values_are_those_of_json(values: list[Any], size: int) -> None:
    text = json.dumps({"a": {"items": values}})
    found = read(text, size, lambda path: path == ("a", "items", ITEM))
    assert [(piece.value, piece.places) for piece in found] == [(value, (at,)) for at, value in enumerate(values)]


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsnl\\ \n\t', max_size=60), st.integers(1, 10))
def test_any_text_ends(text: str, size: int) -> None:
    try:
        read(text, size, lambda path: len(path) == 2)
    except BrokenError as problem:
        assert problem.line >= 1
        assert str(problem)


def test_lines_and_documents_behind_each_other() -> None:
    text = '{"a": 1,\n "b": [2,\n 3]}\n\n{"a": 4}'
    for size in (1, 5, 100):
        assert [(piece.line, piece.value) for piece in read(text, size)] == [(1, 1), (2, 2), (3, 3), (5, 4)]


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a"', '{"a": "x', "[1, 2] x]", "{1: 2}", "[" * 70])
def test_broken_texts_are_told(text: str) -> None:
    with pytest.raises(BrokenError):
        read(text)


def test_a_value_that_is_too_large_is_refused_and_not_held() -> None:
    def endless() -> Any:
        yield Chunk(b'{"a": ["', 1, True)
        for _ in range(200):
            yield Chunk(b"x" * (1 << 20), 1, False)

    with pytest.raises(BrokenError, match="more than"):
        list(pieces(endless(), lambda path: path == ("a",)))
    with pytest.raises(BrokenError, match="more than"):
        list(pieces(endless(), lambda path: False))
