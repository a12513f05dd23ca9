"""A model that no list knows, estimated from its name: size, family and format, with wide bounds and said to be a guess.

The cache is that of the model of the catalogue that is nearest in family and size; `expect` halves and doubles what
follows from it. Without a size in the name nothing is computed, and the worksheet says which two numbers would do.
"""

from __future__ import annotations

import math
from dataclasses import replace

from oomdoc.physics.architecture import UNKNOWN, Cache, Model
from oomdoc.physics.catalogue import models, published_size
from oomdoc.physics.names import family, repository
from oomdoc.physics.weights import BY_NAME, named_size
from oomdoc.regexes import regex

_WORD = regex(r"[a-z]+")
_SEES = regex(r"(?:^|-)(vl|vlm|vision|ocr|omni|audio|asr|multimodal)(?:-|$)")
_LEAST_SIZE = 1e7
_MOST_SIZE = 5e12


def estimate(name: str, params: float | None = None) -> Model:
    """A model of this name: `params` where somebody states them, else its published total, else the size in the name.

    `confirmed` is `name`; the architecture is the nearest one of the catalogue, and `notes` says which.
    """
    asked = repository(name) or name
    published = published_size(asked)
    size = params or published or named_size(asked)
    if size is None or not _LEAST_SIZE <= size <= _MOST_SIZE:
        note = "the name tells no size: give --params (such as 8B), or --model-config config.json"
        return Model(
            name,
            "",
            4096,
            None,
            32,
            (Cache(UNKNOWN),),
            (0,) * 32,
            confirmed="name",
            source="the name alone",
            notes=note,
        )
    like = _nearest(asked, size)
    said = "--params" if params else "its published total" if published else "its name"
    return replace(
        like,
        name=name,
        parts=None,
        params=round(size),
        basis="given" if params else "published" if published else BY_NAME,
        quantization=None,
        kv_cache_scheme=None,
        checkpoint_bytes=None,
        checkpoint_format=None,
        tower_params=None,
        multimodal=bool(_SEES.search(family(asked))),
        max_position_embeddings=None,
        confirmed="name",
        source="the name alone",
        notes=f"not in the catalogue: {size / 1e9:.3g} billion parameters by {said}, a cache "
        f"like that of {like.name}; bounds are wide, and --model-config config.json replaces the guess",
    )


def _plain(model: Model) -> bool:
    """A text model of the last two years' form: keys and values shared by several heads."""
    return model.family in ("llama", "qwen2", "qwen3", "mistral") and not model.multimodal and _shares_heads(model)


def _shares_heads(model: Model) -> bool:
    return model.kv_heads is None or model.kv_heads < model.heads


def _nearest(name: str, size: float) -> Model:
    """The model nearest in size, of those that share a word of their family with the name where there are any."""
    words = set(_WORD.findall(family(name)))
    counted = [model for model in models() if model.params and not model.encoder]
    alike = [
        model
        for model in counted
        if _shares_heads(model) and words & {word for word in _WORD.findall(family(model.name)) if len(word) > 2}
    ]

    def distance(model: Model) -> tuple[float, str]:
        return abs(math.log(size / (model.params or 1))), model.name

    near = min(alike, key=distance, default=None)
    if near is None or distance(near)[0] > math.log(2):
        near = min((model for model in counted if _plain(model)), key=distance)
    return near
