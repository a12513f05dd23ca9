"""The scene: who the server of the bundle is, its lives, and whose each event is. Rules and views see events through it only.

`bind` reads the evidence tables once, before any view but `engine_start` is made, and gives each event of hosts, clusters,
drivers and supervisors a `Bond` (table `relation`). What is not the server's own is hidden from views and rules, and
listed in the report as set aside, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.scene import owner, strangers, told
from oomdoc.scene.lives import LIVES_SQL, Server, life_of, server_of
from oomdoc.scene.lookups import Descriptions, Devices, box_of, placed_rows, rows_of
from oomdoc.scene.owner import FOREIGN, NEAR, OWN, UNKNOWN, Bond
from oomdoc.scene.presence import Tables, shows_server

__all__ = ["COINCIDENT", "FOREIGN", "NEAR", "OWN", "TABLES", "UNKNOWN", "Aside", "Bond", "Scene", "Tables", "bind"]

Place = tuple[str, str, int, int | None]
"""A row of evidence: table, source, line, and where it stands in the table."""

KILLS = ("cgroup-oom-kill", "node-oom-kill", "oom-kill", "cgroup-usage", "slurm-oom-kill", "ray-memory-kill")
STATEMENTS = ("worker-died", "bus-error", "shm-full", "pinned-alloc-failed", "host-alloc-failed")
FAULTS = ("xid", "segfault", "reboot")
TABLES = (
    "host_event",
    "container",
    "cluster_event",
    "scaler",
    "process_exit",
    "gpu_sample",
    "gpu_process",
    "gpu_device",
    "oom",
    "frame",
    "log_error",
    "process_memory",
    "note",
    "milestone",
    "engine_flag",
    "engine_figure",
    "engine_stat",
    "preemption",
    "startup_check",
    "crash_step",
    "cache_lookup",
    "metric",
)
"""Tables whose rows have an owner; those of the engine's logs belong to a life by their place in the log, and have another
owner only where the whole source is another program's."""
COINCIDENT = ("host_event", "process_exit", "gpu_sample", "gpu_process", "gpu_device")
"""Of what nobody can bind to the server, the tables whose rows count only where the server's own words explain nothing."""
KILL_LINES = 400
"""One kill of the kernel is at most so many lines: its header, some 20 of memory figures, a line for each process, the victim."""


@dataclass(frozen=True)
class Aside:
    """An event that is not this server's: its place, what it says, why it does not count."""

    source: str
    line: int
    says: str
    why: str
    t: float | None


@dataclass(frozen=True)
class Scene:
    """The server, and the bond of every event: (table, source, line, row) -> bond.

    `row` is the row's place in its table: a list of containers written as one line has all of them there. It is None of a source as a
    whole, which has line 0, and where the table has no such place: rows of one line have one owner then.
    """

    server: Server
    present: bool
    """The bundle shows a server; False = it shows something else."""
    bonds: Mapping[Place, Bond]
    asides: tuple[Aside, ...]
    explained: bool = False
    """The server's own words say what became of it: what nobody can bind to it is a coincidence."""
    strangers: frozenset[str] = frozenset()
    """Sources that are about another program or another server."""
    kills: tuple[Mapping[str, Any], ...] = ()
    """Kills that may be the server's, each whole: what all lines of one kill say, at the line that names the victim."""


def bind(store: Tables) -> Scene:
    """Work out whose every event is."""
    lives = [life_of(row) for row in store.rows_of(LIVES_SQL)]
    pods = {row["source"]: row["text"] for row in rows_of(store, "note", "source, line, text", "topic = 'log-of-pod'")}
    lives = [
        replace(life, place=replace(life.place, pod=pods[life.source])) if life.source in pods and not life.place.pod else life
        for life in lives
    ]  # fmt: skip
    known = strangers.others(store, lives)
    columns = (
        "source, line, pod, name, namespace, pod_uid, container_id, node, image, serves, gpus, state, started_t, "
        "reason, last_reason, exit_code, memory_limit_bytes, ended_t, ran_s"
    )
    server = server_of(
        [life for life in lives if life.source not in known.strangers],
        [row for row in rows_of(store, "container", columns) if row["source"] not in known.strangers],
        known.kin,
    )
    server.is_vllm = bool(
        rows_of(store, "milestone", "DISTINCT source", "name = 'engine-init' AND regexp_matches(text, '^V\\d ')")
    )
    limits = rows_of(store, "note", "source, line, value", "topic = 'container-limit'")
    server.memory_limits |= {
        int(row["value"]) for row in limits if row["value"] and row["source"] not in known.strangers
    }
    present = shows_server(store, known.strangers)
    explained = _explains_itself(store, server, known.strangers)
    bonds: dict[Place, Bond] = {}
    asides: dict[tuple[str, int, int | None], Aside] = {}
    kills: list[tuple[str, Mapping[str, Any]]] = []

    def note(table: str, row: Mapping[str, Any], bond: Bond, says: str, place: Mapping[str, Any] | None = None) -> None:
        if row["source"] in known.strangers:
            return  # the whole source has an owner
        bonds[table, row["source"], row["line"], row.get("row")] = bond
        at = place or row
        coincidence = bond.whose == UNKNOWN and explained
        if bond.whose == FOREIGN or (table in COINCIDENT and (coincidence or not present)):
            aside = Aside(at["source"], at["line"], says, bond.why, at.get("t"))
            asides.setdefault((at["source"], at["line"], None if place else row.get("row")), aside)

    for source, why in sorted(known.strangers.items()):
        for table in TABLES:
            if table in store.filled:
                bonds[table, source, 0, None] = Bond(FOREIGN, why)
        asides[source, 1, None] = Aside(source, 1, source, why, None)
    described = Descriptions(store)
    logs = {life.source for life in server.lives}
    # what an earlier life says of its own failure says nothing of one whose log breaks off
    broke_off = {life.id for life in server.lives if life.end == "open"}
    reported = [kill for kill in _kills(store) if kill["whole"]["source"] not in known.strangers]
    containers = placed_rows(
        store,
        "container",
        "source, line, NULL::DOUBLE AS t, pod, name, namespace, serves, last_reason, reason, restarts, exit_code, ended_t",
    )
    # an event and the kernel's own lines tell of one kill: what its memory group says holds for both
    grouped = {victim(kill["whole"]): kill["whole"] for kill in reported if kill["whole"]["memory_group"]}
    for kill in reported:
        whole = kill["whole"]
        same = None if whole["memory_group"] or whole["pid"] is None else grouped.get(victim(whole))
        bond = owner.of_kill(same or whole, server)
        if bond.whose == OWN and (own := _container_of(whole, containers)) is not None:
            bond = owner.of_container(own, server)
        elif (
            bond.whose == OWN
            and explained
            and not server.came_up
            and bond.life not in broke_off
            and not owner.shows_identity(same or whole, server)
        ):
            bond = Bond(
                UNKNOWN,
                f"{bond.why}, of which nothing says that it is the server, and the server's own words say what failed",
            )
        if bond.whose != FOREIGN and not (bond.whose == UNKNOWN and explained):
            kills.append((bond.whose, kill["whole"]))
        for row in kill["rows"]:
            note("host_event", row, bond, kill["whole"]["text"] or "", kill["whole"])
    host_events = placed_rows(store, "host_event", "source, line, t, kind, process, pid, memory_group, count, text")
    faulty = {row["pid"] for row in host_events if row["kind"] == "segfault" and row["pid"] is not None}
    for row in host_events:
        if row["kind"] in FAULTS:
            bond = owner.of_fault(row, server)
            if bond.whose == UNKNOWN and row["kind"] == "segfault" and len(faulty) > 1:
                bond = Bond(
                    FOREIGN, f"one of {len(faulty)} programs that ended by a fault, at times that cannot be compared"
                )
            note("host_event", row, bond, row["text"] or "")
        elif row["kind"] == "cgroup-oom-count":
            note("host_event", row, owner.of_counter(row, server), row["text"] or "")
        elif row["kind"] in STATEMENTS and row["source"] not in logs and logs:
            note("host_event", row, owner.of_statement(row, server), row["text"] or "")
    described_at: dict[tuple[str, int], list[Bond]] = {}
    for row in containers:
        bond = owner.of_container(row, server)
        if bond.whose != FOREIGN and (life := told.life_that_ended(row, server)) is not None:
            bond = Bond(bond.whose, bond.why, life.id)
        described_at.setdefault((row["source"], row["line"]), []).append(bond)
        why = row["last_reason"] or row["reason"] or f"{row['restarts'] or 0} restarts"
        note("container", row, bond, " ".join(filter(None, (row["pod"], row["name"], why))))
    kindred: dict[str, bool] = {}
    for row in (events := placed_rows(store, "cluster_event", "source, line, t, object, namespace, reason, message")):
        row.update(described.of_event(row))
        kindred[row["source"]] = kindred.get(row["source"], False) or known.kin.has(
            (row["object"] or "").rpartition("/")[2]
        )
    for row in events:
        row["beside_kin"] = kindred[row["source"]]
        note("cluster_event", row, owner.of_cluster_event(row, server), f"{row['reason']}: {row['message'] or ''}")
    for row in placed_rows(store, "scaler", "source, line, t, target, namespace, name, text"):
        row.update(described.of_scaler(row))
        note("scaler", row, owner.of_scaler(row, server), row["text"] or "")
    measured = placed_rows(store, "metric", "source, line, labels", "name LIKE 'container\\_%' ESCAPE '\\'")
    boxes = {row["labels"]: box_of(row["labels"]) for row in measured}
    kin_told = any(known.kin.has(pod) for _, pod, _ in boxes.values())
    of_box = {labels: owner.of_measured(*box, server, kin_told) for labels, box in boxes.items()}
    told_once: set[tuple[str, str]] = set()
    for row in measured:
        bond = of_box[row["labels"]]
        if bond.whose == FOREIGN and row["source"] not in known.strangers:
            bonds["metric", row["source"], row["line"], row["row"]] = bond
            if (row["source"], bond.why) not in told_once:
                told_once.add((row["source"], bond.why))
                aside = Aside(row["source"], row["line"], row["labels"], bond.why, None)
                asides[row["source"], row["line"], None] = aside
    days = {row["source"]: row["value"] for row in rows_of(store, "note", "source, line, value", "topic = 'told-day'")}
    for table in ("oom", "startup_check", "log_error"):
        for row in placed_rows(store, table, "source, line, t, text", "t IS NULL"):
            dated = told.of_dated(row, server, days.get(row["source"])) if row["source"] not in logs else None
            if dated is not None:
                note(table, row, dated, row["text"])
    orders = rows_of(store, "note", "source, line, topic", "topic IN ('stop-asked', 'unit-started')")
    for row in placed_rows(store, "process_exit", "source, line, t, name, exit_code"):
        row.update(described.of_exit(row))
        if row["exit_code"] in (-9, -15, 137, 143) and _was_asked(row, orders):
            note("process_exit", row, Bond(FOREIGN, "somebody had asked the supervisor to stop it"), f"{row['name'] or 'a process'} ended with {row['exit_code']}")  # fmt: skip
        elif row["source"] not in logs:
            # a list of containers has a bare status beside each: it is the status of the one that its line names
            beside = () if row["name"] else described_at.get((row["source"], row["line"]), ())
            bond = beside[0] if len(beside) == 1 else owner.of_exit(row, server)
            note("process_exit", row, bond, f"{row['name'] or 'a process'} ended with {row['exit_code']}")
    # what a text is said to tell on a line that is somebody else's is theirs as well
    theirs = {(source, line) for (_, source, line, _), bond in bonds.items() if bond.whose == FOREIGN and line}
    for row in placed_rows(store, "note", "source, line", "topic IN ('failure-told', 'oom-told')"):
        if (row["source"], row["line"]) in theirs and row["source"] not in known.strangers:
            bonds["note", row["source"], row["line"], row["row"]] = Bond(FOREIGN, "on a line that is somebody else's")
    devices = Devices(store)
    for table in Devices.TABLES:
        for row in rows_of(store, table, "DISTINCT source, 0 AS line"):
            about = devices.owner_of(row["source"], server)
            if about is not None:
                note(table, row, about, f"{table} of {row['source']}")
    shown = tuple(sorted(asides.values(), key=lambda each: (each.source, each.line)))
    tied = any(whose == OWN for whose, _ in kills)  # beside a kill that is the server's, one of nobody explains nothing
    own_kills = tuple({**whole, "whose": whose} for whose, whole in kills if whose != UNKNOWN or not tied)
    return Scene(server, present, bonds, shown, explained, frozenset(known.strangers), own_kills)


def _container_of(kill: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The container in whose description a kill without a victim stands; None where it names one, or stands in no description."""
    if kill["process"] or kill["pid"] is not None or kill["memory_group"]:
        return None
    beside = [row for row in containers if row["source"] == kill["source"]]
    before = [row for row in beside if row["line"] <= kill["line"]]
    # several of one document may stand at its head: the one that is told to have been killed is meant
    return max(
        before,
        key=lambda row: (row["line"], row["last_reason"] == "OOMKilled"),
        default=min(beside, key=lambda row: row["line"], default=None),
    )


_STOP_LINES = 40
"""A supervisor waits 30 to 90 seconds for a unit to end before it kills it; a chatty host writes some lines in that time."""


def _was_asked(end: Mapping[str, Any], orders: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a process was ended because somebody had the supervisor stop it: what was started again behind that is another one."""
    before = [row for row in orders if row["source"] == end["source"] and 0 < end["line"] - row["line"] <= _STOP_LINES]
    last = max(before, key=lambda row: int(row["line"]), default=None)
    return last is not None and last["topic"] == "stop-asked"


def victim(kill: Mapping[str, Any]) -> tuple[Any, Any]:
    """Whom a kill ended: number and name of the process."""
    return kill["pid"], kill["process"]


_EXPLAINING = ("memory", "shm", "driver", "hardware", "bad-argument", "missing-file", "network", "kernel", "limit")
"""Kinds of errors that are a cause. A wrapper, a peer that is gone, a hang or a client's error follows from something else."""


def _explains_itself(store: Tables, server: Server, apart: Mapping[str, str]) -> bool:
    """Whether the server's own words say what became of it.

    It came up and nothing failed, or it names a cause, or no life is seen and its counters run on. What happened to somebody who
    cannot be named explains nothing then.
    """
    if server.came_up:
        return True
    causes = ("oom", "true"), ("startup_check", "true"), ("log_error", f"kind IN {_EXPLAINING}")
    if any(
        row["source"] not in apart for table, where in causes for row in rows_of(store, table, "DISTINCT source", where)
    ):
        return True
    counters = ("engine_stat", "metric", "request") if not server.lives else ()
    return any(row["source"] not in apart for table in counters for row in rows_of(store, table, "DISTINCT source"))


def _kills(store: Tables) -> Iterator[dict[str, Any]]:
    """The kills of the kernel log, each whole: `rows` of one kill, and what they say together, as the row of its victim.

    The kernel prints one kill in several lines: who asked, usage and limit of the group, the constraint with the victim's
    group, the victim, the reaper. Rows of one victim belong together, and so do those without a name just before it.
    """
    rows = placed_rows(
        store,
        "host_event",
        "source, line, t, uptime_s, kind, process, pid, bytes, limit_bytes, memory_group, text",
    )
    waiting: list[dict[str, Any]] = []
    current: dict[str, Any] | None = None
    for row in (row for row in rows if row["kind"] in KILLS):
        if waiting and (waiting[0]["source"] != row["source"] or row["line"] - waiting[0]["line"] > KILL_LINES):
            yield from ({"rows": [each], "whole": each} for each in waiting)
            waiting = []
        if row["pid"] is None and row["process"] is None:
            waiting.append(row)
            continue
        last = current["rows"][-1] if current else None
        if (
            current
            and last
            and not waiting
            and last["source"] == row["source"]
            and current["whole"]["pid"] == row["pid"]
        ):
            current["rows"].append(row)
            _complete(current["whole"], row)
            continue
        if current:
            yield current
        current = {"rows": [*waiting, row], "whole": dict(row)}
        for each in waiting:
            _complete(current["whole"], each)
        waiting = []
    if current:
        yield current
    yield from ({"rows": [each], "whole": each} for each in waiting)


def _complete(whole: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Add what another line of the same kill says. The kind that names the limit wins over the one that does not."""
    for name in ("t", "memory_group", "process", "limit_bytes"):
        if whole[name] is None:
            whole[name] = row[name]
    if row["pid"] is not None and whole["bytes"] is None:  # of the victim; the lines before it have the group's usage
        whole["bytes"] = row["bytes"]
    if row["kind"] in ("cgroup-oom-kill", "node-oom-kill") and whole["kind"] in ("oom-kill", "cgroup-usage"):
        whole["kind"] = row["kind"]
    if row["kind"] == "cgroup-usage" and whole["kind"] == "oom-kill":
        whole["kind"] = "cgroup-oom-kill"
