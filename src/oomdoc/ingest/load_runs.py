"""Runs of a load generator: what its command asks for, and what it prints of the answers.

    $ vllm bench serve --random-input-len 4096 --random-output-len 256 --num-prompts 200 --max-concurrency 64
    Mean TTFT (ms):                          14122.31

    $ python3 multi-round-qa.py --num-users 320 --shared-system-prompt 1000 --user-history-prompt 20000 --answer-len 100
    Average TTFT: 6.4207s

Each run is a row of `load_run`: how many ask at a time or come back, how long a prompt is, how long the first token took. Options are
taken by the words of their names and not by the tool (vLLM's and SGLang's benchmarks, genai-perf, llmperf, evalscope, locust and
their like differ in little else); what was printed, by the grammar of names that tables go by. A command whose answers nobody shows is a
run as well, without a time; a summary without a command is one where it names how many asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.text_form import is_log_line
from oomdoc.ingest.vocabulary.words import named, word_set
from oomdoc.regexes import regex

TELLING = regex(
    rb"(?i)--?(?:max-|num-|request-|n-)?(?:concurren\w+|clients?|users|prompts?|parallel|rate|qps|vus)\b|concurrency\W{1,4}\d|\bTTFT\b|time to first token"
)
"""Whether a text holds anything of this kind: one search for each short text."""

_LINE = 2000
_MOST = 200
"""Runs of one text: a sweep has some dozens."""

_OPTION = regex(r"(?<![\w-])--?(?P<name>[a-zA-Z][\w.-]{0,60})(?:[ =]\s?)[\"']?(?P<value>\d[\d_,]{0,14}(?:\.\d{1,6})?|inf)(?![\w.]*\w)")  # fmt: skip
_PRINTED = regex(
    r"\W{0,8}(?P<name>[A-Za-z][\w /%().,@-]{1,60}?)\s{0,40}[:=]\s{0,60}(?P<value>\d{1,12}(?:,\d{3})*(?:\.\d{1,9})?|inf)\s?(?P<unit>us|µs|ms|msecs?|s|secs?|seconds?|min)?\W{0,3}$"
)
_HEADING = regex(
    r"\W{0,8}(?:\w+ ){0,3}?(?:(?P<before>\d{1,6}) (?:concurrent |parallel |simultaneous )?(?P<what>clients?|users?|sessions?|streams?|callers|agents)\b|(?P<name>concurrency|clients|users|parallel|vus)\W{0,3}(?P<after>\d{1,6})\b)[^.?!]{0,40}$",
    re.I,
)

_SERVER = regex(
    r"\b(?:vllm serve|api_server|launch_server|sglang serve|llama-server|trtllm-serve|text-generation-launcher|ray start|lmdeploy serve)\b"
)
"""A server's command, whose options have like names and ask for nothing."""
_GENERATOR = regex(
    r"(?i)bench|load|perf|stress|locust|\bk6\b|\bwrk\b|\bclient|(?<![a-z])qa(?![a-z])|\bsend|\btest|\beval"
)
"""What programs that ask call themselves."""

_AT_A_TIME = named("at_a_time")
_RETURNING = word_set("users user sessions conversations agents documents docs groups prefixes tenants")
_LENGTH = word_set("len length lengths tokens token mean prompt input output isl osl")
_PROMPT = word_set("input prompt question isl document suffix")
_SHARED = word_set("system shared common prefix")
_OWN = word_set("history")
_OUTPUT = word_set("output answer osl completion response generation")
_NO_LENGTH = word_set("path name type format min stddev std range ratio seed port num number count dataset max")
_SENT = word_set("prompts requests request prompt number")
_LOADED = word_set("num number n count total max request")


def asked(options: Sequence[tuple[str, str]]) -> dict[str, float]:
    """What the options of a load generator's command ask for; empty where it is none.

    >>> asked([("random-input-len", "4096"), ("random-output-len", "256"), ("num-prompts", "200"), ("max-concurrency", "64")])
    {'prompt_tokens': 4096.0, 'output_tokens': 256.0, 'requests': 200.0, 'clients': 64.0}
    >>> asked([("num-users", "320"), ("shared-system-prompt", "1000"), ("user-history-prompt", "20000"), ("answer-len", "100"), ("qps", "1.2")])
    {'users': 320.0, 'shared_tokens': 1000.0, 'prompt_tokens': 21000.0, 'output_tokens': 100.0, 'rate_per_s': 1.2}
    >>> asked([("max-model-len", "8192"), ("max-num-seqs", "64"), ("port", "8000")]), asked([("num-prompts", "4")])
    ({}, {'requests': 4.0})
    """
    found: dict[str, float] = {}
    each = False
    for name, value in options:
        words = grammar.pieces(name.replace("-", " "))
        among = set(words)
        if value == "inf" or among & {"model", "seqs", "batched", "gpu", "memory", "port", "tensor", "timeout"}:
            continue
        amount = float(value.replace(",", "").replace("_", ""))
        counted = among & _LOADED or len(words) == 1
        if among & _AT_A_TIME and not among & _LENGTH:
            found.setdefault("clients", amount)
        elif among & _RETURNING and counted and not among & (_LENGTH | {"per"}):
            found.setdefault("users", amount)
            each = each or bool(among & {"prefixes", "groups"})
        elif among & {"qps", "rps"} or words in (["request", "rate"], ["rate"]):
            found.setdefault("rate_per_s", amount)
        elif among & _SENT and counted and len(words) <= 2 and not among & _RETURNING:
            found.setdefault("requests", amount)
        elif among & _OUTPUT and among & _LENGTH and not among & _NO_LENGTH:
            found.setdefault("output_tokens", amount)
        elif among & _LENGTH and (among & _OWN or (among & (_SHARED | _PROMPT) and not among & _NO_LENGTH)):
            if among & _SHARED and not among & _OWN:
                found["shared_tokens"] = found.get("shared_tokens", 0.0) + amount
            found["prompt_tokens"] = found.get("prompt_tokens", 0.0) + amount
    if each:
        found.pop("shared_tokens", None)  # of each of those who come back, and not of all
    return found


def _commanded(line: str) -> dict[str, float]:
    """What a line asks for that is a load generator's command; empty for another."""
    if "--" not in line or _SERVER.search(line) or not _GENERATOR.search(line):
        return {}
    return asked([(found["name"], found["value"]) for found in _OPTION.finditer(line)])


class _Run:
    """One run as far as it was read."""

    def __init__(self, line: int, asked: dict[str, float], text: str) -> None:
        self.line, self.asked, self.text = line, asked, text
        self.got: dict[str, float] = {}
        self.seen: set[str] = set()

    @property
    def telling(self) -> bool:
        callers = self.asked.keys() & {"clients", "users", "rate_per_s", "requests"}
        return bool(callers) and (bool(self.got) or "prompt_tokens" in self.asked)


def _printed(run: _Run, found: re.Match[str]) -> bool:
    """Book a printed figure; False where the run has it already, so that another run's summary begins."""
    name, value, amount = found["name"].strip(), found["value"], float(found["value"].replace(",", ""))
    words = grammar.pieces(name)
    among = set(words)
    plain = " ".join(words)
    if plain in run.seen:
        return False
    quantity, unit = grammar.service(name)
    seconds = grammar.seconds_of(f"{value} {found['unit'] or ''}", unit)
    if quantity and seconds is not None and seconds > 0 and not among & {"std", "stddev", "min", "p", "percentile"}:
        # of a mean and a median the first that is printed: both tell what a request usually takes
        run.got.setdefault(quantity, seconds)
    elif value == "inf":
        return True
    elif among & {"concurrency", "parallelism"} and not among & {"peak", "achieved", "actual"}:
        if run.asked.setdefault("clients", amount) != amount:
            return False
    elif among & {"successful", "completed", "succeeded"} and among & {"requests", "request"}:
        run.got["done"] = amount
    elif {"input", "tokens", "total"} <= among:
        run.got["read_tokens"] = amount
    elif {"tokens", "total"} <= among and among & {"generated", "output"}:
        run.got["written_tokens"] = amount
    else:
        return True
    run.seen.add(plain)
    return True


def _joined(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, those that a backslash goes on in put together."""
    held, begun = "", 0
    for number, line in enumerate(lines, 1):
        begun = begun or number
        text = line.rstrip("\r")
        if text.endswith("\\") and len(held) < _LINE:
            held += text[:-1] + " "
            continue
        yield begun, held + text
        held, begun = "", 0
    if held:
        yield begun, held


def runs(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The runs in a text whose first line has number 1, as rows of `load_run`.

    >>> text = ["$ bench --num-users 40 --user-history-prompt 9000", "Average TTFT: 5.5s", "$ bench --num-users 4 --user-history-prompt 9000", "Average TTFT: 0.2 s"]
    >>> [(run["line"], run["users"], run["prompt_tokens"], run["ttft_s"]) for run in runs(text)]
    [(1, 40, 9000, 5.5), (3, 4, 9000, 0.2)]
    """
    run: _Run | None = None
    base: dict[str, float] = {}
    told: list[_Run] = []

    def begin(number: int, line: str, asked: dict[str, float]) -> _Run:
        told.append(_Run(number, asked, line.strip()))
        return told[-1]

    for number, line in _joined(lines):
        if len(line) > _LINE or is_log_line(line) or len(told) >= _MOST:
            continue
        options = _commanded(line)
        if options:
            run, base = begin(number, line, options), options
            continue
        heading = None if ":" in line and _PRINTED.match(line) else _HEADING.match(line) if len(line) <= 120 else None
        if heading:
            returning = (heading["what"] or heading["name"]).lower().rstrip("s") in ("user", "agent", "session")
            run = begin(
                number,
                line,
                {**base, "users" if returning else "clients": float(heading["before"] or heading["after"])},
            )
            continue
        found = _PRINTED.match(line)
        if not found:
            continue
        run = run or begin(number, line, dict(base))
        if not _printed(run, found):
            # the same figure again: the summary of another run, of the same lengths and of another number of callers
            run = begin(
                number, line, {name: amount for name, amount in base.items() if name not in ("clients", "users")}
            )
            _printed(run, found)
    for nth, one in enumerate((run for run in told if run.telling), 1):
        yield _row(nth, one)


_NUMBERS = {word: number for number, word in enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"], 2)} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "eighty": 80, "hundred": 100}  # fmt: skip
_RETURNS = "tenants customers chats threads conversations sessions agents assistants bots personas documents docs manuals handbooks contracts books files texts instructions prefixes templates repositories repos projects dossiers"
"""What comes back with what it brought before: who talks, and what is talked about."""
_SET = regex(
    rf"(?<![\w.,-])(?P<many>\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|{'|'.join(_NUMBERS)}) (?:(?!requests|questions|GPUs|of\b)[\w'-]{{2,20}} ){{0,3}}?(?:{'|'.join(_RETURNS.split())}|(?:system|standing|fixed) prompts)\b",
    re.I,
)
_SIZE = r"(?P<size>\d{1,3}(?:,\d{3})+|\d{1,7}(?:\.\d{1,2})?)\s?(?P<kilo>k)?[ -]tokens?\b"
_DIRECTLY = regex(rf"\W{{0,3}}(?:of|with|at|\(|[àx]) ?(?:about|some|around|roughly|exactly|nearly|~|≈)? ?{_SIZE}", re.I)
_EACH = regex(rf"[^.;!?]{{0,60}}?\b(?:each|every|own)\b(?:[^.;!?]|(?<=\d)[.]){{0,90}}?{_SIZE}", re.I)
_ONCE = regex(
    r"\b(?:once|one time|never again|all different|unique|in parallel|at a time|at once|concurrent\w*|in flight)\b",
    re.I,
)
_SENTENCE = regex(r"(?<=[.!?])\s{1,4}(?=[A-Z0-9])|\n\s{0,8}(?:\n|[*-]\s)")


def said_sets(text: str) -> Iterator[dict[str, Any]]:
    """What comes back with what it brought before, as a sentence counts it: how many, and how many tokens each has.

    >>> [(row["users"], row["prompt_tokens"]) for row in said_sets("It is 16 machine manuals of about 9,600 tokens each. Dozens ask.")]
    [(16, 9600)]
    >>> [(row["users"], row["prompt_tokens"]) for row in said_sets("240 tenants, every tenant has its own\\ninstruction of 4,800 tokens, and 600 tokens of ticket.")]
    [(240, 4800)]
    >>> list(said_sets("300 documents of 9,000 tokens, each is read once.")), list(said_sets("64 requests of 800 tokens each."))
    ([], [])
    """
    at = 0
    for piece in _SENTENCE.split(text):
        place = text.find(piece, at)
        at = place + len(piece)
        sentence = " ".join(piece.split())
        if len(sentence) > _SENTENCE_MOST or _ONCE.search(sentence) or is_log_line(piece.strip().split("\n")[0]):
            continue
        for found in _SET.finditer(sentence):
            rest = sentence[found.end() :]
            size = _DIRECTLY.match(rest) or _EACH.match(rest)
            many = _NUMBERS.get(found["many"].lower()) or int(found["many"].replace(",", ""))
            if size is None or many < _SEVERAL:
                continue
            tokens = float(size["size"].replace(",", "")) * (1000 if size["kilo"] else 1)
            if tokens >= _SEVERAL:
                line = text.count("\n", 0, place + max(piece.find(found["many"]), 0)) + 1
                yield {"line": line, "users": many, "prompt_tokens": round(tokens), "text": sentence[:300]}
                break


_SEVERAL = 2
_SENTENCE_MOST = 500


def _row(nth: int, run: _Run) -> dict[str, Any]:
    wanted, got = run.asked, run.got
    done = got.get("done")
    prompt, output = wanted.get("prompt_tokens"), wanted.get("output_tokens")
    if done:  # what was counted is better than what was asked for: lengths vary
        prompt = got["read_tokens"] / done if "read_tokens" in got else prompt
        output = got["written_tokens"] / done if "written_tokens" in got else output
    whole = {"clients": wanted.get("clients"), "users": wanted.get("users"), "requests": wanted.get("requests"), "done": done,
             "prompt_tokens": prompt, "shared_tokens": wanted.get("shared_tokens"), "output_tokens": output}  # fmt: skip
    return {
        "line": run.line, "run": nth, "rate_per_s": wanted.get("rate_per_s"),
        "ttft_s": got.get("ttft_s"), "tpot_s": got.get("tpot_s"), "latency_s": got.get("latency_s"), "text": run.text[:300],
        **{name: None if amount is None else round(amount) for name, amount in whole.items()},
    }  # fmt: skip


def read(data: bytes) -> Iterator[Batch]:
    """The runs in a short text whose first line has number 1."""
    rows = Rows()
    for row in runs(data.decode("utf-8", "replace").split("\n")):
        rows.add("load_run", **row)
    yield from rows.take()


SAID = regex(rb"(?i)\d[\d,.]{0,9}\s?k?[ -]tokens?\b")
"""Whether a text may count what comes back: one search for each short text."""


def said(data: bytes) -> Iterator[Batch]:
    """The sets that the sentences of a short text count."""
    rows = Rows()
    for nth, row in enumerate(said_sets(data.decode("utf-8", "replace")), _MOST):
        rows.add("load_run", run=nth, **row)
    yield from rows.take()
