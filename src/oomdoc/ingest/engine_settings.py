"""Settings that the engine prints many at once: its arguments as they are, those that differ from the defaults, its configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from oomdoc.ingest.launch.calls import arguments
from oomdoc.regexes import regex


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Key and value of `k=v, k=v` or `'k': v, 'k': v`, where values are Python reprs with nested commas and strings.

    A bracket-aware scan that survives what is no literal (`<object at ...>`), cut text and missing quotes.

    >>> list(settings("a=1, b='x, y', c=[1, 2], d={'e': 'f'}"))
    [('a', '1'), ('b', 'x, y'), ('c', '[1, 2]'), ('d', "{'e': 'f'}")]
    """
    for _, piece in arguments(text, "([{<)]}>"):
        match = _PAIR.match(piece)
        if match:
            value = match["value"].strip()
            if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
                try:
                    value = str(ast.literal_eval(value))
                except (ValueError, SyntaxError):
                    value = value[1:-1]
            yield match["key"], value


_PAIR = regex(r"\s*['\"]?(?P<key>[A-Za-z_][\w-]*)['\"]?\s*[=:]\s*(?P<value>.*)", re.S)
# keys of the engine-config line that go by another name elsewhere
_RENAMED = {"max_seq_len": "max_model_len", "chunked_prefill_enabled": "enable_chunked_prefill", "model_tag": "model"}
_SECRET = regex(r"key|token$|secret|password", re.I)


def flag_rows(text: str, origin: str) -> Iterator[dict[str, Any]]:
    """Rows of `engine_flag` from a settings text; secrets are masked, `model_tag` and `max_seq_len` get their usual names."""
    for key, value in settings(text):
        flag = _RENAMED.get(key, key)
        if _SECRET.search(flag) and flag not in ("skip_tokenizer_init",) and value not in ("None", "[]"):
            value = "***"
        yield {"flag": flag, "value": value[:2000], "origin": origin}


SETTINGS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # anchor, where the settings text begins and ends, origin of the flags
    ("non-default args", regex(r"non-default args: \{(?P<body>.*)", re.S), "logged"),
    ("args: Namespace(", regex(r"args: Namespace\((?P<body>.*)", re.S), "logged"),
    (
        "LLM engine",
        regex(
            r"(?:Initializing an? |Dumping input data for )(?:V[01] )?LLM engine (?:\(v[^)]+\) )?with config: (?P<body>.*)",
            re.S,
        ),
        "config",
    ),
)
"""Lines that hold many settings at once: each key becomes a row of `engine_flag`."""
