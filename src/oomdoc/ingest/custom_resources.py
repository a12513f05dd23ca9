"""Servers of models as the cluster's own extensions describe them: KServe, KubeAI, the production stack, LeaderWorkerSet, Dynamo.

    kind: InferenceService                      kind: VLLMRuntime
    spec: {predictor: {model: {args: [...]}}}   spec: {model: {maxModelLen: 16384}, vllmConfig: {tensorParallelSize: 2}}

No list of kinds: whatever object has a mapping with arguments, or with an image or a resource limit beside an environment, has a
container in all but name; keys in the engine's spelling are settings; `parallelism: {tensor: 2}` says how the model is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oomdoc.ingest.launch import documents
from oomdoc.ingest.launch.manifests import document_settings
from oomdoc.ingest.launch.names import Setting
from oomdoc.regexes import regex

_DEPTH = 8
_ARGUMENTS = ("args", "command")
_MODEL_KEYS = frozenset(("modelurl", "modeluri", "storageuri", "uri", "url", "model", "modelid"))
_HUB = regex(r"(?:hf://)?(?P<name>[\w.-]{1,96}/[\w.-]{1,96})(?:[:@][\w.-]{1,40})?")
_PARALLEL = {"tensor": "tensor_parallel_size", "pipeline": "pipeline_parallel_size", "data": "data_parallel_size"}


def boxes(value: Any, name: str = "", depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The containers of an object, those in all but name too; each with a name."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from boxes(item, name, depth + 1)
    elif isinstance(value, Mapping):
        listed = value.get("containers")
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, Mapping))
        elif _is_box(value):
            yield value if value.get("name") else _named(value, name)
            return
        for key, item in value.items():
            if key not in ("containers", "initContainers", "metadata", "status"):
                yield from boxes(item, str(key), depth + 1)


def _is_box(value: Mapping[str, Any]) -> bool:
    """Arguments that begin as options do, or a limit beside an image or an environment."""
    words = [word for key in _ARGUMENTS if isinstance(found := value.get(key), list) for word in found if isinstance(word, str)]  # fmt: skip
    if any(word.startswith("--") for word in words):
        return True
    return isinstance(value.get("resources"), Mapping) and (isinstance(value.get("image"), str) or isinstance(value.get("env"), list))  # fmt: skip


def _named(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    made = documents.Mapping(value)
    made["name"] = name
    made.line = getattr(value, "line", 0)
    return made


def settings(spec: Mapping[str, Any], told: bool) -> Iterator[Setting]:
    """Settings among the keys of an object's specification; with arguments where nobody `told` them yet."""
    for one in document_settings(dict(spec)):
        if one.origin == "file" or (one.origin == "command" and not told):
            yield one
    yield from _model(spec, 0)


def _model(value: Any, depth: int) -> Iterator[Setting]:
    if not isinstance(value, Mapping) or depth > _DEPTH:
        return
    line = getattr(value, "line", 0)
    for key, item in value.items():
        if isinstance(item, str) and str(key).lower() in _MODEL_KEYS and (found := _HUB.fullmatch(item)) and (item.startswith("hf://") or str(key).lower() == "modelurl"):  # fmt: skip
            yield Setting(getattr(item, "line", 0) or line, "model", found["name"], "file")
        elif key == "parallelism" and isinstance(item, Mapping):
            for name, flag in _PARALLEL.items():
                if str(item.get(name, "")).isdigit():
                    yield Setting(getattr(item[name], "line", 0) or line, flag, str(item[name]), "file")
        else:
            yield from _model(item, depth + 1)
