"""A pass for each kind of event: its rows are read once, and each is given to its owner."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.regexes import regex
from oomdoc.scene import device_faults, owner, told
from oomdoc.scene.devices import placement_of
from oomdoc.scene.lives import Server
from oomdoc.scene.lookups import Descriptions, Devices, box_of, placed_rows, rows_of
from oomdoc.scene.owner import FOREIGN, OWN, UNKNOWN, Bond
from oomdoc.scene.places import JOB_LOG, workload_of
from oomdoc.scene.presence import Tables
from oomdoc.scene.relation import Aside, Relation
from oomdoc.units import show_bytes

STATEMENTS = ("worker-died", "bus-error", "shm-full", "pinned-alloc-failed", "host-alloc-failed")
FAULTS = ("xid", "segfault", "reboot")


def bind_host_events(store: Tables, server: Server, relation: Relation) -> None:
    """Faults, counters of memory groups, and what a text that is no log of the server's says of host memory. Kills have a pass of their own."""
    logs = {life.source for life in server.lives}
    rows = placed_rows(
        store, "host_event", "source, line, t, kind, process, pid, memory_group, count, limit_bytes, device, text"
    )
    faulty = {row["pid"] for row in rows if row["kind"] == "segfault" and row["pid"] is not None}
    faults = [(row, device_faults.of_fault(row, server)) for row in rows if row["kind"] in FAULTS]
    if faults and not any(life.begin_t for life in server.lives):
        answers = [one["t"] for one in rows_of(store, "request", "source, line, t", "t IS NOT NULL AND status < 400")]
        answers.sort()
        faults = [(row, bond if bond.whose == FOREIGN else device_faults.of_traffic(row, answers, row["kind"]) or bond) for row, bond in faults]  # fmt: skip
    if any(row["device"] for row, _ in faults):
        placed = placement_of(store, server)
        faults = [(row, bond if bond.whose == FOREIGN else placed.elsewhere(row) or bond) for row, bond in faults]
    logged = [each for each in faults if each[0]["kind"] == "xid" and not device_faults.is_gauge(each[0])]
    for row, bond in faults:
        if device_faults.is_gauge(row):
            bond = device_faults.of_repeated(row, logged) or bond
        if bond.whose == UNKNOWN and row["kind"] == "segfault" and len(faulty) > 1:
            bond = Bond(
                FOREIGN, f"one of {len(faulty)} programs that ended by a fault, at times that cannot be compared"
            )
        relation.note("host_event", row, bond, row["text"] or "")
    mounts = _mounts(store) if logs and any(row["kind"] == "shm-full" for row in rows) else {}
    for row in rows:
        if row["kind"] == "shm-full" and row["limit_bytes"] and row["limit_bytes"] < mounts.get(row["source"], 0):
            relation.note(
                "host_event", row, _beside_a_larger(row["limit_bytes"], mounts[row["source"]]), row["text"] or ""
            )
        elif row["kind"] == "cgroup-oom-count":
            relation.note("host_event", row, owner.of_counter(row, server), row["text"] or "")
        elif row["kind"] in STATEMENTS and row["source"] not in logs and logs:
            relation.note("host_event", row, owner.of_statement(row, server), row["text"] or "")


def _beside_a_larger(full: int, larger: float) -> Bond:
    return Bond(FOREIGN, f"a mount of {show_bytes(full)} was full beside one of {show_bytes(int(larger))}, and the server has no word of shared memory")  # fmt: skip


def _mounts(store: Tables) -> dict[str, float]:
    """The largest mount of shared memory that each text tells of; none where the server speaks of shared memory itself, or ended by a bus error."""
    if (
        rows_of(store, "log_error", "source, line", "kind = 'shm'")
        or rows_of(store, "host_event", "source, line", "kind = 'bus-error'")
        or rows_of(store, "process_exit", "source, line", "exit_code IN (-7, 135)")
    ):
        return {}
    largest: dict[str, float] = {}
    for one in rows_of(store, "note", "source, line, value", "topic = 'shm-size' AND value > 0"):
        largest[one["source"]] = max(one["value"], largest.get(one["source"], 0.0))
    return largest


def _of_container(row: Mapping[str, Any], server: Server) -> Bond:
    bond = owner.of_container(row, server)
    if bond.whose != FOREIGN and (life := told.life_that_ended(row, server)) is not None:
        return Bond(bond.whose, bond.why, life.id)
    return bond


def bind_containers(server: Server, relation: Relation, containers: Sequence[Mapping[str, Any]]) -> None:
    """Containers, with the life that their last status ended."""
    for row in containers:
        why = row["last_reason"] or row["reason"] or f"{row['restarts'] or 0} restarts"
        relation.note(
            "container", row, _of_container(row, server), " ".join(filter(None, (row["pod"], row["name"], why)))
        )


def bind_cluster(store: Tables, server: Server, relation: Relation) -> None:
    """Events of a cluster, and statements about autoscalers; those that name nobody are of what is described around them."""
    described = Descriptions(store)
    events = placed_rows(store, "cluster_event", "source, line, t, object, namespace, reason, message")
    kindred: dict[str, bool] = {}
    for row in events:
        row.update(described.of_event(row))
        named = (row["object"] or "").rpartition("/")[2]
        kindred[row["source"]] = kindred.get(row["source"], False) or server.kin.has(named)
    for row in events:
        row["beside_kin"] = kindred[row["source"]]
        bond = owner.of_cluster_event(row, server)
        relation.note("cluster_event", row, bond, f"{row['reason']}: {row['message'] or ''}")
    scalers = placed_rows(store, "scaler", "source, line, t, target, namespace, name, text")
    for row in scalers:
        row.update(described.of_scaler(row))
    # of several that are scaled, the one that the server's log is called after
    its = {
        row["target"] for row in scalers if row["target"] and any(row["target"] in life.source for life in server.lives)
    }
    for row in scalers:
        bond = owner.of_scaler(row, server)
        if its and row["target"] and not any(each in row["target"] or row["target"] in each for each in its):
            bond = Bond(FOREIGN, f"an autoscaler of {row['target']}, and the server's log is that of {min(its)}")
        relation.note("scaler", row, bond, row["text"] or "")


def bind_measured(store: Tables, server: Server, relation: Relation) -> None:
    """What an exporter measured of containers, or the kubelet counted: thousands of rows of a few; of each somebody else's that a source tells of, one is told aside."""
    rows = placed_rows(
        store, "metric", "source, line, labels", "name LIKE 'container\\_%' ESCAPE '\\' OR name = 'prober_probe_total'"
    )
    boxes = {row["labels"]: box_of(row["labels"]) for row in rows}
    kin_told = any(server.kin.has(pod) for _, pod, _ in boxes.values())
    bonds = {labels: owner.of_measured(*box, server, kin_told) for labels, box in boxes.items()}
    told_once: set[tuple[str, str]] = set()
    for row in rows:
        bond = bonds[row["labels"]]
        if bond.whose != FOREIGN or row["source"] in relation.strangers:
            continue
        relation.hide("metric", row, bond)
        if (row["source"], bond.why) not in told_once:
            told_once.add((row["source"], bond.why))
            relation.tell(Aside(row["source"], row["line"], row["labels"], bond.why, None))


def bind_held(store: Tables, server: Server, relation: Relation, containers: Sequence[Mapping[str, Any]]) -> None:
    """What a sheet tells of the memory of containers that stand beside each other.

    Where one is named as the server's log or pod is, the others are other programs'; and so is one that a list of containers
    names beside the one that serves.
    """
    of_host = "name IS NOT NULL AND resource IS DISTINCT FROM 'gpu'"
    names: dict[str, set[str]] = {}
    for row in rows_of(store, "process_memory", "DISTINCT source, name", of_host):
        names.setdefault(row["source"], set()).add(row["name"])
    own = (
        {life.source.rsplit("/", 1)[-1].partition(".")[0] for life in server.lives}
        | server.workloads
        | server.containers
    )
    theirs: set[tuple[str, str]] = set()
    beside = {row["name"] for row in containers if row["name"] and not row["pod"]} - server.containers
    for source, listed in names.items():
        if server.containers and source not in relation.strangers:
            theirs |= {(source, name) for name in listed & beside}
        boxes = {name for name in listed if workload_of(name) != name and "(" not in name}
        its = {name for name in boxes if workload_of(name) in own or name in server.pods}
        if its and source not in relation.strangers:
            theirs |= {(source, name) for name in boxes - its if not server.kin.has(name)}
    if not theirs:  # a sheet has thousands of rows of a few containers, and most bundles have none of them
        return
    told_once: set[tuple[str, str]] = set()
    for row in placed_rows(store, "process_memory", "source, line, name", of_host):
        source, name = row["source"], row["name"]
        if (source, name) not in theirs:
            continue
        bond = Bond(FOREIGN, f"{name}, beside the server's own container")
        relation.hide("process_memory", row, bond)
        if (source, name) not in told_once:
            told_once.add((source, name))
            relation.tell(Aside(source, row["line"], name, bond.why, None))


def bind_exits(store: Tables, server: Server, relation: Relation, containers: Sequence[Mapping[str, Any]]) -> None:
    """Ends of processes that are told outside of the server's logs."""
    logs = {life.source for life in server.lives}
    described = Descriptions(store)
    listed: dict[tuple[str, int], list[Bond]] = {}
    for each in containers:
        listed.setdefault((each["source"], each["line"]), []).append(_of_container(each, server))
    asked_for = rows_of(store, "note", "source, line, text", "topic = 'container-limit' AND text LIKE 'job %'")
    numbered = {(row["source"], row["line"]): found[1] for row in asked_for if (found := _NUMBERED.match(row["text"]))}
    orders = placed_rows(store, "note", "source, line, topic, text", "topic IN ('stop-asked', 'unit-started')")
    own = _bind_orders(orders, server, relation)
    rows = placed_rows(store, "process_exit", "source, line, t, name, exit_code")
    signalled = [row for row in rows if row["exit_code"] in (-9, -15, 137, 143)]
    by_source: dict[str, list[Mapping[str, Any]]] = {}
    for order in sorted(own, key=lambda each: int(each["line"])):
        by_source.setdefault(order["source"], []).append(order)
    asked = {_place(row) for row in signalled if _was_asked(row, by_source.get(row["source"], ()))}
    # a text names a status and no process: of all that are told with a name, each had been asked for
    bare = {_place(row) for row in signalled if row["t"] is None and not row["name"]} - asked
    again = bare if asked and all(_place(row) in asked | bare for row in signalled) else set()
    for row in rows:
        row.update(described.of_exit(row))
        says = f"{row['name'] or 'a process'} ended with {row['exit_code']}"
        if _place(row) in asked:
            relation.note("process_exit", row, Bond(FOREIGN, "somebody had asked the supervisor to stop it"), says)
        elif _place(row) in again:
            why = "the supervisor's events tell of every end with this status that somebody had asked for it"
            relation.note("process_exit", row, Bond(FOREIGN, why), says)
        elif (of_job := _of_job(row, numbered, server)) is not None:
            relation.note("process_exit", row, of_job, says)
        elif row["source"] not in logs:
            # a list of containers has a bare status beside each: it is the status of the one that its line names
            beside = () if row["name"] else listed.get((row["source"], row["line"]), ())
            relation.note("process_exit", row, beside[0] if len(beside) == 1 else owner.of_exit(row, server), says)


def _of_job(row: Mapping[str, Any], numbered: Mapping[tuple[str, int], str], server: Server) -> Bond | None:
    """The end of a batch job whose number its row tells, where the name of a log tells that of the server's job; None where one of them is not told."""
    job = numbered.get((row["source"], row["line"]))
    its = {found["job"]: life for life in server.lives if (found := JOB_LOG.search(life.source))}
    if job is None or not its:
        return None
    if job not in its:
        return Bond(FOREIGN, f"the end of job {job}, and the server's is another")
    return Bond(OWN, f"the end of the server's job, {job}", its[job].id)


_STOP_LINES = 40
"""A supervisor waits 30 to 90 seconds for a unit to end before it kills it; a chatty host writes some lines in that time."""


def _place(row: Mapping[str, Any]) -> tuple[str, int, int | None]:
    return row["source"], row["line"], row["row"]


def _was_asked(end: Mapping[str, Any], orders: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a process was ended because somebody had the supervisor stop it: what was started again behind that is another one.

    `orders` are those of the same source, in the order of their lines.
    """
    before = bisect_left(orders, end["line"], key=lambda order: int(order["line"]))
    for order in reversed(orders[max(0, before - _STOP_LINES) : before]):
        if end["line"] - order["line"] > _STOP_LINES:
            break
        if _is_about(order, end):
            return bool(order["topic"] == "stop-asked")
    return False


def _is_about(order: Mapping[str, Any], end: Mapping[str, Any]) -> bool:
    """Whether an order may be about the process that ended: one of a container runtime is about the container it names."""
    about = _container_of(order)
    return about is None or _bare(about) == _bare(end["name"] or "")


def _bare(container: str) -> str:
    """A container's name without the image that stands in brackets behind it."""
    return container.partition(" (")[0]


_CONTAINER_ORDER = regex(r"container (?:kill|start) ?(?P<about>.*)")


def _container_of(order: Mapping[str, Any]) -> str | None:
    """The container of an order that a runtime wrote down, by its name, "" where none is told; None for another supervisor's."""
    event = _CONTAINER_ORDER.match(order["text"])
    return event["about"] if event else None


_POD_ORDER = regex(r"SyncLoop|evict")


def _bind_orders(orders: Sequence[Mapping[str, Any]], server: Server, relation: Relation) -> list[Mapping[str, Any]]:
    """Orders about other programs' containers and pods are not the server's; given back are all but those about pods: these say nothing of an end that names none.

    Some events of a container tell its image, some only its name.
    """
    known = {_bare(about): about for row in orders if (about := _container_of(row)) and about != _bare(about)}
    left = []
    for row in orders:
        about = _container_of(row)
        if about and owner.of_another_program(known.get(about, about), server):
            relation.hide("note", row, Bond(FOREIGN, f"an order about {about}, another program"))
        elif _POD_ORDER.search(row["text"]) and not any(pod in row["text"] for pod in server.pods):
            relation.hide("note", row, Bond(FOREIGN, "an order about a pod that nothing shows to be the server's"))
            continue
        left.append(row)
    return left


def bind_told(store: Tables, server: Server, relation: Relation) -> None:
    """What people tell of failures: of a day long past, or on a line that is somebody else's. After all passes but that of devices."""
    # what holds a failure and no start of an engine is a log of its own only where no other one tells a start
    whole = {life.source for life in server.lives if life.begun}
    logs = whole or {life.source for life in server.lives}
    days = {row["source"]: row["value"] for row in rows_of(store, "note", "source, line, value", "topic = 'told-day'")}
    over = told.answered(store)
    for table in ("oom", "startup_check", "log_error"):
        undated = [
            row for row in placed_rows(store, table, "source, line, t, text", "t IS NULL") if row["source"] not in logs
        ]
        said = told.said_by(logs, store, table) if undated else {}
        for row in undated:
            past = (
                told.of_named_pod(row, server)
                or told.of_dated(row, server, days.get(row["source"]))
                or told.of_another_month(row, server)
                or told.of_quoted(row, server)
                or told.of_outlived(row, server, said)
                or told.of_answered(row, server, over)
            )
            if past is not None:
                relation.note(table, row, past, row["text"])
    # who cannot reach the server met its end, or its absence: a log of its own tells why
    for row in placed_rows(store, "log_error", "source, line, t, text", "kind = 'network'") if whole else ():
        if row["source"] not in logs and told.is_of_client(row["text"]):
            relation.note("log_error", row, Bond(FOREIGN, "what a client of the server met"), row["text"])
    # what a text is said to tell on a line that is somebody else's is theirs as well
    theirs = {(source, line) for (_, source, line, _), bond in relation.bonds.items() if bond.whose == FOREIGN and line}
    for row in placed_rows(store, "note", "source, line", "topic IN ('failure-told', 'oom-told')"):
        if (row["source"], row["line"]) in theirs:
            relation.hide("note", row, Bond(FOREIGN, "on a line that is somebody else's"))


def bind_limits(store: Tables, server: Server, relation: Relation) -> None:
    """Ends by the clock of a scheduler: those of other jobs are not the server's, where its log says of which job it is."""
    jobs = {found["job"] for life in server.lives if (found := JOB_LOG.search(life.source))}
    rows = placed_rows(store, "note", "source, line, text", "topic = 'time-limit-reached'")
    listed = (
        rows_of(store, "note", "source, line, text", "topic = 'container-limit' AND text LIKE 'job %'") if rows else []
    )
    named = {row["row"]: found[1] for row in rows if (found := _NUMBERED.search(row["text"]))}
    told = {*named.values(), *(found[1] for row in listed if (found := _NUMBERED.search(row["text"])))}
    for row in rows if jobs & told else ():
        if named.get(row["row"]) not in jobs:
            relation.hide("note", row, Bond(FOREIGN, "the end of another job"))


_NUMBERED = regex(r"(?i)\b(?:job|step) (\d{1,10})")


def bind_devices(store: Tables, server: Server, relation: Relation) -> None:
    """Samples and lists of devices, a source at a time: of the server's node or of another."""
    devices = Devices(store)
    for table in Devices.TABLES:
        for row in rows_of(store, table, "DISTINCT source, 0 AS line"):
            about = devices.owner_of(row["source"], server)
            if about is not None:
                relation.note(table, row, about, f"{table} of {row['source']}")
