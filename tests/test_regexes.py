"""No regular expression of the program takes more than a moment for any line, however hostile: lines come from strangers."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

import oomdoc
from oomdoc.regexes import Regex

BUDGET_S = 0.6  # for one line on a slow machine; a catastrophe takes hours
WHOLE = (
    "text_log",
    "record",
    "torch_oom",
    "vllm_log",
    "engine_settings",
    "log_errors",
    "host_events",
    "rows",
)  # modules that see lines of 64 KiB
MATCHED = ("_CODE_LINE",)  # used by `match` through a tuple
LONG, SHORT = 8 << 10, 2000  # what is tried for those, and for the others, which cut their lines
RUNS = (" ", "0", "9,", "a", "A", "(", "[", "{", '"', "'", "\\", "=", "-", ".", ",", ":", ";", "|", "/", "\t", "0.", "1 ", "a ", "a.", "a-", "a=", "a,", "a: ", "[0m", "\x1b[", "GiB ", "no ")  # fmt: skip


def _found(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, (re.Pattern, Regex)):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for inner in value.values():
            yield from _found(inner, depth + 1)
    elif depth < 4 and isinstance(value, (tuple, list)):
        for inner in value:
            yield from _found(inner, depth + 1)
    elif depth < 4 and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _found(getattr(value, field.name), depth + 1)


@functools.cache
def every() -> dict[str, Any]:
    """All regular expressions of the package by module, name and place, each text once."""
    found: dict[str, Any] = {}
    seen = set()
    for info in pkgutil.walk_packages(oomdoc.__path__, "oomdoc."):
        if info.name == "oomdoc.__main__":
            continue
        module = importlib.import_module(info.name)
        for name, value in sorted(vars(module).items()):
            for place, expression in enumerate(_found(value)):
                key = (expression.pattern, expression.flags)
                if key not in seen:
                    seen.add(key)
                    found[f"{info.name}.{name}.{place}"] = expression
    return found


def hostile(pattern: str, size: int) -> Iterator[str]:
    """Long runs, alone and behind the literals that stand in the expression itself."""
    for run in RUNS:
        yield (run * size)[:size]
    for word in re.findall(r"[A-Za-z][A-Za-z _-]{3,}", pattern)[:4]:
        for run in (" ", "0", "a", "0,", word + " "):
            yield (word + run * size)[:size]


def method(name: str, expression: Any) -> Any:
    """How the module uses it: `match`, where it never searches with it (a list of expressions is searched with)."""
    module, attribute, _ = name.rsplit(".", 2)
    source = inspect.getsource(importlib.import_module(module))
    searched = re.search(rf"\b{attribute}\.(?:search|finditer|findall|sub|split)\b", source)
    matched = re.search(rf"\b{attribute}\.(?:match|fullmatch)\b", source)
    return expression.match if (matched and not searched) or attribute in MATCHED else expression.search


@pytest.mark.parametrize("module", sorted({name.split(".")[-3] for name in every()}))
def test_no_expression_is_a_trap(module: str) -> None:
    slow = {}
    for name, expression in every().items():
        if name.split(".")[-3] != module:
            continue
        binary = isinstance(expression.pattern, bytes)
        pattern = expression.pattern.decode("latin-1") if binary else expression.pattern
        use = method(name, expression)
        for text in hostile(pattern, LONG if module in WHOLE else SHORT):
            took = timed(use, text.encode("latin-1") if binary else text)
            if took > BUDGET_S:
                slow[name] = f"{took:.1f} s for {text[:40]!r} ..."
                break
    assert slow == {}


def timed(use: Any, text: str | bytes) -> float:
    began = time.process_time()  # a busy machine is not a slow expression
    use(text)
    return time.process_time() - began


def test_expressions_were_found() -> None:
    assert len(every()) > 400
