"""From text to verdict: what is first of a bundle of these files by its signs alone.

What the words of a bundle add is left out (`diagnose.Options.wording`): a twin that differs in one number has the same words, so that a
test of a sign, of a threshold or of a relation would show less of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oomdoc import diagnose
from oomdoc.judge.rules import load_rules

SIGNS = diagnose.Options(wording=False)
RULES = {rule.id: rule for rule in load_rules(tests=False)[0]}


def first(folder: Path, files: Mapping[str, str]) -> tuple[str, float]:
    """The cause in the first place, and its probability; `files` are texts by name, written into the folder."""
    for name, text in files.items():
        (folder / name).write_text(text)
    with diagnose.analyze(str(folder), SIGNS) as analysis:
        top = analysis.report.diagnoses[0]
        return top.cause, top.probability


LIKELY = 0.3
"""Below it a first place is a guess between priors."""


def likely(folder: Path, files: Mapping[str, str] | None = None, **texts: str) -> str | None:
    """The cause in the first place, None where it is a guess or there is no server; `rss__csv=...` is the file rss.csv."""
    for name, text in {**(files or {}), **{name.replace("__", "."): text for name, text in texts.items()}}.items():
        (folder / name).write_text(text)
    with diagnose.analyze(str(folder), SIGNS) as analysis:
        best = next(iter(analysis.report.diagnoses), None)
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
    with diagnose.analyze(str(folder), diagnose.Options(loaded=([RULES[cause]], ()))) as analysis:
        return analysis.answers[cause][evidence] is True
