"""Settings in documents: engine arguments as keys, argument vectors, environments, images, limits of compose, Helm and Kubernetes files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oomdoc.ingest.launch.commands import SCRIPT, flags_of, flags_of_tokens, settings_of
from oomdoc.ingest.launch.documents import DEPTH
from oomdoc.ingest.launch.names import (
    COMMON_FLAGS,
    ENGINE_FLAGS,
    RENAMED,
    Setting,
    image_version,
    is_environment,
    shown,
)
from oomdoc.ingest.launch.servers import serves
from oomdoc.ingest.launch.shell import ASSIGNMENT
from oomdoc.regexes import regex
from oomdoc.units import parse_age

_VECTOR_KEYS = frozenset(("args", "command", "cmd", "entrypoint", "extraargs", "extra_args", "vllm_args", "arguments"))
_DEVICE_KEY = regex(r"(?:nvidia|amd)\.com/gpu")
"""The devices of a container, as Kubernetes names the resource."""
_SIZE_KEYS = {"shm_size": "shm-size", "shmsize": "shm-size", "mem_limit": "container-limit"}


def document_settings(
    value: Any, line: int = 0, engine: int = 0, inside: bool = False, depth: int = 0
) -> Iterator[Setting]:
    """Settings in a document: engine arguments as keys, argument vectors, environments, images, limits."""
    if depth > DEPTH:
        return
    if isinstance(value, list):
        words = [item for item in value if isinstance(item, str)]
        if any(word.startswith("--") for word in words) or (inside and words):
            first = next((getattr(word, "line", 0) for word in words), 0) or line
            yield from (Setting(first, flag, text, "command", engine) for flag, text in _vector(words))
        for word in words:
            assigned = ASSIGNMENT.fullmatch(word)
            if assigned and is_environment(assigned["name"]):
                here = getattr(word, "line", 0) or line
                yield Setting(here, assigned["name"], shown(assigned["name"], assigned["value"]), "environment", engine)
        stages = sum(isinstance(item, dict) and "stage_id" in item for item in value)
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                number = engine + index if stages > 1 else engine
                yield from document_settings(item, line, number, depth=depth + 1)
        return
    if not isinstance(value, dict):
        return
    line = getattr(value, "line", 0) or line
    name = value.get("name")
    if isinstance(name, str) and "value" in value and is_environment(name):
        yield Setting(line, name, shown(name, _printed(value["value"])), "environment", engine)
    sure = inside or any(_snake(str(key)) in ENGINE_FLAGS for key in value)
    for key, item in value.items():
        here = getattr(item, "line", 0) or line
        flag = _snake(str(key))
        flag = RENAMED.get(flag, flag)
        if flag.removeprefix("vllm_") in ENGINE_FLAGS:  # a trainer's file names its engine before each setting
            flag = flag.removeprefix("vllm_")
        if is_environment(str(key)) and not isinstance(item, (dict, list)):
            yield Setting(here, str(key), shown(str(key), _printed(item)), "environment", engine)
        elif flag in ENGINE_FLAGS or (sure and flag in COMMON_FLAGS):
            if item is not None:
                yield Setting(here, flag, shown(flag, _printed(item)), "file", engine)
        elif flag.lower() in _SIZE_KEYS and isinstance(item, (str, int)):
            yield Setting(here, _SIZE_KEYS[flag.lower()], str(item), "bound", engine)
        elif flag == "device_ids" and isinstance(item, list) and item:
            yield Setting(here, "CUDA_VISIBLE_DEVICES", ",".join(str(one) for one in item), "environment", engine)
        elif flag == "healthcheck" and isinstance(item, dict) and (check := health_check(item)):
            yield Setting(here, "health-check", check, "bound", engine)
        elif flag == "limits" and isinstance(item, dict):
            for name, amount in item.items():
                if name == "memory" and isinstance(amount, str):
                    yield Setting(getattr(amount, "line", 0) or here, "container-limit", amount, "bound", engine)
                elif _DEVICE_KEY.fullmatch(str(name)) and str(amount).isdigit():
                    yield Setting(getattr(amount, "line", 0) or here, "devices", str(amount), "bound", engine)
        elif flag == "image" and isinstance(item, str) and (version := image_version(item)):
            yield Setting(here, "version", version, "file", engine)
        elif flag.lower() in _VECTOR_KEYS:
            if isinstance(item, str) and ("--" in item or "vllm" in item):
                yield from (one._replace(line=max(1, here) + one.line - 1, engine=engine) for one in settings_of(item))
            else:
                yield from document_settings(item, here, engine, inside=isinstance(item, list), depth=depth + 1)
        elif flag == "services" and isinstance(item, dict):
            for index, service in enumerate(item.values()):
                command = service.get("command") if isinstance(service, dict) else None
                words = command if isinstance(command, list) else [command or ""]
                ours = isinstance(service, dict) and serves(str(service.get("image") or ""), map(str, words))
                for one in document_settings(service, here, engine + index, depth=depth + 1):
                    # the devices of what stands beside the server are not the server's
                    if ours or one.flag != "CUDA_VISIBLE_DEVICES":
                        yield one
        elif isinstance(item, (dict, list)):
            nested = "engine" in flag or "vllm" in flag
            yield from document_settings(item, here, engine, nested and isinstance(item, dict), depth + 1)


def health_check(check: Mapping[str, Any]) -> str | None:
    """A health check of docker or compose as `kubectl describe` writes a probe; its defaults where nothing is set, None where none is asked.

    >>> health_check({"test": ["CMD", "true"], "interval": "15s", "start_period": "1m30s"})
    'exec delay=90s timeout=30s period=15s #success=1 #failure=3'
    """
    set_to = {_snake(str(key)): value for key, value in check.items()}
    test = set_to.get("test")
    if (
        not test
        or (test[0] if isinstance(test, list) else test) == "NONE"
        or str(set_to.get("disable")).lower() == "true"
    ):
        return None
    delay, timeout, period = (
        _seconds(set_to.get(key)) or usual for key, usual in (("start_period", 0), ("timeout", 30), ("interval", 30))
    )
    retries = str(set_to.get("retries") or "")
    return f"exec delay={delay}s timeout={timeout}s period={period}s #success=1 #failure={int(retries) if retries.isdigit() and int(retries) else 3}"


def _seconds(value: Any) -> int:
    """A length of time of compose (`1m30s`), or docker's own nanoseconds."""
    return value // 10**9 if isinstance(value, int) else int(parse_age(str(value)) or 0)


def _snake(key: str) -> str:
    """A key in the engine's spelling: `maxModelLen` and `max-model-len` are `max_model_len`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower() if not key.isupper() else key


def _vector(words: Sequence[str]) -> list[tuple[str, str]]:
    """Flags of an argument vector; one that does not begin with the engine's name is the image's own argument list."""
    scripts = [word for word in words if " " in word and SCRIPT.search(word)]
    return flags_of(scripts[0]) if scripts else flags_of_tokens(words)


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return {"true": "True", "false": "False", "null": "None", "~": "None"}.get(value, str(value))
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=str)
    return str(value)
