"""Whether a bundle shows an LLM server at all. Without one nothing in it can be a server's failure."""

from __future__ import annotations

import re
from typing import Any, Protocol

from oomdoc.scene.places import ENGINE, is_engine

SIGNS = (
    "milestone",
    "engine_figure",
    "engine_stat",
    "startup_check",
    "preemption",
    "crash_step",
    "request",
)
"""Tables that only an LLM server, or what drives it, fills."""

_WORDS = re.compile(
    r"(?i)vllm|sglang|triton|\btgi\b|trtllm|tensorrt|lmcache|llama|qwen|mistral|deepseek|gemma|\bllms?\b|inference|engine ?core|"
    r"kv[ _-]?cache|prefix cache|max_model_len|gpu_memory_utilization|tensor[ _-]parallel|\btokens?/s\b|\bmodel[ _-](?:weights|loading)|"
    r"\bworker_(?:rss|proc)|c10::|dcgm_fi|\bnccl\b|\bxid\b"
)
"""Words of the field. They count only where nothing structured speaks: a person's text, the name of a pod, an event."""
_TRAINER = re.compile(
    r"(?i)loss\.backward|optimizer\.step|\btrainer\b|training_step|deepspeed|accelerate launch|\bepochs?\b|finetun|peft|lightning"
)
_LISTED = "origin = 'file' AND flag = 'version'"
"""The release in a list of installed packages: nothing says that it ran."""
_MACHINE = "('host-size', 'shm-size', 'container-limit', 'swap-space', 'cpu-pool-default', 'pinned-alloc')"
"""Topics that tools state of any machine: nobody wrote them about a server."""
_TEXTS = {
    "host_event": "concat_ws(' ', process, text)",
    "log_error": "concat_ws(' ', exception, text)",
    "note": "text",
    "cluster_event": "concat_ws(' ', object, message)",
    "container": "concat_ws(' ', pod, name, image)",
    "scaler": "concat_ws(' ', name, target, text)",
    "process_exit": "name",
    "process_memory": "concat_ws(' ', name, state)",
}


class Tables(Protocol):
    """What is asked of a store."""

    filled: set[str]

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query as mappings."""


def shows_server(store: Tables) -> bool:
    """Whether anything in the tables is an LLM server's; True also where nothing was understood that could be somebody else's.

    Structure counts first: rows that only engines fill, metrics and containers of theirs, names of their processes, frames of
    their code. An allocator's message of torch counts unless a training loop stands in its stack. Then words, and the name
    that a person gave to a file.
    """
    if any(table in store.filled for table in SIGNS):
        return True
    if "engine_flag" in store.filled and store.rows_of(f"SELECT 1 FROM main.engine_flag WHERE NOT ({_LISTED}) LIMIT 1"):
        return True
    if "oom" in store.filled:
        return not _trains(store)
    for table, where in (
        ("metric", "name LIKE 'vllm%'"),
        ("container", "serves OR gpus > 0"),
        ("frame", "file ILIKE '%vllm%'"),
    ):
        if table in store.filled and store.rows_of(f"SELECT 1 FROM main.{table} WHERE {where} LIMIT 1"):
            return True
    if (
        "process_memory" in store.filled
        and len(store.rows_of("SELECT DISTINCT name FROM main.process_memory LIMIT 9")) <= 4
    ):
        return True  # few names are a measured series of somebody who asks; a list of processes has many
    for table in ("gpu_process", "process_memory"):
        if table in store.filled and any(
            is_engine(row["name"]) for row in store.rows_of(f"SELECT DISTINCT name FROM main.{table}")
        ):
            return True
    if "host_event" in store.filled and any(
        is_engine(row["process"]) is not False
        for row in store.rows_of("SELECT DISTINCT process FROM main.host_event WHERE process IS NOT NULL")
    ):
        return True
    if any(
        ENGINE.search(row["source"].rsplit("/", 1)[-1])
        for row in store.rows_of("SELECT source FROM main.source WHERE kind <> 'document'")
    ):
        return True
    if store.rows_of(
        "SELECT 1 FROM main.source WHERE names_engine AND kind NOT IN ('document', 'source-code', 'chat', 'package-list') LIMIT 1"
    ):
        return True
    if any(
        _WORDS.search(row["words"] or "")
        for table in _TEXTS
        if table in store.filled
        for row in store.rows_of(f"SELECT DISTINCT {_TEXTS[table]} AS words FROM main.{table} LIMIT 2000")
    ):
        return True
    return not _shows_others(store)


def _shows_others(store: Tables) -> bool:
    """Whether something in the tables is another program's for sure: its name, its container, its log.

    A person's few lines about a server often name none of its words; they are no proof of another program.
    """
    if "allocator_stat" in store.filled:
        return False
    if "note" in store.filled and store.rows_of(f"SELECT 1 FROM main.note WHERE topic NOT IN {_MACHINE} LIMIT 1"):
        return False
    for table, column in (("host_event", "process"), ("gpu_process", "name"), ("process_exit", "name")):
        if table in store.filled:
            names = [
                row["name"]
                for row in store.rows_of(
                    f"SELECT DISTINCT {column} AS name FROM main.{table} WHERE {column} IS NOT NULL"
                )
            ]
            if any(is_engine(name) is None for name in names):
                return False  # an interpreter: it may be a server's
            if any(name.strip("-[]") for name in names):
                return True
    # workloads of a cluster, none of which serves
    if any(table in store.filled for table in ("container", "scaler", "cluster_event")):
        return True
    # a program's own log that says it could get no memory
    return "host_event" in store.filled and bool(
        store.rows_of("SELECT 1 FROM main.host_event WHERE kind = 'host-alloc-failed' LIMIT 1")
    )


def _trains(store: Tables) -> bool:
    """Whether the frames or errors around torch's message are those of a training loop."""
    for table, words in (("frame", "concat_ws(' ', function, file)"), ("log_error", "text"), ("note", "text")):
        if table in store.filled and any(
            _TRAINER.search(row["words"] or "")
            for row in store.rows_of(f"SELECT DISTINCT {words} AS words FROM main.{table} LIMIT 2000")
        ):
            return True
    return False
