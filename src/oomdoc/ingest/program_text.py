"""Source code of programs, told by its first bytes: it is no evidence, and a repository in a bundle has thousands of files of it.

A source that has log records in its head, or that starts an engine (a launch script is evidence), is not called program text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from oomdoc.ingest.base import Head
from oomdoc.regexes import regex

SHOWN_CODE = regex(r"\s*(?:-{2,}> ?)?\d{1,6} {4,}(?:raise |return |if |else:|self\.|f?[\"'(\[]|[\w.]+ ?[=(])")
"""Code that a notebook shows around the line of an error, numbered: messages in it are those that might have come as well."""
HEAD_READ = 16 << 10  # bytes: licence texts of 10 KB stand before some code
_MARKS = 2  # lines of a language that make it one: a single one may be quoted

_LANGUAGES: Mapping[str, re.Pattern[bytes]] = {
    "Python": regex(rb"^(?:from [\w.]+ import [\w(*]|import [\w.]+(?: as \w+)?[ \t]*$|(?:async )?def \w+\(|class \w+[^:\n]*:[ \t]*$|if __name__ == )", re.M),
    "C or C++": regex(rb"^[ \t]*#[ \t]*(?:include[ \t]*[<\"]|ifn?def[ \t]+\w|define[ \t]+\w|endif\b|pragma\b)|^(?:typedef |namespace |template ?<|extern \"C\")", re.M),
    "JavaScript": regex(rb"^(?:import .{1,200} from ['\"]|export (?:default|const|function|class|interface|type)\b|(?:const|var|let) [\w{}, ]+ = require\(|(?:async )?function \w+ ?\(|['\"]use strict['\"])", re.M),
    "Go": regex(rb"^(?:package \w+[ \t]*$|import \($|func [(\w]|type \w+ (?:struct|interface))", re.M),
    "Rust": regex(rb"^(?:(?:pub )?(?:use \w+::|fn \w+|mod \w+;|trait \w+)|impl[ <]|#!?\[\w+)", re.M),
    "Java": regex(rb"^(?:package [\w.]+;|import (?:static )?[\w.*]+;|public (?:final |abstract )?(?:class|interface|enum|@interface) )", re.M),
    # a text that is comments and one statement from its beginning on has one such line in its head, however long it is
    "SQL": regex(rb"\A(?=--[^\n]{0,400}\n(?:--[^\n]{0,400}\n|\s){0,400}(?:WITH|SELECT|CREATE) )|^(?:(?:CREATE|ALTER|DROP) (?:OR REPLACE )?(?:TEMP )?(?:TABLE|VIEW|MACRO|FUNCTION|INDEX|SCHEMA)\b|(?:SELECT|FROM|WITH|WHERE|GROUP BY|ORDER BY|LEFT JOIN|JOIN|INSERT INTO) [\w(*].*$)", re.M),
    "a page of the web": regex(rb"(?i)<(?:!doctype html|html\b|/?head>|meta charset|link rel=|script\b)"),
    "a style sheet": regex(rb"^[ \t]*[.#@:\w][^{}\n;]{0,200}\{[ \t]*$\s*[\w-]+[ \t]*:[^;{}\n]{1,200};[ \t]*$", re.M),
}  # fmt: skip
_WEB = _LANGUAGES["a page of the web"]
_ANY = regex(b"^(?:" + b"|".join(marks.pattern for marks in _LANGUAGES.values() if marks is not _WEB) + b")", re.M)
"""A mark of any language but the web's, whose tags are found by their bracket: one search instead of nine, since most sources have none.
All of them begin a line, which is looked for once instead of once a language."""
_RECORD = regex(
    rb"^(?:\S+ ){0,4}?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b[ :]|^\W?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^Traceback \(most recent|^\[ *\d+\.\d{3,}\]",
    re.M,
)
_STARTS_AN_ENGINE = (b"LLM(", b"EngineArgs(", b"vllm serve", b"api_server", b"VLLM_")


def language(head: Head) -> str | None:
    """Which language the code of a source is in; None for what is no program text, or may be evidence.

    >>> language(Head("x", b"import os\\n\\n\\ndef main():\\n    pass\\n"))
    'Python'
    """
    data = head.data[:HEAD_READ]
    if not (_ANY.search(data) or _WEB.search(data)):
        return None
    for name, marks in _LANGUAGES.items():
        if sum(1 for _, _ in zip(marks.finditer(data), range(_MARKS), strict=False)) == _MARKS:
            whole = bare(head.data) if name == "Python" else head.data
            starts = name not in _STARTS_NONE and any(word in whole for word in _STARTS_AN_ENGINE)
            starts = starts and (name != "Python" or _MAKES.search(whole) is not None)
            return None if starts or _RECORD.search(whole[:HEAD_READ]) else name
    return None


_STARTS_NONE = frozenset(("SQL", "a style sheet", "C or C++", "Go", "Rust", "Java"))
"""Languages in which nobody starts a server whose logs are in the bundle: names of an engine in them are names."""
_MAKES = regex(
    rb"(?<![\\\w\"'`.])(?:LLM|Async\w*|\w*Engine)\w*(?:\.from_\w+)?\(|\bsubprocess\b|\bPopen\(|\bos\.(?:system|exec\w*|popen|environ|spawn\w*)\b|\bcreate_subprocess|\b(?:serve|modal|ray|app)\.\w+\("
)
"""What code does that makes an engine or starts a program; a name of an engine in a string is a name."""
_DOCSTRING = regex(
    rb"(?ms)^[ \t]*[rRbBfFuU]{0,2}(?:\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z))|^[ \t]*#(?!!|SBATCH|PBS|BSUB)[^\n]*|(?<=[\w,;:)\]])[ \t]{1,8}#[^\n\"']*$"
)


def bare(data: bytes) -> bytes:
    """Python without its docstrings and comments, which quote commands and messages; every line keeps its number.

    >>> bare(b"def run():\\n    '''Runs `vllm serve m`.'''\\n    start('vllm serve org/m')\\n")
    b"def run():\\n\\n    start('vllm serve org/m')\\n"
    """
    return _DOCSTRING.sub(lambda found: b"\n" * found[0].count(b"\n"), data)
