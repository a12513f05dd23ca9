"""The shipped list of models (`catalogue.toml`) and its lookup by whatever a command line calls a model.

A name found says which *architecture* it is. Dtype, quantisation, checkpoint size and positions of a fine-tune or a
quantised copy may differ from those of the entry; the format is read off the name that was asked for.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from oomdoc.physics.architecture import Model
from oomdoc.physics.config import read_config
from oomdoc.physics.names import family, format_of, pieces, plain, repository, sized, squeezed


@dataclass(frozen=True)
class Found:
    """A model by name. `how` is `name`, `alias`, `variant` (the same words apart from format and tuning), or `within`
    (the name of a model with its size stands inside a longer name: a fine-tune with a name of its own).

    `format` is the quantisation that the name tells, a key of `weights.FORMATS`; None where it tells none.
    """

    model: Model
    how: str
    format: str | None
    names: tuple[str, ...] = ()


@cache
def models() -> tuple[Model, ...]:
    """Every architecture of the catalogue, in the order of the file."""
    return tuple(model for model, _ in _entries())


@cache
def _entries() -> tuple[tuple[Model, tuple[str, ...]], ...]:
    raw = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    found = []
    for entry in raw["model"]:
        model = read_config(entry["config"], entry["name"])
        published = entry.get("params")
        params = model.params or published
        tower = max(0, published - model.parts.total) if published and model.parts else None
        found.append(
            (
                replace(
                    model,
                    params=params,
                    basis=model.basis if model.params else "published" if params else "unknown",
                    quantization=entry.get("format"),
                    checkpoint_bytes=entry.get("checkpoint_bytes"),
                    checkpoint_format=entry.get("format"),
                    tower_params=tower,
                    multimodal=entry.get("multimodal", False),
                    confirmed=entry["confirmed"],
                    source=entry["source"],
                    notes=entry.get("notes", ""),
                ),
                tuple(entry.get("aliases", ())),
            )
        )
    return tuple(found)


def find(name: str) -> Found | None:
    """The architecture behind a repository id, a folder, a snapshot in a cache, or a quantised copy's name.

    None where the catalogue has none, and where a shortened name could mean two different architectures.

    >>> find("/models/llama-3.3-70b-instruct-awq").model.name, find("llama-3.3-70b-awq").format
    ('meta-llama/Llama-3.3-70B-Instruct', 'awq')
    >>> find("models--Qwen--Qwen3-8B/snapshots/0a1b2c").how, find("gpt-9")
    ('name', None)
    """
    asked = repository(name)
    told = format_of(asked)
    for level, how in ((_exact, "name"), (plain, "variant"), (family, "variant"), (squeezed, "variant")):
        index = _index(level)
        hits = index.get(level(asked)) or index.get(level(asked.rpartition("/")[2])) or ()
        if hits:
            kinds = {(model.caches, model.layers, model.hidden_size) for model, _ in hits}
            if len(kinds) > 1:
                return None
            model, by_name = hits[0]
            return Found(model, how if how != "name" or by_name else "alias", told, _names()[model.name])
    inside = _within(asked)
    return Found(inside, "within", told, _names()[inside.name]) if inside else None


def with_positions(model: Model, name: str) -> Model:
    """The model with the positions of a copy that states others than its entry; as it is where none are recorded."""
    stated = _positions().get(plain(name))
    return replace(model, max_position_embeddings=stated, own_positions=True) if stated else model


@cache
def _names() -> dict[str, tuple[str, ...]]:
    return {model.name: names for model, names in _entries()}


@cache
def _positions() -> dict[str, int]:
    raw = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    return {plain(name): int(count) for name, count in raw["positions"].items()}


@cache
def _sizes() -> dict[str, float]:
    raw = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    return {squeezed(name): float(count) for name, count in raw["sizes"].items()}


def published_size(name: str) -> float | None:
    """Parameters of a model that is known by its published total alone; None for any other."""
    return _sizes().get(squeezed(repository(name)))


def _within(name: str) -> Model | None:
    """The model whose name with its size stands whole inside this one, the longest; None where two architectures do."""
    index = _index(squeezed)
    for text in pieces(name):
        hits = index.get(text, ())
        if hits and sized(text):
            kinds = {(model.caches, model.layers, model.hidden_size) for model, _ in hits}
            return hits[0][0] if len(kinds) == 1 else None
    return None


LEAST_LIKENESS = 0.72
"""Share of a name that a suggestion has in common with it, as difflib counts; below this, suggestions were noise."""


def nearest(name: str, count: int = 3) -> list[str]:
    """Names of the catalogue like this one, the likest first; empty where none is much like it."""
    known = {
        plain(known.rpartition("/")[2]): model.name for model, names in _entries() for known in (model.name, *names)
    }
    near = difflib.get_close_matches(plain(repository(name).rpartition("/")[2]), known, count * 3, LEAST_LIKENESS)
    return list(dict.fromkeys(known[each] for each in near))[:count]


@cache
def _index(level: object) -> dict[str, list[tuple[Model, bool]]]:
    assert callable(level)
    found: dict[str, list[tuple[Model, bool]]] = {}
    for model, aliases in _entries():
        for known in (model.name, *aliases):
            for text in {known, known.rpartition("/")[2]}:
                entry = (model, known == model.name)
                held = found.setdefault(level(text), [])
                if all(model is not other for other, _ in held):
                    held.append(entry)
    return found


def _exact(name: str) -> str:
    return name.lower()
