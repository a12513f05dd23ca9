"""Failures that were got over: logs of starts that failed once, where a later start came up and has not failed since.

Such a log is handed in with the others because it lay beside them. What it tells is true of another day, another model or another
setting, and is no matter of the server that is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from oomdoc.regexes import regex
from oomdoc.scene.lives import ANOTHER_DAY_S, Life
from oomdoc.scene.lookups import rows_of
from oomdoc.scene.presence import Tables, literal
from oomdoc.units import show_seconds

_TUNED = ("gpu_memory_utilization", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "enforce_eager", "kv_cache_dtype", "quantization", "tensor_parallel_size",
          "pipeline_parallel_size", "cpu_offload_gb", "swap_space", "max_loras", "limit_mm_per_prompt", "speculative_config", "version")  # fmt: skip
"""Settings that somebody changes who ran out of memory."""
TRY_S = 3600.0
"""A log that goes on for an hour is of a server that is used; judged: who tries a setting looks whether it comes up, and sends a request."""
_RUN = regex(r"(?P<stem>.*?)(?P<number>\d{4,10})\.\w{1,8}$")


def got_over(store: Tables, lives: Sequence[Life]) -> dict[str, str]:
    """Logs of another day in which a start failed, where a later one came up and has not failed since, or failed with another model.

    Of another model only where its own log goes on to a server that came up, or the later one failed: that is asked about then. A server
    that died while it served may die again, however long the next one has been up, unless somebody has changed its settings since. One that was
    given another setting, and of whose work nothing is shown, is a try: what failed without it is what is asked about. An argument that the
    engine refused, in a source that tells of nothing else, is over with the next run of the same script that came up.
    """
    timed = [life for life in lives if life.begin_t is not None]
    newest = max(timed, key=lambda life: (life.begin_t or 0.0, life.id), default=None)
    if newest is None or all(life.source == newest.source for life in lives):
        return {}
    models = models_of(store)
    if newest.end == "failed":
        return _of_an_earlier_model(lives, newest, models)
    if not newest.served or newest.end == "killed":
        return {}
    settings, at_work, refused = _settings(store), _at_work(store, lives), _refused_arguments(store)
    found: dict[str, str] = {}
    for source in sorted({life.source for life in lives} - {newest.source}):
        own = [life for life in lives if life.source == source]
        another = source in models and models[source] != models.get(newest.source, models[source])
        if another and not (own[-1].served and own[-1].end in ("open", "stopped")):
            continue  # that another model's server came up says nothing of it, where its own never did
        bad = [life for life in own if life.end in ("failed", "killed")]
        before = _before(own, newest)
        if source in refused and numbered_before(source, newest.source):
            found[source] = f"an argument was refused, and {newest.source}, a later run of the same, came up"
        old, new = settings.get(source, {}), settings.get(newest.source, {})
        changed = [flag for flag in _TUNED if old and new and old.get(flag) != new.get(flag)]
        if changed and newest.source not in at_work:
            continue  # nobody tells that it is used
        if bad and before > ANOTHER_DAY_S and not any(life.served for life in bad):
            found[source] = f"a start that failed {show_seconds(before)} before the server of {newest.source} came up"
        elif bad and before > ANOTHER_DAY_S and changed:
            found[source] = (
                f"a failure {show_seconds(before)} before the server of {newest.source} came up with another {changed[0]}"
            )
    return found


def _before(own: Sequence[Life], newest: Life) -> float:
    """Seconds from the last end of these lives to the beginning of the newest; far below zero where an end is not told."""
    last = max((life.end_t if life.end_t is not None else math.inf for life in own), default=math.inf)
    return (newest.begin_t or 0.0) - last


def models_of(store: Tables) -> dict[str, str]:
    """The model that each source names first."""
    named: dict[str, str] = {}
    for row in rows_of(store, "engine_flag", "source, value", "flag IN ('model', 'model_tag', 'served_model_name')"):
        named.setdefault(row["source"], _model(str(row["value"])))
    return named


def _model(value: str) -> str:
    return value.rstrip("/").rsplit("/", 1)[-1].lower()


def _settings(store: Tables) -> dict[str, dict[str, str]]:
    """Those of each source, as it tells them last."""
    found: dict[str, dict[str, str]] = {}
    names = ", ".join(map(literal, _TUNED))
    for row in rows_of(store, "engine_flag", "source, flag, value", f"flag IN ({names})"):
        found.setdefault(row["source"], {})[row["flag"]] = str(row["value"]).lower()
    return found


def _at_work(store: Tables, lives: Sequence[Life]) -> set[str]:
    """Logs of servers that are used: with statistics of their load, or that go on for an hour; all, where somebody scrapes one."""
    if "metric" in store.filled:
        return {life.source for life in lives}
    found = {row["source"] for row in rows_of(store, "engine_stat", "DISTINCT source")}
    return found | {life.source for life in lives if (life.end_t or 0.0) - (life.begin_t or life.end_t or 0.0) > TRY_S}


def numbered_before(source: str, other: str) -> bool:
    """Whether two logs are called alike but for the number of a run, and the first has the lower one.

    >>> numbered_before("out/chat.4711.err", "out/chat.4720.out"), numbered_before("chat.4711.out", "embed.4720.out")
    (True, False)
    """
    one, its = _RUN.match(source), _RUN.match(other)
    return bool(one and its and one["stem"] == its["stem"] and int(one["number"]) < int(its["number"]))


def _refused_arguments(store: Tables) -> set[str]:
    """Sources that tell of an argument which the engine refused, and of no other failure."""
    failed = {row["source"] for table in ("oom", "startup_check") for row in rows_of(store, table, "DISTINCT source")}
    kinds: dict[str, set[str]] = {}
    for row in rows_of(store, "log_error", "DISTINCT source, kind", "kind NOT IN ('echo', 'client')"):
        kinds.setdefault(row["source"], set()).add(row["kind"])
    return {source for source, told in kinds.items() if told == {"bad-argument"}} - failed


def _of_an_earlier_model(lives: Sequence[Life], newest: Life, models: Mapping[str, str]) -> dict[str, str]:
    """Logs of starts that failed on another day and with another model than the newest one, which failed as well."""
    found: dict[str, str] = {}
    model = models.get(newest.source)
    for source in sorted({life.source for life in lives} - {newest.source}):
        own = [life for life in lives if life.source == source]
        before = _before(own, newest)
        if (
            model
            and models.get(source, model) != model
            and before > ANOTHER_DAY_S
            and not any(life.served for life in own)
        ):
            found[source] = (
                f"a start of {models[source]} {show_seconds(before)} before {newest.source}, which failed with another model"
            )
    return found
