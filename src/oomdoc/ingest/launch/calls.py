"""Settings of constructors, dictionaries and assignments in Python. Nothing here runs anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from oomdoc.ingest.launch.names import COMMON_FLAGS, ENGINE_FLAGS, RENAMED, Setting, is_environment, shown
from oomdoc.regexes import regex

_CALL = regex(r"(?P<name>[A-Za-z_][\w.]*)[ \t]*\(")
_ENGINE_CALL = regex(r"(?:^|\.|_)(?:\w*LLM|\w*EngineArgs|VLLM\w*|vllm|Vllm\w*)$")
_ASSIGNED = regex(
    r"(?m)^[ \t]*(?:export )?(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?P<value>[^\n#]{1,200}?)[ \t]*(?:#.*)?$"
)
_OS_ENVIRON = regex(r"os\.environ\[[\"'](?P<name>\w+)[\"']\]\s*=\s*[\"']?(?P<value>[^\"'\n]*)")
_ITEM = regex(r"[\"'](?P<name>\w+)[\"']\s*:\s*(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^,\n}]{1,200})")
CALL_CAP = 20_000
"""Letters within which a bracket must be closed."""
_CALL_BUDGET = 400_000  # letters looked at for closing brackets in all, so that a wall of brackets costs no time


def calls_in(text: str) -> tuple[list[Setting], str]:
    """Settings of constructors and dictionaries in Python, and the text with those calls blanked."""
    found: list[Setting] = []
    rest, last, budget = [], 0, _CALL_BUDGET
    named = {match["name"]: _literal(match["value"]) for match in _ASSIGNED.finditer(text) if match["value"][:1] in "\"'" or match["value"].replace(".", "", 1).isdigit()}  # fmt: skip
    for match in _CALL.finditer(text):
        if match.start() < last or budget <= 0:
            continue
        inner = _balanced(text, match.end())
        budget -= CALL_CAP if inner is None else len(inner)
        if inner is None:
            continue
        sure = bool(_ENGINE_CALL.search(match["name"]))
        settings = list(_keywords(inner, text.count("\n", 0, match.end()) + 1, named, sure))
        if not settings or not (sure or any(one.flag in ENGINE_FLAGS for one in settings)):
            continue
        found += settings
        end = match.end() + len(inner)
        rest.append(text[last : match.start()])
        rest.append("\n" * text.count("\n", match.start(), end))
        last = end
    rest.append(text[last:])
    for match in _OS_ENVIRON.finditer(text):
        if is_environment(match["name"]):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Setting(line, match["name"], shown(match["name"], match["value"]), "environment"))
    blanked = "".join(rest)
    for match in _ASSIGNED.finditer(blanked):  # engine_args.gpu_memory_utilization = 0.9, with spaces unlike a shell
        if match["name"] in ENGINE_FLAGS and " =" in match[0]:
            line = blanked.count("\n", 0, match.start("name")) + 1
            value = _python_value(match["value"], named)
            if value is not None:
                found.append(Setting(line, match["name"], value, "command"))
    return found, blanked


def _balanced(text: str, at: int) -> str | None:
    """Text up to the bracket that closes the one before `at`; None where it is not closed within reach."""
    reach = text[at : at + CALL_CAP]
    *_, (offset, last) = arguments(reach)
    end = offset + len(last)
    return reach[:end] if end < len(reach) else None


def arguments(inner: str, brackets: str = "([{)]}") -> Iterator[tuple[int, str]]:
    """Arguments of a call with their offsets, split at commas outside brackets and quotes; they end where a bracket closes that none opened."""
    depth, quote, start, at = 0, "", 0, 0
    opening, closing = brackets[: len(brackets) // 2], brackets[len(brackets) // 2 :]
    while at < len(inner):
        letter = inner[at]
        if quote:
            at += letter == "\\"
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in opening:
            depth += 1
        elif letter in closing:
            if depth == 0:
                break
            depth -= 1
        elif letter == "," and depth == 0:
            yield start, inner[start:at]
            start = at + 1
        at += 1
    yield start, inner[start:at]


_KEYWORD = regex(r"\s*(?P<name>[A-Za-z_]\w*)\s*=(?!=)\s*(?P<value>.*)", re.S)


def _keywords(inner: str, line: int, named: dict[str, str], sure: bool) -> Iterator[Setting]:
    for index, (offset, piece) in enumerate(arguments(inner)):
        piece = re.sub(r"#[^\n'\"]*(?=\n|$)", "", piece)
        here = line + inner.count("\n", 0, offset) + piece[: len(piece) - len(piece.lstrip())].count("\n")
        match = _KEYWORD.fullmatch(piece)
        if match is None:
            value = _python_value(piece.strip(), named)
            if sure and index == 0 and value and re.fullmatch(r"[\w./-]+", value) and piece.strip()[:1] in "\"'":
                yield Setting(here, "model", value, "command")
            yield from _items(piece, here)
            continue
        flag = RENAMED.get(match["name"], match["name"])
        if flag not in ENGINE_FLAGS and "{" in match["value"]:
            yield from _items(match["value"], here)
            continue
        value = _python_value(match["value"].strip(), named)
        if value is not None and (sure or flag in ENGINE_FLAGS or flag in COMMON_FLAGS):
            yield Setting(here, flag, shown(flag, value), "command")


def _items(text: str, line: int) -> Iterator[Setting]:
    """The settings in a dictionary."""
    for item in _ITEM.finditer(text) if "{" in text else ():
        if item["name"] in ENGINE_FLAGS:
            yield Setting(line, item["name"], _literal(item["value"].strip()), "command")


def _python_value(printed: str, named: dict[str, str]) -> str | None:
    """Text of a Python value: strings unquoted, `torch.float16` as its last word, None for an unknown name."""
    if re.fullmatch(r"[A-Za-z_]\w*", printed) and printed not in ("True", "False", "None"):
        return named.get(printed)
    if re.fullmatch(r"torch\.\w+", printed):
        return printed.partition(".")[2]
    if re.match(r"[A-Za-z_][\w.]*\s*[(\[]|[A-Za-z_]\w*\.\w", printed) or not printed:
        return None
    return _literal(printed)


def _literal(printed: str) -> str:
    if len(printed) > 1 and printed[0] in "\"'" and printed[-1] == printed[0]:
        try:
            return str(ast.literal_eval(printed))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return printed[1:-1]
    return printed
