"""The shipped list of models (`catalogue.toml`) and its lookup by whatever a command line calls a model.

A name found says which *architecture* it is. Dtype, quantisation, checkpoint size and positions of a fine-tune or a
quantised copy may differ from those of the entry; the format is read off the name that was asked for.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from oomdoc.physics.architecture import Model
from oomdoc.physics.config import read_config
from oomdoc.physics.interval import Interval
from oomdoc.physics.names import family, format_of, pieces, plain, repository, sized, squeezed
from oomdoc.units import GIB


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


@dataclass(frozen=True)
class _Entry:
    """An entry of the file as text: reading all of them as models costs more than most bundles do."""

    name: str
    aliases: tuple[str, ...]
    text: str


@cache
def models() -> tuple[Model, ...]:
    """Every architecture of the catalogue, in the order of the file."""
    return tuple(map(_model, _entries()))


def loading(weights: Interval) -> Iterator[Model]:
    """The models whose published checkpoint loads so many bytes on one device, in the order of the file.

    What each loads is written down (`weights.json`, made by `docs/generate.py`): to read all models takes 60 ms.
    """
    told = json.loads(Path(__file__).with_name("weights.json").read_text(encoding="utf-8"))
    return (
        _model(entry) for entry in _entries() if entry.name in told and weights.overlaps(Interval(*told[entry.name]))
    )


@cache
def _entries() -> tuple[_Entry, ...]:
    return tuple(
        _Entry(_quoted("name", text)[0], tuple(_quoted("aliases", text)), text)
        for text in _text().split("[[model]]")[1:]
    )


@cache
def _text() -> str:
    return Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")


def _quoted(key: str, text: str) -> list[str]:
    """The texts of a key that stands on one line, as names and aliases do (held by a test)."""
    line = re.search(rf"^{key} = (.*)$", text, re.M)
    return re.findall(r'"([^"]*)"', line[1]) if line else []


@cache
def _model(entry: _Entry) -> Model:
    raw = tomli.loads(entry.text)
    model = read_config(raw["config"], raw["name"])
    published = raw.get("params")
    params = model.params or published
    tower = max(0, published - model.parts.total) if published and model.parts else None
    return replace(
        model,
        params=params,
        basis=model.basis if model.params else "published" if params else "unknown",
        quantization=raw.get("format"),
        checkpoint_bytes=raw.get("checkpoint_bytes"),
        checkpoint_format=raw.get("format"),
        tower_params=tower,
        multimodal=raw.get("multimodal", False),
        confirmed=raw["confirmed"],
        source=raw["source"],
        notes=raw.get("notes", ""),
    )


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
            model = _one_of(hits)
            if model is None:
                return None
            entry, by_name = hits[0]
            return Found(model, how if how != "name" or by_name else "alias", told, entry.aliases)
    return _within(asked, told)


def _one_of(hits: Sequence[tuple[_Entry, bool]]) -> Model | None:
    """The model of the first of these entries; None where they are of different architectures."""
    every = [_model(entry) for entry, _ in hits]
    return every[0] if len({(model.caches, model.layers, model.hidden_size) for model in every}) == 1 else None


def with_positions(model: Model, name: str) -> Model:
    """The model with the positions of a copy that states others than its entry; as it is where none are recorded."""
    stated = _positions().get(plain(name))
    return replace(model, max_position_embeddings=stated, own_positions=True) if stated else model


def with_files(model: Model, name: str, revision: str = "") -> Model:
    """The model with the files and the KV dtype of the very copy of this name; as it is where nobody listed them.

    `revision` is the commit that was asked for, if any: it decides where a name has had several contents.
    """
    listed = _copies().get(name.lower())
    if listed is None:
        return model
    pinned = (each for commit, each in listed.get("revisions", {}).items() if _same_commit(commit, revision))
    listed = next(pinned, listed)
    if "gib" not in listed:  # some commits of it are known, and none was asked for
        return model
    sizes, kv = tuple(round(size * GIB) for size in listed["gib"]), listed.get("kv")
    return replace(model, copy_bytes=sizes, kv_cache_scheme=kv or model.kv_cache_scheme)


def _same_commit(known: str, asked: str) -> bool:
    """Whether a commit that was asked for, whole or cut short, is one that is known by its first digits."""
    text = asked.lower()
    return len(text) >= _FEWEST_DIGITS and (text.startswith(known) or known.startswith(text))


_FEWEST_DIGITS = 7


def states_positions(model: Model, name: str) -> bool:
    """Whether the positions of a model are those of the checkpoint of this name, not of a relative of the same architecture."""
    if model.confirmed == "config" or model.own_positions:
        return True
    return model.confirmed != "name" and plain(repository(name)) == plain(model.name)


@cache
def _head() -> dict[str, Any]:
    return tomli.loads(_text().partition("[[model]]")[0])


@cache
def _positions() -> dict[str, int]:
    return {plain(name): int(count) for name, count in _head()["positions"].items()}


@cache
def _copies() -> dict[str, dict[str, Any]]:
    return {name.lower(): listed for name, listed in _head()["copies"].items()}


@cache
def _sizes() -> dict[str, float]:
    return {squeezed(name): float(count) for name, count in _head()["sizes"].items()}


def published_size(name: str) -> float | None:
    """Parameters of a model that is known by its published total alone; None for any other."""
    return _sizes().get(squeezed(repository(name)))


def _within(name: str, told: str | None) -> Found | None:
    """The model whose name with its size stands whole inside this one, the longest; None where two architectures do."""
    index = _index(squeezed)
    for text in pieces(name):
        hits = index.get(text, ())
        if hits and sized(text):
            model = _one_of(hits)
            return Found(model, "within", told, hits[0][0].aliases) if model else None
    return None


LEAST_LIKENESS = 0.72
"""Share of a name that a suggestion has in common with it, as difflib counts; below this, suggestions were noise."""
ALIKE = 0.05
"""Less likeness than the best suggestion's that another may have to stand beside it."""


def nearest(name: str, count: int = 3) -> list[str]:
    """Names of the catalogue like this one, the likest first; empty where none is much like it.

    Beside a name that is much more like it, others of its family are noise.
    """
    known = {
        plain(known.rpartition("/")[2]): entry.name for entry in _entries() for known in (entry.name, *entry.aliases)
    }
    asked = plain(repository(name).rpartition("/")[2])
    near = difflib.get_close_matches(asked, known, count * 3, LEAST_LIKENESS)
    like = [difflib.SequenceMatcher(None, each, asked).ratio() for each in near]
    best = [each for each, ratio in zip(near, like, strict=True) if ratio >= like[0] - ALIKE]
    return list(dict.fromkeys(known[each] for each in best))[:count]


@cache
def _index(level: Callable[[str], str]) -> dict[str, list[tuple[_Entry, bool]]]:
    """Entries by one form of their names and aliases, with the owner and without; True = by its name."""
    found: dict[str, list[tuple[_Entry, bool]]] = {}
    for entry in _entries():
        for known in (entry.name, *entry.aliases):
            for text in {known, known.rpartition("/")[2]}:
                held = found.setdefault(level(text), [])
                if all(entry is not other for other, _ in held):
                    held.append((entry, known == entry.name))
    return found


def _exact(name: str) -> str:
    return name.lower()
