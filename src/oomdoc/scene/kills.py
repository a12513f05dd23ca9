"""Kills, each whole: the kernel tells one in several lines, a supervisor tells it again, and a container's description holds it without a victim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oomdoc.regexes import regex
from oomdoc.scene import owner
from oomdoc.scene.lives import Server
from oomdoc.scene.lookups import placed_rows
from oomdoc.scene.owner import FOREIGN, OWN, UNKNOWN, Bond
from oomdoc.scene.places import step_of
from oomdoc.scene.presence import Tables
from oomdoc.scene.relation import Relation

KILLS = ("cgroup-oom-kill", "node-oom-kill", "oom-kill", "cgroup-usage", "slurm-oom-kill", "ray-memory-kill")
KILL_LINES = 400
"""One kill of the kernel is at most so many lines: its header, some 20 of memory figures, a line for each process, the victim."""


TOLD_WITHIN_S = 2.0
"""Seconds between the kernel's line of a kill and the runtime's of the container that it ended: it is told at once, by clocks of one host."""
KILLED = 137
_OF_CONTAINER = regex(r" \(\S+\)$")
"""The image behind a container's name: the line is a runtime's."""


def bind_kills(
    store: Tables, server: Server, relation: Relation, containers: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """Take down whose each kill is, and give those that may be the server's, each whole, with `whose` it is."""
    # what an earlier life says of its own failure says nothing of one whose log breaks off
    broke_off = {life.id for life in server.lives if life.end == "open"}
    reported = [kill for kill in _kills(store) if kill["whole"]["source"] not in relation.strangers]
    # an event and the kernel's own lines tell of one kill: what its memory group says holds for both
    grouped = {victim(kill["whole"]): kill["whole"] for kill in reported if kill["whole"]["memory_group"]}
    shown = [owner.of_kill(kill["whole"], server).whose for kill in reported if _shows_whose(kill["whole"])]
    ends = _told_ends(store, server, reported)
    kept: list[tuple[str, Mapping[str, Any]]] = []
    for kill in reported:
        whole = kill["whole"]
        same = None if whole["memory_group"] or whole["pid"] is None else grouped.get(victim(whole))
        bond = owner.of_kill(same or whole, server)
        if bond.whose == OWN and (own := _container_of(whole, containers)) is not None:
            bond = owner.of_container(own, server)
        elif bond.whose == OWN and _at_the_end_of_another(whole, ends) and not owner.shows_identity(whole, server):
            bond = Bond(FOREIGN, "a kill at the second at which a runtime tells of the end of another container")
        elif bond.whose == OWN and whole["t"] is None and not _shows_whose(whole) and shown and set(shown) == {FOREIGN}:
            bond = Bond(FOREIGN, "a text speaks of a kill, and those that are shown are of others")
        elif (
            bond.whose == OWN
            and relation.explained
            and not server.came_up
            and bond.life not in broke_off
            and not owner.shows_identity(same or whole, server)
        ):
            bond = Bond(
                UNKNOWN,
                f"{bond.why}, of which nothing says that it is the server, and the server's own words say what failed",
            )
        if bond.whose != FOREIGN and not (bond.whose == UNKNOWN and relation.explained):
            kept.append((bond.whose, whole))
        for row in kill["rows"]:
            relation.note("host_event", row, bond, whole["text"] or "", whole)
    tied = any(whose == OWN for whose, _ in kept)  # beside a kill that is the server's, one of nobody explains nothing
    return tuple({**whole, "whose": whose} for whose, whole in kept if whose != UNKNOWN or not tied)


def _told_ends(store: Tables, server: Server, reported: Sequence[Mapping[str, Any]]) -> Sequence[tuple[float, str]]:
    """When a runtime tells that a container ended by a kill, and whose container it is."""
    kills = [kill["whole"] for kill in reported]
    named = [kill for kill in kills if kill["pid"] is None and kill["memory_group"] is None and kill["process"]]
    exits = [
        row
        for row in placed_rows(store, "process_exit", "source, line, t, name, exit_code")
        if row["exit_code"] == KILLED and _OF_CONTAINER.search(row["name"] or "")
    ]
    told = [(row["t"], owner.of_kill(row, server)) for row in named] + [
        (row["t"], owner.of_exit(row, server)) for row in exits
    ]
    return [(t, bond.whose) for t, bond in told if t is not None]


def _at_the_end_of_another(kill: Mapping[str, Any], ends: Sequence[tuple[float, str]]) -> bool:
    """Whether at the second of a kernel's kill nothing but containers of others is told to have ended."""
    if kill["t"] is None or kill["pid"] is None or kill["kind"] != "cgroup-oom-kill":
        return False
    then = {whose for t, whose in ends if abs(t - kill["t"]) <= TOLD_WITHIN_S}
    return then == {FOREIGN}


def _shows_whose(kill: Mapping[str, Any]) -> bool:
    """Whether a kill says whom it ended, or in which group or step."""
    named = kill["process"] or kill["memory_group"] or step_of("", kill["text"] or "")
    return kill["pid"] is not None or bool(named)


def _container_of(kill: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The container in whose description a kill without a victim stands; None where it names one, or stands in no description."""
    if _shows_whose(kill):
        return None
    beside = [row for row in containers if row["source"] == kill["source"]]
    before = [row for row in beside if row["line"] <= kill["line"]]
    # several of one document may stand at its head: the one that is told to have been killed is meant
    return max(
        before,
        key=lambda row: (row["line"], row["last_reason"] == "OOMKilled"),
        default=min(beside, key=lambda row: row["line"], default=None),
    )


def victim(kill: Mapping[str, Any]) -> tuple[Any, Any]:
    """Whom a kill ended: number and name of the process."""
    return kill["pid"], kill["process"]


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
        if row["kind"] == "slurm-oom-kill":  # a supervisor's statement names a step, and is no line of the kernel's
            yield {"rows": [row], "whole": row}
            continue
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
