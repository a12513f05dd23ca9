"""Files of a model's folder: what the weights and the KV cache of that model take.

    config.json                    {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32, "hidden_size": 4096, ...}
    generation_config.json         {"max_new_tokens": 2048, "eos_token_id": 2, ...}
    model.safetensors.index.json   {"metadata": {"total_size": 16060522496}, "weight_map": {"lm_head.weight": "..."}}
    hf_quant_config.json           {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", ...}}
    quantize_config.json, adapter_config.json

One row of `model_file` each; a config is kept as it is, for `physics.config` reads it. What it says in the words of logs goes where logs
tell it: `engine_flag` (origin `file`), `engine_figure` (`checkpoint_bytes`) and `note` (topic `lora`). Names are those of transformers'
`PretrainedConfig` and of the checkpoints' own code; other names for the same (`n_layer`, `d_model`, `multi_query_group_num`) fill the
same flag. Figures of a multimodal model are those of its language model. What a config leaves out is not told, even where transformers
has a default: that depends on its version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.json_pieces import BrokenError, mapping, pieces
from oomdoc.ingest.vocabulary.quantity import read as read_list
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "model-file"

_NAMES: Mapping[str, list[str]] = read_list("names")["model_keys"]
"""A flag and what configs call it."""
_INNER = ("text_config", "llm_config", "language_config", "language_model", "thinker_config")
_CAP = 1 << 40  # no count of a model is larger; a larger one is damage
_KEPT = 64 << 10  # of a config: those of published models have 1 to 20 KiB
_WILD = regex(r"(?<![\d.])\d{16}")  # a count of as many digits is damage
_MARKS = regex(
    rb'"(?:architectures|model_type|weight_map|quant_algo|quant_method|transformers_version|eos_token_id|peft_type)"\s*:'
)


def matches(head: Head) -> bool:
    """A JSON object with the keys of one of these files, and with none of a request, a report or a cluster object."""
    begin = head.data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin[:1] != b"{" or not _MARKS.search(head.data):
        return False
    keys = _top_keys(begin.decode("utf-8", "replace"))
    return file_of(keys) is not None


_TOKEN = regex(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')


def _top_keys(text: str) -> frozenset[str]:
    """Keys of the outermost object, as far as a text that may be cut tells."""
    depth, keys = 0, set()
    for found in _TOKEN.finditer(text):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if not depth:
                break
        elif depth == 1 and found[2]:
            keys.add(found[1])
    return frozenset(keys)


def file_of(keys: frozenset[str]) -> str | None:
    """Which file an object with these keys is: config, generation, weights-index, quantization, adapter; None for no such."""
    if {"apiVersion", "usage", "messages", "request_id", "kind", "services", "resourceSpans"} & keys:
        return None
    if "weight_map" in keys:
        return "weights-index"
    if "peft_type" in keys:
        return "adapter"
    if "architectures" in keys or (
        "model_type" in keys and any(name in keys for group in _NAMES.values() for name in group)
    ):
        return "config"
    if "quantization" in keys and ("producer" in keys or keys <= {"quantization", "version"}):
        return "quantization"
    if {"quant_algo", "quant_method"} & keys or {"bits", "group_size"} <= keys:
        return "quantization"
    if {"transformers_version", "eos_token_id"} & keys and keys & {
        "max_new_tokens", "max_length", "do_sample", "temperature", "top_p", "top_k", "bos_token_id", "pad_token_id", "_from_model_config",
    }:  # fmt: skip
        return "generation"
    return None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """One row of `model_file`, and what it says in the words of other tables."""
    rows = Rows()
    config: dict[str, Any] = {}
    line = 1
    try:
        # of an index with a hundred thousand tensors only that it is one is kept
        for piece in pieces(chunks, lambda way: len(way) == 1 and way[0] != "weight_map"):
            if len(piece.path) == 1:
                config[piece.path[0]] = piece.value
                line = piece.line if piece.path[0] in ("architectures", "metadata", "quantization") else line
            elif piece.path[:1] == ("weight_map",):
                config.setdefault("weight_map", {})
    except BrokenError as problem:
        rows.problem(problem.line, f"a file of a model: {problem}", "")
    kind = file_of(frozenset(config))
    if kind is None:
        if config:
            rows.problem(1, "no file of a model's folder that is known", ", ".join(sorted(config))[:200])
    else:
        _told(rows, line, kind, config)
    yield from rows.take()


def _told(rows: Rows, line: int, kind: str, config: Mapping[str, Any]) -> None:
    size = _count(mapping(config.get("metadata")).get("total_size")) if kind == "weights-index" else None
    rank = _count(config.get("r")) if kind == "adapter" else None
    whole = json.dumps(config) if kind == "config" else ""
    kept = whole if 0 < len(whole) <= _KEPT and not _WILD.search(whole) else None
    rows.add("model_file", line, file=kind, config=kept, total_bytes=size, lora_rank=rank)
    if kind == "adapter":
        base = _text(config.get("base_model_name_or_path"))
        text = f"adapter of type {_text(config.get('peft_type')) or 'unknown'}, rank {rank}, base model {base}"
        rows.add("note", line, topic="lora", value=None if rank is None else float(rank), text=text[:300])
    told = _flags(config) if kind == "config" else {"quantization": _method(config)} if kind == "quantization" else {}
    for flag, value in told.items():
        if value is not None:
            rows.add("engine_flag", line, flag=flag, value=str(value), origin="file")
    if size is not None:
        rows.add("engine_figure", line, name="checkpoint_bytes", value=float(size))


def _flags(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a config.json tells."""
    inner: Mapping[str, Any] = next((mapping(config[name]) for name in _INNER if mapping(config.get(name))), config)
    inner = mapping(inner.get("text_config")) or inner  # an omni model keeps it two levels down
    told: dict[str, Any] = {}
    for flag, names in _NAMES.items():
        told[flag] = next((count for name in names if (count := _count(inner.get(name))) is not None), None)
    if told["num_key_value_heads"] is None and inner.get("multi_query") is True:
        told["num_key_value_heads"] = 1
    architectures = config.get("architectures")
    told["architecture"] = _text(architectures[0]) if isinstance(architectures, list) and architectures else None
    types = (_text(where.get(name)) for where in (inner, config) for name in ("torch_dtype", "dtype"))
    told["dtype"] = next(filter(None, types), None)
    told["quantization"] = _method(
        mapping(config.get("quantization_config")) or mapping(inner.get("quantization_config"))
    )
    return told


def _method(config: Mapping[str, Any]) -> str | None:
    """What a quantisation config calls its method; the forms of transformers, compressed-tensors and ModelOpt."""
    algo = _text((mapping(config.get("quantization")) or config).get("quant_algo"))  # ModelOpt keeps it one level down
    return _text(config.get("quant_method")) or (f"modelopt-{algo}".lower() if algo else None)


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # total_size was written by frameworks as 1.6e10
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < (_CAP << 10) else None


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) and value else None
