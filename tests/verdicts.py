"""From text to verdict: what is first of a bundle of these files by its signs alone.

What the words of a bundle add is left out (`diagnose.Options.wording`): a twin that differs in one number has the same words, so that a
test of a sign, of a threshold or of a relation would show less of it.

What a report says beyond its ranking (advice and its replay, ledger, timeline, what to collect) is a quarter of an analysis, where
requests came in most of it: one bundle in `WHOLE_ONE_IN` gets a whole report, with `make whole` each does.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from grids import WHOLE
from oomdoc import diagnose
from oomdoc.assemble import assemble
from oomdoc.judge.rules import load_rules
from oomdoc.model import Diagnosis
from oomdoc.story import Facts

AS_EVER, SIGNS = diagnose.Options(), diagnose.Options(wording=False)
RULES = {rule.id: rule for rule in load_rules(tests=False)[0]}
WHOLE_ONE_IN = 8


@contextmanager
def ranking_alone() -> Iterator[None]:
    """Analyses work out nothing that comes after the ranking of the gravest incident. `test_diagnose.py`: the ranking is the same."""
    beyond: dict[str, Any] = {
        "situation": lambda *_: None,
        "solve": lambda first, _: first,
        "ledger": lambda *_: (),
        "unanswered": lambda _, __, ranked: ranked,
        "watch": lambda *_: (),
        "gather": lambda *_: Facts(),
        "collect_next": lambda *_: (),
        "timeline": lambda *_: {},
        "told": lambda report, _: report,
        "profile": lambda *_: {},
        "DIAGNOSED_INCIDENTS": 1,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, instead in beyond.items():
            patch.setattr(assemble, name, instead)
        yield


@contextmanager
def analysed(paths: str | Path, options: diagnose.Options = AS_EVER) -> Iterator[diagnose.Analysis]:
    """An analysis that is asked for its ranking, its answers, outcomes, what was set aside, or its tables."""
    with nullcontext() if WHOLE else ranking_alone(), diagnose.analyze(paths, options) as analysis:
        yield analysis


@contextmanager
def tables(paths: str | Path) -> Iterator[diagnose.Analysis]:
    """An analysis that is asked for its tables and views alone: one rule judges, which asks little."""
    with analysed(paths, AS_EVER if WHOLE else diagnose.Options(loaded=([RULES["shm-exhausted"]], ()))) as analysis:
        yield analysis


def ranked(folder: Path, files: Mapping[str, str]) -> tuple[Diagnosis, ...]:
    """The causes of the gravest incident of these texts by name, which are written into the folder."""
    for name, text in files.items():
        (folder / name).write_text(text)
    one_of_some = zlib.crc32(repr(sorted(files.items())).encode()) % WHOLE_ONE_IN == 0
    with (diagnose.analyze if one_of_some else analysed)(str(folder), SIGNS) as analysis:
        return analysis.report.diagnoses


def first(folder: Path, files: Mapping[str, str]) -> tuple[str, float]:
    """The cause in the first place, and its probability; `files` are texts by name, written into the folder."""
    top = ranked(folder, files)[0]
    return top.cause, top.probability


LIKELY = 0.3
"""Below it a first place is a guess between priors."""


def likely(folder: Path, files: Mapping[str, str] | None = None, **texts: str) -> str | None:
    """The cause in the first place, None where it is a guess or there is no server; `rss__csv=...` is the file rss.csv."""
    named = {name.replace("__", "."): text for name, text in texts.items()}
    best = next(iter(ranked(folder, {**(files or {}), **named})), None)
    return best.cause if best and best.probability > LIKELY else None


UP = (
    "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
    "INFO 03-02 08:00:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
    "INFO 03-02 08:01:02 [kv_cache_utils.py:864] GPU KV cache size: 390,000 tokens\n"
    "INFO:     Application startup complete.\n"
)
"""A start that came up."""


def minute(at: int, running: int, waiting: int, used: float) -> str:
    """The line of such a server at this minute past eight: requests that run and wait, and the share of the pool in use."""
    return (
        f"INFO 03-02 08:{at:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 700.0 tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: 0.0%\n"
    )


def shows(folder: Path, files: Mapping[str, str], cause: str, evidence: str) -> bool:
    """Whether a piece of evidence of a cause holds on these files, whatever it weighs: no other cause is asked, which is half of a run."""
    for name, text in files.items():
        (folder / name).write_text(text)
    with analysed(str(folder), diagnose.Options(loaded=([RULES[cause]], ()))) as analysis:
        return analysis.answers[cause][evidence] is True
