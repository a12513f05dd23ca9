"""What a model's name tells: owner and repository, the weights' format, the words that only mean tuning, its size.

Names come from repositories, folders, caches, GGUF files and tags (`name:8b`, `repo-GGUF:Q4_K_M`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoc.regexes import regex

_PLACES = {"snapshots", "weights", "model", "checkpoint", "hf", "main", "latest", "original", "merged", "final"}


def repository(name: str) -> str:
    """`org/name` of a repository id, a folder, a cached snapshot or a file of weights; a tag becomes part of the name.

    >>> repository("/data/cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c/")
    'Qwen/Qwen3-8B'
    >>> repository("s3://bucket/models/Qwen3-8B"), repository("Qwen/Qwen3-8B@main"), repository("qwen2.5:7b-instruct-q4_K_M")
    ('models/Qwen3-8B', 'Qwen/Qwen3-8B', 'qwen2.5-7b-instruct-q4_K_M')
    """
    text = re.sub(r"^[a-z0-9+]+://", "", name.strip().strip("'\"")).replace("___", ".")
    parts = [part for part in re.split(r"[/\\]", text) if part not in ("", ".", "..")]
    for part in reversed(parts):
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/", 1)
    while len(parts) > 1 and (
        parts[-1].lower() in _PLACES or re.fullmatch(r"[0-9a-f]{6,40}|v?\d+|checkpoint-\d+", parts[-1])
    ):
        parts.pop()
    kept = re.sub(r"@\w+$|\.(gguf|safetensors)$|:latest$", "", "/".join(parts[-2:]), flags=re.I)
    return kept.replace(":", "-")


def revision_in(name: str) -> str:
    """The commit that a name pins: behind an `@`, or the folder of a cached snapshot; empty where it pins none.

    >>> revision_in("org/model-7b@67dbeda4"), revision_in("/hub/models--org--model-7b/snapshots/0a1b2c3d4e5f/"), revision_in("org/model-7b")
    ('67dbeda4', '0a1b2c3d4e5f', '')
    """
    found = re.search(r"(?:@|[/\\]snapshots[/\\])([0-9a-f]{7,40})(?=[/\\]*$|[/\\])", name.strip(), re.I)
    return found[1].lower() if found else ""


# Words of a name that tell the weights' format, longest first where one holds another.
_FORMATS = (
    (r"unquantized", None),
    (r"nvfp4|w4a4|fp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"awq", "awq"),
    (r"gptq|marlin|autoround", "gptq"),
    (r"w4a16", "w4a16"),
    (r"bnb|nf4|bitsandbytes", "bitsandbytes"),
    (r"int4|4bit", "4bit"),
    (r"fp8|w8a8fp8", "fp8"),
    (r"int8|w8a8|w8a16|8bit", "int8"),
    (r"i?q2_k(_\w+)?|iq[12]_\w+", "gguf-q2"),
    (r"i?q3_k(_\w+)?|iq3_\w+", "gguf-q3"),
    (r"q4_k_m|q4km|q4_k_s|q4_k_xl|q4_k|q4_[01]|iq4_\w+|q4", "gguf-q4"),
    (r"q5_k_m|q5km|q5_k_s|q5_k|q5_[01]", "gguf-q5"),
    (r"q6_k|q6k|q6_k_l", "gguf-q6"),
    (r"q8_0|q8", "gguf-q8"),
    (r"gguf", "gguf"),
)


def format_of(name: str) -> str | None:
    """The weights' format that a name tells, a key of `weights.FORMATS`; None where it tells none.

    >>> format_of("Qwen3-32B-AWQ"), format_of("Llama-3.1-8B-Instruct-Q4_K_M"), format_of("Qwen3-32B")
    ('awq', 'gguf-q4', None)
    >>> format_of("gemma-4-26B-A4B-it-qat-q4_0-unquantized"), format_of("unsloth/Qwen3-8B-GGUF")
    (None, 'gguf')
    """
    text = name.lower().replace(".", "_").replace(":", "-")
    mxfp4 = "mxfp4" in text
    for words, known in _FORMATS:
        if re.search(rf"(?<![a-z0-9])(?:{words})(?![a-z0-9])", text) and not (known == "nvfp4" and mxfp4):
            return known
    return None


_FORMAT_WORDS = regex(
    r"(?<![a-z0-9])(nvfp4|mxfp4|fp4|w4a4|w4a16|w8a8|w8a16|awq|gptq|marlin|autoround|int4|int8|4bit|8bit|bnb|nf4|bitsandbytes|fp8|bf16|fp16|"
    r"dynamic|static|kv|gguf|i?q\d(-k)?(-[msl01]|-xl|-xs|-xxs|-nl)?|ud|g\d+|gs\d+|group\d+|sym|asym|quantized|unquantized|qat|hf|block|unsloth|"
    r"per-tensor|channel|modelopt|modelscope|ms|compressed-tensors)(?![a-z0-9])"
)
_TUNING_WORDS = regex(
    r"(?<![a-z0-9])(instruct|chat|it|pt|base|thinking|dpo|sft|uncensored|abliterated|fp32|v\d+-\d+|\d{4}(-v\d+-\d+)?|mtp|eagle3?)(?![a-z0-9])"
)
_SIZE = regex(r"(?<![a-z])\d+(?:\.\d+)?[bm](?![a-z])|\d+[bm]$")


def plain(name: str) -> str:
    """Lower case, every separator a dash, without the words of a format; `meta-llama-3` is `llama-3`."""
    text = re.sub(r"[\s._:]+", "-", name.rpartition("/")[2].lower())
    return _tidy(_FORMAT_WORDS.sub("", text)).removeprefix("meta-")


def family(name: str) -> str:
    """The same without words of tuning either: they share the architecture."""
    return _tidy(_TUNING_WORDS.sub("", plain(name)))


def squeezed(name: str) -> str:
    """The family without separators: `llama3.1:8b` and `Llama-3.1-8B-Instruct` are one.

    >>> squeezed("llama3.1:8b") == squeezed("meta-llama/Llama-3.1-8B-Instruct")
    True
    """
    return family(name).replace("-", "")


def pieces(name: str) -> Iterator[str]:
    """Every run of neighbouring words of a name, squeezed, the longest first."""
    words = family(name).split("-")[:24]
    for count in range(len(words), 1, -1):
        for start in range(len(words) - count + 1):
            yield "".join(words[start : start + count])


def sized(text: str) -> bool:
    """Whether a squeezed name holds a size, such as 8b.

    >>> sized("qwen38b"), sized("gptoss20b"), sized("deepseekv3")
    (True, True, False)
    """
    return bool(_SIZE.search(text))


def _tidy(text: str) -> str:
    return re.sub(r"-+", "-", text).strip("-")
