"""The shipped list of models (`catalogue.toml`) and its lookup by whatever a command line calls a model.

A name found says which *architecture* it is. Dtype, quantisation, checkpoint size and positions of a fine-tune or a
quantised copy may differ from those of the entry; the format is read off the name that was asked for.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from oomdoc.physics.architecture import Model
from oomdoc.physics.config import read_config


@dataclass(frozen=True)
class Found:
    """A model by name. `how` is `name`, `alias`, or `variant` (the same words apart from format and tuning).

    `format` is the quantisation that the name tells, a key of `weights.FORMATS`; None where it tells none.
    """

    model: Model
    how: str
    format: str | None


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
        params = model.params or entry.get("params")
        found.append(
            (
                replace(
                    model,
                    params=params,
                    basis=model.basis if model.params else "published" if params else "unknown",
                    quantization=entry.get("format"),
                    checkpoint_bytes=entry.get("checkpoint_bytes"),
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
    for level, how in ((_exact, "name"), (_plain, "variant"), (_family, "variant")):
        index = _index(level)
        hits = index.get(level(asked)) or index.get(level(asked.rpartition("/")[2])) or ()
        if hits:
            kinds = {(model.caches, model.layers, model.hidden_size) for model, _ in hits}
            if len(kinds) > 1:
                return None
            model, by_name = hits[0]
            return Found(model, how if how != "name" or by_name else "alias", told)
    return None


def nearest(name: str, count: int = 3) -> list[str]:
    """Names of the catalogue like this one, the likest first."""
    known = {
        _plain(known.rpartition("/")[2]): model.name for model, names in _entries() for known in (model.name, *names)
    }
    near = difflib.get_close_matches(_plain(repository(name).rpartition("/")[2]), known, count * 3, 0.4)
    return list(dict.fromkeys(known[each] for each in near))[:count]


def repository(name: str) -> str:
    """`org/name` of a repository id, a folder, a cached snapshot or a file of weights.

    >>> repository("/data/cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c/")
    'Qwen/Qwen3-8B'
    >>> repository("s3://bucket/models/Qwen3-8B"), repository("Qwen/Qwen3-8B@main")
    ('models/Qwen3-8B', 'Qwen/Qwen3-8B')
    """
    parts = [part for part in re.split(r"[/\\]", name.strip().strip("'\"")) if part not in ("", ".", "..")]
    for part in reversed(parts):
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/", 1)
    while len(parts) > 1 and (parts[-1] in _PLACES or re.fullmatch(r"[0-9a-f]{6,40}|v?\d+", parts[-1])):
        parts.pop()
    return re.sub(r"@\w+$|\.(gguf|safetensors)$", "", "/".join(parts[-2:]), flags=re.I)


_PLACES = {"snapshots", "weights", "model", "checkpoint", "hf", "main", "latest", "original"}

# Words of a name that tell the weights' format, longest first where one holds another.
_FORMATS = (
    (r"nvfp4|w4a4|fp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"awq", "awq"),
    (r"gptq|marlin", "gptq"),
    (r"w4a16", "w4a16"),
    (r"int4|4bit|bnb|nf4|bitsandbytes", "bitsandbytes"),
    (r"fp8|w8a8fp8", "fp8"),
    (r"int8|w8a8|w8a16|8bit", "int8"),
    (r"q4_k_m|q4km|q4_k_s|q4_0", "gguf-q4"),
    (r"q5_k_m|q5km|q5_0", "gguf-q5"),
    (r"q6_k|q6k", "gguf-q6"),
    (r"q8_0|q8", "gguf-q8"),
)


def format_of(name: str) -> str | None:
    """The weights' format that a name tells, a key of `weights.FORMATS`; None where it tells none.

    >>> format_of("Qwen3-32B-AWQ"), format_of("Llama-3.1-8B-Instruct-Q4_K_M"), format_of("Qwen3-32B")
    ('awq', 'gguf-q4', None)
    """
    text = name.lower().replace(".", "_")
    mxfp4 = "mxfp4" in text
    for words, known in _FORMATS:
        if re.search(rf"(?<![a-z0-9])(?:{words})(?![a-z0-9])", text) and not (known == "nvfp4" and mxfp4):
            return known
    return None


def _exact(name: str) -> str:
    return name.lower()


_FORMAT_WORDS = re.compile(
    r"(?<![a-z0-9])(nvfp4|mxfp4|fp4|w4a4|w4a16|w8a8|w8a16|awq|gptq|marlin|int4|int8|4bit|8bit|bnb|nf4|bitsandbytes|fp8|bf16|fp16|"
    r"dynamic|static|kv|gguf|q\d(-k)?(-[msl01])?|g\d+|gs\d+|group\d+|sym|quantized|hf|block|unsloth|per-tensor)(?![a-z0-9])"
)
_TUNING_WORDS = re.compile(
    r"(?<![a-z0-9])(instruct|chat|it|pt|base|thinking|dpo|sft|uncensored|abliterated|fp32|v\d+-\d+|\d{4}(-v\d+-\d+)?)(?![a-z0-9])"
)


def _plain(name: str) -> str:
    """Lower case, every separator a dash, without the words of a format; `meta-llama-3` is `llama-3`."""
    text = re.sub(r"[\s._]+", "-", name.rpartition("/")[2].lower())
    return _tidy(_FORMAT_WORDS.sub("", text)).removeprefix("meta-")


def _family(name: str) -> str:
    """The same without words of tuning either: they share the architecture."""
    return _tidy(_TUNING_WORDS.sub("", _plain(name)))


def _tidy(text: str) -> str:
    return re.sub(r"-+", "-", text).strip("-")


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
