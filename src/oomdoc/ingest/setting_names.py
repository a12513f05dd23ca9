"""Settings of a server as people call them: in the header of a table of experiments, and in a sentence.

    tp, TP=2, tensor_parallel_size, --tensor-parallel-size 4        one setting
    vllm 0.21.0, image v0.14.0, 0.8.3                               the release
    VLLM_USE_V1=0, --enable-lora, sleep_mode on, without eager      a variable, a switch

`of_header` names the setting that a column is, `settings_in` those that a sentence tries, with the value as written. What is
switched off or left out has the value `off`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.ingest.vocabulary.words import bare_letters
from oomdoc.regexes import regex

WEAK = frozenset(("model", "mode", "start_order", "version", "dtype", "quantization", "cache_policy", "driver"))
"""Settings whose names stand in tables of every kind: they make an experiment only beside an outcome."""

_BY_NAME: dict[str, str] = {name.strip().replace("_", ""): flag for flag, names in read("settings").items() for name in names.split(",")}  # fmt: skip
_VARIABLE = regex(
    r"(?:VLLM|NCCL|PYTORCH|CUDA|HIP|ROCR|ROCM|RAY|TORCH|LMCACHE|OMP|HF|TRITON|SLEEP|ENABLE)_[A-Z0-9_]{2,60}"
)


@lru_cache(maxsize=2048)
def of_header(name: str) -> str | None:
    """The setting that a column of this name holds; None for none. Where the name itself is none, the word in its brackets may be.

    >>> of_header("flags.max_num_seqs"), of_header("metrics.max_num_seqs")
    ('max_num_seqs', None)
    >>> of_header("TP size"), of_header("--max-num-seqs"), of_header("VLLM_USE_V1"), of_header("kv_gib"), of_header("cards (TP)")
    ('tensor_parallel_size', 'max_num_seqs', 'VLLM_USE_V1', None, 'tensor_parallel_size')
    """
    plain = _WRAPPED.sub("", name.strip().strip("\"'`*"))
    if _VARIABLE.fullmatch(plain):
        return plain
    if plain.startswith("--"):
        return flag_of(plain)
    low = bare_letters(plain).lower()
    found = _BY_NAME.get(_letters(_BRACKETS.sub("", low)))
    inside = _BRACKETS.search(low) if found is None else None
    return _BY_NAME.get(_letters(inside[1])) if inside else found


_WRAPPED = regex(
    r"(?i)(?:(?:vllm|server|engine)[._])?(?:flags|args|engine_args|config|settings|params|options)\.(?=[A-Za-z-])"
)
"""What documents keep settings under."""
_BRACKETS = regex(r"[\[(](.*?)[\])]")


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text)


def flag_of(option: str) -> str:
    """The name of an option as written: `--no-enable-x` and `--enable-x` are one."""
    bare = option.lstrip("-").replace("-", "_").lower()
    bare = bare.removeprefix("no_") if bare.startswith("no_enable") else bare
    return _BY_NAME.get(bare.replace("_", ""), bare)


class Tried(NamedTuple):
    """A setting in a sentence: its name, the value as written, from where to where it stands."""

    flag: str
    value: str | None
    at: int
    end: int = 0


_VALUE = r"(?:\d[\d.,]*\d|\d)\s?(?:[kKMGT](?:i?B)?\b)?|[Tt]rue\b|[Ff]alse\b|on\b|off\b|auto\b|half\b|b?float16\b|bf16\b|fp16\b|fp8\w*|awq\b|gptq\b"
_OPTION = regex(
    rf"(?<![\w-])--(?P<option>[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*)(?:[= ]\s?(?P<value>{_VALUE}|\{{[^}}]{{0,80}}\}}|'[^']{{0,80}}'))?"
)
_ASSIGNED = regex(
    rf"(?<![\w.])(?P<variable>{_VARIABLE.pattern})\s?(?:=|:)\s?(?P<value>\"[^\"]{{0,80}}\"|'[^']{{0,80}}'|[\w.:/,-]{{1,60}}?)(?=[\s,;)\"']|:?\s|[.:]?$)"
)
_KEYED = regex(
    r"(?i)(?<![\w-])(?P<name>max[-_ ]num[-_ ]seqs|max[-_ ]num[-_ ]batched[-_ ]tokens|max[-_ ]model[-_ ]len(?:gth)?|gpu[-_ ]memory[-_ ]utili[sz]ation|"
    r"tensor[-_ ]parallel[-_ ]size|pipeline[-_ ]parallel[-_ ]size|data[-_ ]parallel[-_ ]size|enforce[-_ ]eager|eager mode|limit[-_]mm[-_]per[-_]prompt|"
    r"swap[-_ ]space|cpu[-_ ]offload[-_ ]gb|max_local_cpu_size|max[-_]loras|max[-_]lora[-_]rank|kv[-_]cache[-_]dtype|shm[-_ ]size|sleep[-_ ]mode|prefix[-_ ]cach(?:ing|e)|"
    r"chunked[-_ ]prefill|cuda[-_ ]?graphs?|expandable[-_ ]segments|max_split_size_mb)[\"'`]?"
    rf"(?:\s*(?:=|:|\bto\b|\bat\b|\bof\b|\bis\b)?\s*(?P<value>{_VALUE}))?"
)
_SHORT = regex(
    r"(?<![A-Za-z-])(?<![A-Za-z]_)(?P<name>TP|tp|PP|pp|DP|dp|util)(?:\s?[= ]\s?)?(?P<value>\d{1,3}(?:\.\d+)?)(?!\d|[\w.]*[A-Za-z]{3})"
)
_MEASURED = regex(r"(?i)\b(?:gpu|sm|core|compute)[ _-]$")
_COPIES = regex(r"(?<![\w.])(?P<copies>\d{1,3})\s?[x×]\s?(?=(?:TP|tp)\s?=?\s?\d)")
"""`4 x TP 1`: as many servers side by side."""
_RELEASE = regex(
    r"(?i)(?<![\w./=-])(?:(?P<what>vllm|torch|pytorch|image|driver)[ :=]*)?v?(?P<value>\d+\.\d+(?:\.\d+)+(?:[.\w+]*\d)?|(?<=torch )\d+\.\d+)(?![\w%]|\.\d)"
)
_SHM = regex(r"--ipc[ =]host|ipc host|/dev/shm")
_NOT = regex(
    r"(?i)(?:without|drop(?:ped|ping)?|remov(?:e|ed|ing)|minus|disabl(?:e|ed|ing)|leav(?:e|ing) out|no|not|unset|off)\s(?:(?:the|any|of|both|two|three|four|five|all)\s){0,3}$"
)


_WORDS = (b"--", b"_", b"ipc host", b"/dev/shm", b"eager", b"max", b"gpu", b"tensor", b"pipeline", b"data", b"enforce", b"limit", b"swap", b"cpu", b"kv",
          b"shm", b"sleep", b"prefix", b"chunked", b"cuda", b"expandable", b"tp", b"pp", b"dp", b"util", b"torch ")  # fmt: skip
"""What stands in the name of every setting; a release is numbers alone."""
_NUMBERED = regex(rb"\d\.\d+\.\d")


def may_name_settings(data: bytes) -> bool:
    """Whether `settings_in` can find anything in a text: one quick search for all of its lines."""
    small = data.lower()
    return any(word in small for word in _WORDS) or _NUMBERED.search(data) is not None


def settings_in(text: str) -> Iterator[Tried]:
    """The settings that a sentence names, in the order of the text, each once."""
    found: dict[str, Tried] = {}
    taken: list[tuple[int, int]] = []

    def take(flag: str, value: str | None, match: re.Match[str]) -> None:
        if any(match.start() < end and start < match.end() for start, end in taken):
            return
        taken.append(match.span())
        if _NOT.search(text[: match.start()]):
            value = "off"
        if match[0].lstrip("-").lower().startswith(("no-", "no_")):
            value = "off"
        if flag not in found:
            found[flag] = Tried(flag, (value or "").strip().strip("\"'") or "on", match.start(), match.end())

    for match in _SHM.finditer(text):
        take("shm_size", None, match)
    for match in _OPTION.finditer(text):
        take(flag_of(match["option"]), match["value"], match)
    for match in _ASSIGNED.finditer(text):
        take(match["variable"], match["value"], match)
    for match in _KEYED.finditer(text):
        take(flag_of(re.sub(r"[ -]", "_", match["name"])), match["value"], match)
    for match in _COPIES.finditer(text):
        take("data_parallel_size", match["copies"], match)
    for match in _SHORT.finditer(text):
        if _MEASURED.search(text[: match.start()]) and text[match.end() :].lstrip().startswith("%"):
            continue  # `GPU util 24 %`: how busy it was
        take(_BY_NAME[match["name"].lower()], match["value"], match)
    for match in _RELEASE.finditer(text):
        take({"torch": "torch", "pytorch": "torch", "driver": "driver"}.get((match["what"] or "").lower(), "version"), match["value"], match)  # fmt: skip
    yield from sorted(found.values(), key=lambda tried: tried.at)
