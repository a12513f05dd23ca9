"""Sources of a bundle that are about another program than its server: a web shop's pods, a trainer, another unit's counters.

A bundle is handed in because of a server. Where one source shows it and another source names programs that are none, the second
source is about those, whatever it tells: a kill, a probe, an autoscaler. Nothing is decided where no other source could be the server's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from oomdoc.regexes import regex
from oomdoc.scene.got_over import got_over, models_of
from oomdoc.scene.kin import Kin, words_of
from oomdoc.scene.lives import WENT_ON_S, Life, in_year_of, long_before
from oomdoc.scene.places import JOB_LOG, SAME_SIZE, is_engine, workload_of
from oomdoc.scene.presence import FIELD, JAVA, LISTED, SIGNS, TEXTS, TRAINER, Tables, literal
from oomdoc.scene.told import alike, answered, is_of_client, is_quoted, said_by
from oomdoc.units import show_bytes, show_seconds

FIELD_OF_ENGINE = regex(r"(?i)\bvllm\b|engine ?core|\bworker_?(?:tp|proc|wrapper)|ray::")
"""Words of the engine's own processes."""
_READ = "kind NOT IN ('document', 'source-code', 'chat', 'package-list')"
"""Not those sources in which everything is a quotation."""


@dataclass(frozen=True)
class Others:
    """What is the server's and what is not, by source: the names it goes by, strangers with the reason, and whether any source is left for it."""

    kin: Kin = field(default_factory=Kin)
    strangers: Mapping[str, str] = field(default_factory=dict)


_NAMED = {
    "container": "concat_ws(' ', name, image)",
    "cluster_event": "regexp_replace(coalesce(object, ''), '^.*/', '')",
    "scaler": "target",
    "process_exit": "name",
    "host_event": "process",
}
"""Columns that name whom a row is about."""


def others(store: Tables, lives: Sequence[Life]) -> Others:
    """The sources that are about other programs or other servers, and the names that the server goes by."""
    asked = logs_asked_for(store)
    known = _programs(store, asked.keys())
    beside = beside_in_one_log(store, known.kin)
    if not lives:
        return Others(known.kin, {**known.strangers, **beside, **asked})
    logs = other_logs(store, lives)
    days = _rows(store, "note", "topic = 'told-day'", "source, value")
    past = {row["source"] for row in days if long_before(row["value"], lives) is not None}
    servers = other_servers(store, lives, known.strangers.keys() | logs.keys() | past | asked.keys() | beside.keys())
    if servers and logs:  # a log is held against the server's own, and not against one that is set aside itself
        logs = other_logs(store, [life for life in lives if life.source not in servers])
    apart = {
        **got_over(store, lives),
        **servers,
        **logs,
        **logs_of_other_pods(store, lives),
        **logs_of_earlier_jobs(lives),
        **sisters(lives),
        **sisters_of_a_container(store, lives),
        **beside,
        **asked,
    }
    return Others(known.kin, {**known.strangers, **apart})


def _programs(store: Tables, apart: Set[str]) -> Others:
    """The sources that are about other programs; those in `apart` are known to be another's."""
    if not any(table in store.filled for table in (*_NAMED, "oom", "log_error", "described")):
        return Others()
    kin_words: set[str] = set()
    serving = _serving(store)
    for row in _rows(store, "engine_flag", "flag IN ('model', 'served_model_name', 'model_tag')", "value"):
        kin_words |= words_of(str(row["value"]))
    # a text that only names the engine may be of the program that it is called after: a copy of the weights, a proxy
    quoting = {row["source"] for row in store.rows_of("SELECT source FROM main.source WHERE rows = 0 AND names_engine")}
    for source in serving - quoting - apart:
        kin_words |= words_of(source.rsplit("/", 1)[-1])
    kin = Kin(frozenset(kin_words), frozenset(serving))
    names: dict[str, set[str]] = {}
    for table, column in _NAMED.items():
        for row in _rows(store, table, f"{column} IS NOT NULL", f"DISTINCT source, {column} AS name"):
            if row["name"].strip():
                names.setdefault(row["source"], set()).add(row["name"])
    closed = {
        row["source"]
        for row in _rows(
            store, "container", "true GROUP BY source HAVING bool_and(serves = false AND gpus IS NULL)", "source"
        )
    }
    # whom a kernel ends because the whole host is full says nothing of whose host it is
    hosts = {row["source"] for row in _rows(store, "host_event", "kind = 'node-oom-kill'", "DISTINCT source")}
    found: dict[str, str] = {}
    for source, told in names.items():
        if source in serving or source in hosts or any(kin.has(name) or is_engine(name) for name in told):
            continue
        programs = {_program(name) for name in told} - {""}
        if not programs or any(is_engine(name) is None for name in told):
            continue  # an interpreter's name leaves it open
        if len(programs) > 1 or source in closed:
            found[source] = f"it is about {_list(programs)}, and another source shows the server"
    for source in _trainers(store) - serving:
        found[source] = "a training job's log"
    for row in _rows(store, "log_error", JAVA, "DISTINCT source"):
        if row["source"] not in serving:
            found[row["source"]] = "a Java program's log"
    for row in _rows(store, "described", "kind = 'node' AND gpus = 0", "source, name"):
        if row["source"] not in serving and not _on_cpu(store):
            found[row["source"]] = f"node {row['name']} has no GPU"
    left = store.rows_of(f"SELECT source FROM main.source WHERE rows > 0 AND {_READ}")
    return Others(kin, found if any(row["source"] not in found for row in left) else {})


def _on_cpu(store: Tables) -> bool:
    """Whether the server runs without a GPU, as its settings or its release say."""
    where = "(flag = 'device' AND value = 'cpu') OR (flag = 'version' AND value LIKE '%cpu%') OR flag LIKE 'VLLM_CPU_%'"
    return bool(_rows(store, "engine_flag", f"({where}) LIMIT 1", "1"))


APART_S = 1800.0
"""A start that is this far from a server's own lives is no part of its story: crash loops and rollouts take minutes."""


def other_servers(store: Tables, lives: Sequence[Life], programs: Set[str]) -> dict[str, str]:
    """Logs of servers that the bundle is not about (`programs` are the sources of other programs): of another model, in a folder below, and far from this server's time where both
    have times; or well while another source failed.

    The bundle is about the model that most sources name, among equals about the log that lies highest, then the one seen last.
    """
    named = models_of(store)
    logs = {life.source for life in lives}
    beside = {model for source, model in named.items() if source not in logs}
    usual = beside.pop() if len(beside) == 1 else ""  # a log that names no model is of the one that its launch names
    groups: dict[str, list[Life]] = {}
    for life in lives:
        groups.setdefault(named.get(life.source, usual), []).append(life)
    failed: set[str] = set()
    over = answered(store)
    # what a client met, or somebody who pressed Ctrl-C, is no failure of a second server, nor is what a sentence quotes or a text repeats
    for table, where in (
        ("oom", "true"),
        ("startup_check", "true"),
        ("log_error", "kind NOT IN ('echo', 'client')"),
    ):
        rows = _rows(store, table, where, "DISTINCT source, line, text")
        said = said_by(logs, store, table, where)
        failed |= {
            row["source"]
            for row in rows
            if not is_quoted(row["text"])
            and not is_of_client(row["text"])
            and alike(row["text"]) not in said
            and (row["source"], row["line"]) not in over
        }
    if len(groups) < 2:
        ((model, own),) = groups.items()
        up = all(life.served and life.end in ("open", "stopped") for life in own)
        if up and (down := _ended_beside(store, own)):
            return {life.source: f"a server that answered on while {down} ended again and again" for life in own}
        apart = failed - set(named) - logs - programs
        return (
            {life.source: f"another server, of {model}, which serves" for life in own}
            if model and up and apart and set(named) <= logs
            else {}
        )

    def weight(model: str) -> tuple[int, int, float, str]:
        votes = sum(each == model for each in named.values()) + sum(life.source not in named for life in groups[model])
        return votes, -_depth(groups[model]), max(life.end_t or 0.0 for life in groups[model]), model

    main = max(groups, key=weight)
    begin = min((life.begin_t for life in groups[main] if life.begin_t is not None), default=None)
    found: dict[str, str] = {}
    for model, own in groups.items():
        ended = max((life.end_t or 0.0 for life in own), default=0.0)
        shown = f"a server of another model, {model or 'not named'}"
        if model == main or _depth(own) <= _depth(groups[main]):
            continue  # logs that lie side by side are tries of one person, or servers of one system
        if begin is not None and ended and ended < begin - APART_S:
            found |= {life.source: f"{shown}, {show_seconds(begin - ended)} before" for life in own}
        elif begin is None:
            found |= {life.source: f"{shown}, in a folder of its own" for life in own}
    return found


def sisters(lives: Sequence[Life]) -> dict[str, str]:
    """Logs of servers that had long come up and answered on while those starts began that the one other log shows, none of which came up or said why.

    A bundle is handed in because of the one that does not come up; its sisters stand beside it for comparison.
    """
    logs: dict[str, list[Life]] = {}
    for life in lives:
        logs.setdefault(life.source, []).append(life)
    silent = [
        source
        for source, own in logs.items()
        if sum(life.begun for life in own) >= ENDED_TIMES
        and all(life.end == "open" and not life.served for life in own)
    ]
    if len(silent) != 1 or len(logs) == 1:
        return {}
    begins = [life.begin_t for life in logs.pop(silent[0]) if life.begin_t is not None]
    # a log without its own start was cut: it began whenever
    beside = [life for own in logs.values() for life in own]
    if not begins or not all(
        life.served
        and life.end == "open"
        and _went_on(life, max(begins))
        and (not life.begun or _went_on(life, min(begins)))
        for life in beside
    ):
        return {}
    return dict.fromkeys(logs, f"a server that answered on while {silent[0]} did not come up")


_WROTE = regex(r"(?P<log>.+)\[(?P<name>[\w.-]{1,253})\]")


def beside_in_one_log(store: Tables, kin: Kin) -> dict[str, str]:
    """What a program wrote that failed, in a log of several, where the server wrote the rest of it and the name before its lines is no server's."""
    serving = {row["source"] for table in SIGNS for row in _rows(store, table, "true", "DISTINCT source")}
    told = {row["source"] for row in _rows(store, "oom", "true", "DISTINCT source")} - serving
    wrote = {source: found for source in told if (found := _WROTE.fullmatch(source))}
    return {
        source: f"what {found['name']} wrote into the log of the server"
        for source, found in wrote.items()
        if found["log"] in serving and not kin.has(found["name"])
    }


def sisters_of_a_container(store: Tables, lives: Sequence[Life]) -> dict[str, str]:
    """Logs of servers that answered on while a container that serves, and of which no log is there, ended by itself again and again."""
    where = f"serves AND exit_code BETWEEN 1 AND 127 AND restarts >= {ENDED_TIMES} AND ended_t IS NOT NULL"
    fallen = {
        row["pod"] or row["name"]
        for row in _rows(store, "container", where, "source, pod, name, ended_t")
        if all(life.served and life.end == "open" and _went_on(life, row["ended_t"]) for life in lives)
        and not any(row["pod"] and row["pod"] in (life.place.pod or life.source) for life in lives)
    }
    if len(fallen) != 1:
        return {}
    return {life.source: f"a server that answered on while {min(fallen)} ended again and again" for life in lives}


ENDED_TIMES = 2
"""Ends of a server by itself beside one that serves: one may be a command that somebody typed."""


def _ended_beside(store: Tables, lives: Sequence[Life]) -> str:
    """The one server that a supervisor tells to have ended by itself, twice or more, while those of the logs answered on; "" where none is."""
    rows = _rows(store, "process_exit", "exit_code BETWEEN 1 AND 127 AND t IS NOT NULL", "source, name, t")
    logs = {life.source for life in lives}
    beside = [
        row["name"]
        for row in rows
        if row["source"] not in logs and is_engine(row["name"]) and all(_went_on(life, row["t"]) for life in lives)
    ]
    return beside[0] if len(beside) >= ENDED_TIMES and len(set(beside)) == 1 else ""


def _went_on(life: Life, t: float) -> bool:
    """Whether a life had begun before a time and answered well after it, in the same year where one of the two tells none."""
    if life.begin_t is None or life.at_work_t is None:
        return False
    return life.begin_t < in_year_of(t, life.at_work_t) < life.at_work_t - WENT_ON_S


def other_logs(store: Tables, lives: Sequence[Life]) -> dict[str, str]:
    """Logs of other programs of which an allocator's message is all that an engine could have said, beside a whole start of one.

    A log has a time on its lines; what somebody pasted of the server's own failure has none, or an engine's process, record or frame.
    A message that counts what another process holds of the device beside its own tells of the card that both are on; one of a device
    whose size is not that of the server's own is of another card.
    """
    shown = {row["source"] for table in SIGNS for row in _rows(store, table, "true", "DISTINCT source")}
    shown |= {row["source"] for row in _rows(store, "engine_flag", "true", "DISTINCT source")}
    shown |= {row["source"] for row in _rows(store, "frame", "file ILIKE '%vllm%'", "DISTINCT source")}
    if not any(life.source in shown and life.begun for life in lives):
        return {}
    beside = "other_processes_bytes > 0 AND (other_processes > 1 OR this_process_bytes IS NOT NULL)"
    shown |= {row["source"] for row in _rows(store, "oom", beside, "DISTINCT source")}
    found: dict[str, str] = {}
    own = {life.source for life in lives}
    told_sizes = _rows(store, "engine_figure", "name = 'total_bytes' AND value > 0", "DISTINCT source, value")
    sizes = {row["value"] for row in told_sizes if row["source"] in own}
    # a container with an instance of a card is told another size than the card's
    if not sizes and not any(
        _rows(store, table, "mig_profile IS NOT NULL LIMIT 1", "1") for table in ("container", "gpu_device")
    ):
        sizes = {row["total_bytes"] for row in _rows(store, "gpu_sample", "total_bytes > 0", "DISTINCT total_bytes")}
    # weights and the pool of one rank lie on one device
    whole = {life.source for life in lives if life.begun}
    parts = _rows(
        store,
        "engine_figure",
        "name IN ('weights_bytes', 'kv_available_bytes') AND value > 0 GROUP BY source, name",
        "source, name, min(value) AS value",
    )
    by_log: dict[str, float] = {}
    for row in parts:
        if row["source"] in whole:
            by_log[row["source"]] = by_log.get(row["source"], 0.0) + row["value"]
    held = min(by_log.values(), default=0.0) if len(by_log) == len(whole) else 0.0
    for life in lives:
        if life.begun:
            continue
        failed = [
            row["total_bytes"]
            for row in _rows(store, "oom", f"source = {literal(life.source)} AND total_bytes > 0", "total_bytes")
        ]
        if failed and held and max(failed) < held:
            found[life.source] = (
                f"it failed on a device of {show_bytes(max(failed))}, and the server's own holds {show_bytes(held)}"
            )
        if failed and sizes and not any(abs(one - size) <= SAME_SIZE * size for one in failed for size in sizes):
            found[life.source] = f"it failed on a device of {show_bytes(failed[0])}, and the server's has another size"
        if life.source in shown or life.source in found:
            continue
        told = [row for table in ("oom", "log_error") for row in _rows(store, table, f"source = {literal(life.source)}", "t, process, text")]  # fmt: skip
        if any(row["t"] is not None for row in told) and not any(row["process"] or FIELD_OF_ENGINE.search(row["text"] or "") for row in told):  # fmt: skip
            found[life.source] = "another program's log: but for the failure nothing in it is an engine's"
    return found


def logs_of_other_pods(store: Tables, lives: Sequence[Life]) -> dict[str, str]:
    """Logs without an engine's start that bear the name of a listed pod, where the server's own log tells another one of another workload."""
    whole = [life for life in lives if life.begun]
    own = {workload_of(life.place.pod) for life in whole if life.place.pod}
    if not own:
        return {}
    listed = {row["pod"] for row in _rows(store, "container", "pod IS NOT NULL", "DISTINCT pod")}
    found: dict[str, str] = {}
    for source in sorted({life.source for life in lives} - {life.source for life in whole}):
        name = source.rsplit("/", 1)[-1]
        pods = [pod for pod in listed if name.startswith(pod) and not name[len(pod) :][:1].isalnum()]
        pod = max(pods, key=len, default="")
        if pod and workload_of(pod) not in own:
            found[source] = f"the log of another pod, {pod}"
    return found


WORKED_S = 3600.0
"""A job that has worked for an hour has got over what ended the one before it in its first minutes: loads, captures and warm-ups take less."""


def logs_of_earlier_jobs(lives: Sequence[Life]) -> dict[str, str]:
    """Logs of batch jobs that never served, where a later job, whose log is here, came up, has worked for an hour and has not failed.

    A batch system numbers its jobs as they come.
    """
    jobs: dict[int, list[Life]] = {}
    for life in lives:
        if found := JOB_LOG.search(life.source):
            jobs.setdefault(int(found["job"]), []).append(life)
    working = {
        job: max(life.at_work_t - life.begin_t for life in own if life.at_work_t and life.begin_t)
        for job, own in jobs.items()
        if all(life.served and life.end in ("open", "stopped") and life.at_work_t and life.begin_t for life in own)
    }
    last = max((job for job, worked in working.items() if worked > WORKED_S), default=0)
    return {
        life.source: f"the log of job {job}, and the later job {last} has worked for {show_seconds(working[last])}"
        for job, own in jobs.items()
        for life in own
        if job < last and last == max(jobs) and not any(each.served for each in own)
    }


def logs_asked_for(store: Tables) -> dict[str, str]:
    """Logs that commands asked for by the name of a pod, where the server goes by the name of another one that is listed beside it.

    Who is asked for the model `chat-14b` is `chat14-5b4d8f9c44-7hzmk`, and who is asked for `llama-3.3-70b` is `llama70b-fp8-0`.
    """
    asked = {row["source"]: found[1] for row in store.rows_of("SELECT DISTINCT source FROM main.source") if (found := _OF_WRITER.search(row["source"]))}  # fmt: skip
    if not asked:
        return {}
    served = {
        row["name"] for row in _rows(store, "engine_flag", "flag = 'served_model_name'", "DISTINCT value AS name")
    }
    named = 'regexp_extract(labels, \'model_name="([^"]+)"\', 1)'
    served |= {
        row["name"] for row in _rows(store, "metric", "name LIKE 'vllm:%'", f"DISTINCT coalesce({named}, '') AS name")
    }
    pods = {row["pod"] for row in _rows(store, "container", "pod IS NOT NULL", "DISTINCT pod")}
    listed = {workload_of(pod): _bare(workload_of(pod)) for pod in pods}
    words = {word for each in served for word in words_of(each)}
    own = {name for name, bare in listed.items() if words_of(name) & words or (len(bare) >= _TELLING and any(bare.startswith(each) or each.startswith(bare) for each in map(_bare, served) if len(each) >= _TELLING))}  # fmt: skip
    return {source: f"the log of another pod, {pod}" for source, pod in asked.items() if own and pod in pods and workload_of(pod) not in own}  # fmt: skip


_OF_WRITER = regex(r"\[([\w.-]+)\]$")
_TELLING = 4
"""Letters and digits of a name that tell it from others."""


def _bare(name: str) -> str:
    """A name without what stands between its words: `chat-14b` and `chat14b` are one."""
    return "".join(filter(str.isalnum, name.lower()))


def _depth(lives: Sequence[Life]) -> int:
    return min(life.source.count("/") for life in lives)


def _program(name: str) -> str:
    """The program or workload that a name is of: without image registries, versions and suffixes of replicas."""
    stem = name.split()[0] if name.split() else ""
    return workload_of(stem)


def _list(programs: Iterable[str]) -> str:
    names = sorted(programs)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _rows(store: Tables, table: str, where: str, columns: str) -> list[dict[str, Any]]:
    return store.rows_of(f"SELECT {columns} FROM main.{table} WHERE {where}") if table in store.filled else []


def _serving(store: Tables) -> set[str]:
    """Sources that show an LLM server: rows that only engines fill, its settings, metrics, containers, processes, or words of the field."""
    found: set[str] = set()
    for table in SIGNS:
        found |= {row["source"] for row in _rows(store, table, "true", "DISTINCT source")}
    for table, where in (
        ("engine_flag", f"NOT ({LISTED})"),
        ("metric", "name LIKE 'vllm%'"),
        ("container", "serves OR gpus > 0"),
        ("frame", "file ILIKE '%vllm%'"),
        ("source", f"names_engine AND {_READ}"),
    ):
        if table == "source" or table in store.filled:
            found |= {row["source"] for row in store.rows_of(f"SELECT DISTINCT source FROM main.{table} WHERE {where}")}
    for table, words in TEXTS.items():
        for row in _rows(store, table, "true", f"DISTINCT source, {words} AS words"):
            if row["source"] not in found and FIELD.search(row["words"] or ""):
                found.add(row["source"])
    return found


def _trainers(store: Tables) -> set[str]:
    """Sources in which torch's allocator failed and a training loop stands around it."""
    failed = {row["source"] for row in _rows(store, "oom", "true", "DISTINCT source")}
    found: set[str] = set()
    for table, words in (("frame", "concat_ws(' ', function, file)"), ("log_error", "text")):
        for row in _rows(store, table, "true", f"DISTINCT source, {words} AS words") if failed else ():
            if row["source"] in failed and TRAINER.search(row["words"] or ""):
                found.add(row["source"])
    return found
