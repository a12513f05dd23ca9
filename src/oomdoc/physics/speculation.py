"""Tokens drafted ahead: what `--speculative-config` adds in layers, in state and in weights.

Sources: vllm/config/speculative.py and vllm/v1/spec_decode (0.8 to 0.33). A layer that drafts (MTP, EAGLE) is built like
a layer of its target; an n-gram lookup has no layer at all.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.physics.architecture import Model

WITHOUT_LAYERS = frozenset({"ngram", "ngram_gpu", "suffix", "[ngram]"})
_LAYERS = {"medusa": 0, "mlp_speculator": 0, "dflash": 5}  # DFlash drafts a block with five layers


@dataclass(frozen=True)
class Speculation:
    """What drafts: `tokens` ahead per step, by `layers` layers built like those of the target, or by a whole model.

    `model` is the draft's name where one is named, `draft` its architecture where the catalogue has it.
    """

    method: str = ""
    tokens: int = 0
    layers: int = 0
    model: str = ""
    draft: Model | None = None


NONE = Speculation()


def read_speculation(value: object) -> Speculation:
    """The speculation of a flag's value: a mapping, its JSON, or what a log prints of it; `NONE` for none.

    >>> read_speculation('{"method": "mtp", "num_speculative_tokens": 3}')
    Speculation(method='mtp', tokens=3, layers=1, model='', draft=None)
    >>> read_speculation("SpeculativeConfig(method='ngram', num_spec_tokens=4)").tokens, read_speculation(None).tokens
    (4, 0)
    """
    found = _mapping(value)
    if not found:
        return NONE
    tokens = _whole(found.get("num_speculative_tokens") or found.get("num_spec_tokens"))
    name = str(found.get("model") or found.get("draft_model") or "")
    method = str(found.get("method") or (_method_of(name) if name else "")).lower()
    if not method and not tokens:
        return NONE
    if method in WITHOUT_LAYERS:
        return Speculation(method, tokens)
    layers = 0 if method == "draft_model" else next((n for key, n in _LAYERS.items() if method == key), 1)
    return Speculation(method, max(tokens, 1), layers, name)


def stated_speculation(flags: Mapping[str, object]) -> object:
    """What the flags of an engine say of speculation: `speculative_config`, or the two flags that stood for it before 0.8.

    >>> stated_speculation({"speculative_model": "x/Y-0.6B", "num_speculative_tokens": "5"})
    {'model': 'x/Y-0.6B', 'num_speculative_tokens': '5'}
    >>> stated_speculation({"speculative_model": "None"}) is None
    True
    """
    stated = flags.get("speculative_config")
    if stated not in (None, "", "None"):
        return stated
    name = str(flags.get("speculative_model") or "")
    if name in ("", "None"):
        return None
    if name == "[ngram]":
        return {"method": "ngram", "num_speculative_tokens": flags.get("num_speculative_tokens")}
    return {"model": name, "num_speculative_tokens": flags.get("num_speculative_tokens")}


def _method_of(name: str) -> str:
    """What the engine takes a draft for by its name, where no method is stated."""
    lower = name.lower()
    return next((method for method in ("dflash", "eagle3", "eagle") if method in lower), "draft_model")


def with_draft(speculation: Speculation, draft: Model | None) -> Speculation:
    """The same with the architecture of a whole draft model; without it one layer stands for it.

    A DFlash draft counts only where the entry is its own and not that of its target, whose vocabulary it shares.
    """
    if speculation.method == "dflash" and draft is not None and "dflash" in draft.name.lower():
        return replace(speculation, draft=draft, layers=0)
    if speculation.method != "draft_model":
        return speculation
    return replace(speculation, draft=draft, layers=0 if draft else 1)


def _mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    text = str(value or "").strip()
    if text.startswith("{"):
        for parse in (json.loads, ast.literal_eval):
            try:
                found = parse(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            return found if isinstance(found, dict) else {}
        return {}
    return {key: word.strip("'\"") for key, word in re.findall(r"(\w+)=('[^']*'|[^,()\s]+)", text)}


def _whole(value: object) -> int:
    text = str(value or "")
    return min(int(text), 1024) if re.fullmatch(r"\d{1,6}", text) else 0
