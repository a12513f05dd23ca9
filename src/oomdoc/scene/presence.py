"""Whether a bundle shows an LLM server at all. Without one nothing in it can be a server's failure."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any, Protocol

from oomdoc.regexes import regex
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

FIELD = regex(
    r"(?i)vllm|sglang|triton|\btgi\b|trtllm|tensorrt|lmcache|llama|qwen|mistral|deepseek|gemma|\bllms?\b|inference|engine ?core|"
    r"kv[ _-]?cache|prefix cache|max_model_len|gpu_memory_utilization|tensor[ _-]parallel|\btokens?/s\b|\bmodel[ _-](?:weights|loading)|"
    r"\bray(?:cluster|service|-head|-worker)|\bworker_(?:rss|proc)|c10::|dcgm_fi|\bnccl\b|\bxid\b"
)
"""Words of the field. They count only where nothing structured speaks: a person's text, the name of a pod, an event."""
TRAINER = regex(
    r"(?i)loss\.backward|optimizer\.step|\btrainer\b|training_step|deepspeed|comfyui|stable[- ]diffusion|diffusers/pipelines|webui|accelerate launch|\bepochs?\b|finetun|peft|lightning|(?:^|[/ ])(?:\w{1,20}_)?train(?:_\w{1,20})?\.py"
)
LISTED = "origin = 'file' AND flag = 'version'"
"""The release in a list of installed packages: nothing says that it ran."""
JAVA = r"regexp_matches(exception, '^(?:java|javax|scala|org\.[a-z]+)\.')"
"""Exceptions of a Java program."""
_MACHINE = "('host-size', 'host-in-use', 'host-idle', 'host-ready', 'shm', 'shm-size', 'shm-used', 'disk-free', 'shm-file', 'container-limit', 'told-limit', 'time-limit-reached', 'swap-space', 'cpu-pool-default', 'pinned-alloc', 'link-speed', 'link-rate', 'read-rate', 'cpu-periods', 'cpu-throttled', 'free-blocks', 'compaction', 'waits-for', 'boot-time', 'kernel-log-from', 'log-of-pod', 'log-zone', 'told-day', 'unit-started', 'health-check')"
"""Topics that tools state of any machine, and any program of itself: nobody wrote them about a server."""
TEXTS = {
    "host_event": "concat_ws(' ', process, text)",
    "log_error": "concat_ws(' ', exception, text)",
    "note": "text",
    "cluster_event": "concat_ws(' ', object, message)",
    "container": "concat_ws(' ', pod, name, image)",
    "scaler": "concat_ws(' ', name, target, text)",
    "process_exit": "name",
    "process_memory": "concat_ws(' ', name, state)",
}


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


class Tables(Protocol):
    """What is asked of a store."""

    filled: set[str]

    @property
    def parted(self) -> Set[str]:
        """Tables whose rows stand in several parts, so that no row has a place of its own."""

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query as mappings."""


@dataclass(frozen=True)
class _Asked:
    """The tables without the sources that are another program's."""

    store: Tables
    but: frozenset[str]

    def rows(self, table: str, columns: str, where: str = "true") -> list[dict[str, Any]]:
        """Rows of a table; none of one that is empty."""
        if table != "source" and table not in self.store.filled:
            return []
        left_out = ", ".join(map(literal, sorted(self.but)))
        apart = f" AND source NOT IN ({left_out})" if left_out else ""
        return self.store.rows_of(f"SELECT {columns} FROM main.{table} WHERE ({where}){apart}")

    def any(self, table: str, where: str = "true") -> bool:
        """Whether a table has such a row."""
        if where == "true" and not self.but:
            return table in self.store.filled
        return (
            bool(self.rows(table, "any_value(source) AS source", f"{where}")[0]["source"])
            if table == "source" or table in self.store.filled
            else False
        )


def shows_server(store: Tables, strangers: Iterable[str] = ()) -> bool:
    """Whether anything in the tables is an LLM server's; True also where nothing was understood that could be somebody else's.

    Structure counts first: rows that only engines fill, metrics and containers of theirs, names of their processes, frames of
    their code. An allocator's message of torch counts unless a training loop stands in its stack. Then words, and the name
    that a person gave to a file. `strangers` are sources known to be another program's, which are not asked.
    """
    asked = _Asked(store, frozenset(strangers))
    if _documents(asked):
        return False
    if any(asked.any(table) for table in SIGNS):
        return True
    if asked.any("engine_flag", f"NOT ({LISTED})"):
        return True
    if asked.any("oom"):
        return not _trains(asked)
    for table, where in (
        ("metric", "name LIKE 'vllm%'"),
        ("container", "serves OR gpus > 0"),
        ("frame", "file ILIKE '%vllm%'"),
    ):
        if asked.any(table, where):
            return True
    # what a host had left is told of every machine, and shows no server
    if asked.any("process_memory", _HELD) and len(asked.rows("process_memory", "DISTINCT name", _HELD)) <= 4:
        return True  # few names are a measured series of somebody who asks; a list of processes has many
    for table in ("gpu_process", "process_memory"):
        if any(is_engine(row["name"]) for row in asked.rows(table, "DISTINCT name")):
            return True
    if any(
        is_engine(row["process"]) is not False
        for row in asked.rows("host_event", "DISTINCT process", "process IS NOT NULL")
    ):
        return True
    if any(
        ENGINE.search(row["source"].rsplit("/", 1)[-1]) for row in asked.rows("source", "source", "kind <> 'document'")
    ):
        return True
    if asked.any("source", "names_engine AND kind NOT IN ('document', 'source-code', 'chat', 'package-list')"):
        return True
    if any(
        FIELD.search(row["words"] or "")
        for table, words in TEXTS.items()
        for row in asked.rows(table, f"DISTINCT {words} AS words")[:2000]
    ):
        return True
    return not _shows_others(asked)


PAGES = 5
"""Documents and sources from which a bundle may be a program's documentation; people put a runbook or two beside their logs."""
_WRITTEN = "kind IN ('document', 'source-code')"
_HELD = "(name IS NOT NULL OR resource IS DISTINCT FROM 'host-available')"
_HAPPENED = (*SIGNS, "oom", "metric", "gpu_sample", "gpu_process", "process_memory", "host_event", "cluster_event")
"""Tables that something which ran fills; settings, machines and statements also stand in examples."""


def _documents(asked: _Asked) -> bool:
    """Whether the bundle is the documentation of a program: most of it are pages, and nothing in it ran."""
    pages, others = (len(asked.rows("source", "source", where)) for where in (_WRITTEN, f"NOT {_WRITTEN} AND rows > 0"))
    return pages >= PAGES and pages >= 3 * others and not any(asked.any(table) for table in _HAPPENED)


def _shows_others(asked: _Asked) -> bool:
    """Whether something in the tables is another program's for sure: its name, its container, its log.

    A person's few lines about a server often name none of its words; they are no proof of another program.
    """
    if asked.any("allocator_stat"):
        return False
    if asked.any("note", f"topic NOT IN {_MACHINE}"):
        return False
    for table, column in (("host_event", "process"), ("gpu_process", "name"), ("process_exit", "name")):
        names = [row["name"] for row in asked.rows(table, f"DISTINCT {column} AS name", f"{column} IS NOT NULL")]
        if any(is_engine(name) is None for name in names):
            return False  # an interpreter: it may be a server's
        if any(name.strip("-[]") for name in names):
            return True
    # workloads of a cluster, none of which serves
    if any(asked.any(table) for table in ("container", "scaler", "cluster_event")):
        return True
    if asked.any("log_error", JAVA):
        return True
    # a program's own log that says it could get no memory
    return asked.any("host_event", "kind = 'host-alloc-failed'")


def _trains(asked: _Asked) -> bool:
    """Whether the frames or errors around torch's message are those of a training loop."""
    for table, words in (("frame", "concat_ws(' ', function, file)"), ("log_error", "text"), ("note", "text")):
        if any(TRAINER.search(row["words"] or "") for row in asked.rows(table, f"DISTINCT {words} AS words")[:2000]):
            return True
    return False
