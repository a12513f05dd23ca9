"""Requests in lines of a log: `key=value` text and JSON, in any order, in any envelope."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.ingest.benchmark_sums import sums
from oomdoc.ingest.json_pieces import loads
from oomdoc.ingest.record import ANSI, Clock, peel
from oomdoc.ingest.request_keys import (
    DEPTH,
    MEANING,
    Found,
    Requests,
    collect,
    epoch,
    is_container,
    moment,
    number,
    put,
)
from oomdoc.ingest.request_shapes import bare_value
from oomdoc.intake.cells import stamp
from oomdoc.regexes import regex

_LINE_CAP = 64 << 10  # key=value pairs stand before any text of prompts
PAIR = regex(r"""(?<![^\s,;|(\[{])([A-Za-z_@][\w.@-]*)=("[^"]*"|[^\s,;"]*)""")
_EPOCH_HEAD = regex(r"\[?(\d{10}(?:\.\d+)?|\d{13})\b")
TEXT_KEYS = ("log", "message", "msg", "MESSAGE", "line", "textPayload")
_CALL = regex(
    r"\s*(?:<think>.{0,4000}</think>\s*)?(<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|<\|tool_calls?_(?:section_)?begin\|>|<tool_calls>|```(?:json)?\s*\{\s*\"name\"|\{\s*\"name\"\s*:\s*\"\w{1,64}\"\s*,\s*\"(?:arguments|parameters)\")",
    re.S,
)
"""How models of several families begin the call of a tool: a server with the right parser takes it out of the text."""


def unread_call(value: Mapping[str, Any]) -> str | None:
    """The beginning of a tool call that stands in the text of a chat answer, whose list of calls is empty; None for any other.

    >>> unread_call({"choices": [{"message": {"content": '[TOOL_CALLS][{"name": "f"}]', "tool_calls": []}, "finish_reason": "stop"}]})
    'the text of an answer is a tool call ([TOOL_CALLS]), and its list of calls is empty'
    >>> unread_call({"choices": [{"message": {"content": "Done.", "tool_calls": []}}]})
    """
    choices = value.get("choices")
    for choice in choices[:8] if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict) and isinstance(message.get("content"), str) and not message.get("tool_calls"):
            call = _CALL.match(message["content"])
            if call:
                return f"the text of an answer is a tool call ({call[1][:30].strip()}), and its list of calls is empty"
    return None


ASKS = regex(rb'"(?:prompt_logprobs"\s*:\s*[1-9t]|echo"\s*:\s*true)')
"""What a record of a request that has its prompt scored holds: lines with it are read by themselves."""


def scores_prompt(value: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a request asks for the logprobs of its prompt: `prompt_logprobs`, or its echo with `logprobs`.

    >>> scores_prompt({"params": {"echo": True, "logprobs": 1}}), scores_prompt({"echo": True}), scores_prompt({"prompt_logprobs": 0})
    (True, False, False)
    """
    if value.get("prompt_logprobs") or (value.get("echo") is True and value.get("logprobs") not in (None, False)):
        return True
    return depth < DEPTH and any(scores_prompt(entry, depth + 1) for name, entry in value.items() if isinstance(entry, dict) and is_container(name))  # fmt: skip


def _has_failed(found: Found) -> bool:
    """Whether a record is of a request that got no answer: an HTTP status of an error beside a duration; nobody counts its tokens."""
    code = found.get("status")
    return isinstance(code, int) and 400 <= code <= 599 and "latency" in found


class Lines:
    """The plain reader of lines: any line, any order, any envelope."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._clock = Clock()
        self._scored_most = 0.0

    def line(self, number_: int, raw: bytes) -> None:
        """Read one physical line."""
        body = raw.strip()
        if body[:1] in (b"{", b"["):
            value = loads(body)
            if value is not None:
                self.value(number_, value, None, body)
            elif body[:1] == b"{":
                self._requests.noted.problem(number_, "no valid JSON", body[:400].decode("utf-8", "replace"))
            else:
                self._text(number_, body, None)
        elif b"=" in body or b"{" in body:
            self._text(number_, body, None)

    def value(self, line: int, value: Any, t: float | None, body: bytes) -> None:
        """A JSON value: requests, a benchmark, or an envelope around one of them."""
        if isinstance(value, list):
            for entry in value:
                if isinstance(entry, dict):
                    self.value(line, entry, t, body)
            return
        if not isinstance(value, dict):
            return
        found = collect(value, {})
        if unread := unread_call(value):
            self._requests.noted.add("note", line, topic="call-left-in-text", text=unread)
        if "input" in found or "output" in found or _has_failed(found):
            if ASKS.search(body) and scores_prompt(value):
                self._scored(line, found)
            self._requests.add(line, found, t, body, known=True)
        elif isinstance(value.get("input_lens"), list) or isinstance(value.get("output_lens"), list):
            self._bench(line, value)
            self._summary(line, value)
        elif isinstance(value.get("completed"), int) and ("num_prompts" in value or "total_input_tokens" in value):
            self._summary(line, value)
        else:
            text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), None)
            if text is not None:
                outer = moment(found.get("start", found.get("stamp")))
                self._text(line, text.strip().encode("utf-8", "replace"), outer if outer is not None else t)

    def _scored(self, line: int, found: Found) -> None:
        """Note a request whose prompt is scored, if it got no answer or is the longest so far: of an evaluation's thousands no others say more."""
        size = number(found.get("input"))[0] or 0.0
        code = found.get("status")
        answered = isinstance(code, int) and 200 <= code < 500
        if not answered or size > self._scored_most:
            self._requests.noted.add(
                "note", line, topic="prompt-scored", value=size, text="a request asks for the logprobs of its prompt"
            )
        if answered:
            self._scored_most = max(self._scored_most, size)

    def _text(self, line: int, body: bytes, t: float | None) -> None:
        brace = body.find(b"{", 0, 200)
        if brace >= 0 and body.endswith(b"}"):
            value = loads(body[brace:])
            if isinstance(value, dict):
                outer = stamp(body[:brace].decode("utf-8", "replace"))
                self.value(line, value, outer if outer is not None else t, body)
                return
        text = body[:_LINE_CAP].decode("utf-8", "replace")
        if "\x1b" in text:
            text = ANSI.sub("", text)
        found: Found = {}
        for name, value in PAIR.findall(text):
            meaning = MEANING[name]
            if meaning is not None:
                put(found, meaning, bare_value(value))
        if "input" not in found and "output" not in found and not _has_failed(found):
            return
        if moment(found.get("start", found.get("stamp"))) is None:
            own = self._head_time(text)
            t = own if own is not None else t
        self._requests.add(line, found, t, text, known=True)

    def _head_time(self, text: str) -> float | None:
        """The stamp before the first pair."""
        first = PAIR.search(text)
        head = text[: first.start()] if first else text
        t = moment(head) if head else None
        if t is None and (match := _EPOCH_HEAD.match(head)):
            t = epoch(float(match[1]))
        if t is None and head[:1].isalpha():
            _, t, extra = peel(text)
            if t is None and "stamp" in extra and extra["stamp"][0]:
                t = self._clock.at(*extra["stamp"])
        return t

    def _summary(self, line: int, value: Mapping[str, Any]) -> None:
        """What a serving benchmark sums up: requests answered and failed, and the mean time to the first token."""
        for name, figure in sums(value):
            self._requests.noted.add("metric", line, name=name, labels=None, value=figure)

    def _bench(self, line: int, value: Mapping[str, Any]) -> None:
        """vLLM's serving benchmark: parallel arrays, one request an index; times without a unit are seconds."""
        given, made, first, steps, starts = (
            entry if isinstance(entry := value.get(name), list) else []
            for name in ("input_lens", "output_lens", "ttfts", "itls", "start_times")
        )
        # start_times are of a monotonic clock; the file's date is the end of the run
        begun = [number(entry)[0] for entry in starts]
        known = [entry for entry in begun if entry is not None]
        date = value.get("date")
        parts = re.fullmatch(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)", date) if isinstance(date, str) else None
        ended = stamp("{}-{}-{} {}:{}:{}".format(*parts.groups())) if parts else None
        lasted = number(value.get("duration"))[0]
        zero = ended - lasted - min(known) if ended is not None and lasted is not None and known else None
        ms = MEANING["latency_s"], MEANING["ttft_s"]
        for index in range(max(len(given), len(made))):
            ttft = number(_at(first, index))[0]
            gaps = _at(steps, index)
            rest = sum(number(gap)[0] or 0.0 for gap in gaps) if isinstance(gaps, list) else None
            found: Found = {"input": _at(given, index), "output": _at(made, index), "model": value.get("model_id")}
            found["input/"] = MEANING["input_len"]
            if ttft is not None:
                found["ttft"], found["ttft/"] = ttft, ms[1]
                if rest is not None:
                    found["latency"], found["latency/"] = ttft + rest, ms[0]
            at = _at(begun, index)
            self._requests.add(line, found, zero + at if zero is not None and at is not None else None, "input_lens")


def _at(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None
