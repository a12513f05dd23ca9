"""The lives of servers in a bundle: one start to its end, with what ties events to it. And what became of each."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from oomdoc.scene.kin import Kin
from oomdoc.scene.places import ENGINE, Place, place_of_path, workload_of
from oomdoc.units import NOMINAL_YEAR


@dataclass(frozen=True)
class Life:
    """One life of a server, from a log. Times are epoch seconds, None where the log shows none."""

    id: str
    source: str
    begin_t: float | None
    """Its first line."""
    end_t: float | None
    """Its last line."""
    at_work_t: float | None
    """The last line that shows it answering: a statistics line with throughput, or the server coming up."""
    served: bool
    end: str
    """How its own log ends: `failed`, `killed` (a worker or it ended by a signal), `stopped` (shut down in order), `open`."""
    pids: frozenset[int]
    place: Place
    work_line: int
    """A failure before this line was survived; 0 = nothing shows the server at work."""
    stop_line: int | None
    """Where its shutdown in order begins: what fails after it is its consequence."""

    @property
    def begun(self) -> bool:
        """Whether the log shows it start; what stands before the first start, and a text that holds a failure alone, shows none."""
        return not self.id.endswith("#0")


@dataclass
class Server:
    """Everything in the bundle that is the server's own: lives, and the containers and pods that run it."""

    lives: Sequence[Life] = ()
    pods: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)
    """Names of containers that serve."""
    initializing: set[str] = field(default_factory=set)
    """Pods of its own in which it waits for the containers that prepare them."""
    container_ids: set[str] = field(default_factory=set)
    pod_uids: set[str] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    memory_limits: set[int] = field(default_factory=set)
    """What its containers may hold of the host's memory, as their descriptions or its launch say."""
    told_limits: set[int] = field(default_factory=set)
    """Limits that people tell, of whichever container."""
    is_vllm: bool = False
    """Its own words are vLLM's, and not those of another make."""
    exit_codes: set[int] = field(default_factory=set)
    """How its containers ended that describe their last end."""
    ended: set[float] = field(default_factory=set)
    """When its containers ended last, as their descriptions tell."""
    listed_pids: set[int] = field(default_factory=set)
    """Its processes by a list of them, where its own log names none."""
    running_since: float | None = None
    """Its container runs since then, as Kubernetes or docker says."""
    kin: Kin = field(default_factory=Kin)
    """The names that it goes by."""

    @property
    def workloads(self) -> set[str]:
        """Names that the replicas share."""
        return {workload_of(pod) for pod in self.pods}

    @property
    def came_up(self) -> bool:
        """Some life serves or served, and none ended by a failure, a kill or without a word after a start that did not end."""
        return any(life.served for life in self.lives) and all(
            life.end in ("open", "stopped") and life.served for life in self.lives
        )


LIVES_SQL = """
WITH spoken AS (
  SELECT source, line, t, pid, NULL::VARCHAR AS says FROM engine_figure
  UNION ALL SELECT source, line, t, pid, CASE WHEN name = 'serving' AND text = 'Processed prompts' THEN 'bar' WHEN name IN ('serving', 'engine-ready') THEN 'up' WHEN name IN ('shutdown', 'terminated') THEN 'stop' WHEN name IN ('load-progress', 'loaded', 'kv-available', 'kv-sized', 'kv-blocks', 'capture-progress') THEN 'step' END FROM milestone
  UNION ALL SELECT source, line, t, pid, CASE WHEN generation_tokens_per_s > 0 OR prompt_tokens_per_s > 0 THEN 'work' END FROM engine_stat
  UNION ALL SELECT source, line, t, pid, 'failed' FROM oom
  UNION ALL SELECT source, line, t, pid, 'failed' FROM startup_check
  UNION ALL SELECT source, line, t, pid, CASE WHEN kind NOT IN ('client', 'echo', 'hang') THEN 'failed' END FROM log_error
  UNION ALL SELECT source, line, t, pid, CASE WHEN exit_code IN (-9, 137) THEN 'killed' WHEN coalesce(exit_code, 1) <> 0 THEN 'failed' END FROM process_exit
  UNION ALL SELECT source, line, t, pid, NULL FROM engine_flag
)
SELECT s.start_id, s.source, s.served, min(x.t) AS begin_t, max(x.t) AS end_t, greatest(
    max(x.t) FILTER (says IN ('work', 'up', 'bar')),
    -- the steps of a start are work as well, unless it was ended: what follows in its log is another one's then
    CASE WHEN count(*) FILTER (says = 'killed') = 0 THEN max(x.t) FILTER (says = 'step') END
  ) AS at_work_t,
  -- one line of statistics after a failure may tell of the seconds before it; two, or a start that completes, do not;
  -- a bar that is not at its end is drawn once more where it is closed, also by the failure
  greatest(coalesce((max(x.line, 2) FILTER (says = 'work'))[2], 0), coalesce(max(x.line) FILTER (says = 'up'), 0)) AS work_line,
  min(x.line) FILTER (says = 'stop') AS stop_line,
  max(x.line) FILTER (says = 'failed') AS failed_line, max(x.line) FILTER (says = 'killed') AS killed_line,
  list(DISTINCT x.pid) FILTER (x.pid IS NOT NULL) AS pids
FROM engine_start s JOIN spoken x ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
WHERE s.engine GROUP BY ALL ORDER BY s.source, s.start_id
"""


def life_of(row: Mapping[str, Any]) -> Life:
    """A life from the row of `LIVES_SQL`.

    An error after which the same life goes on to work is survived; one after its orderly end belongs to that end.
    """
    worked, stopped = row["work_line"] or 0, row["stop_line"]
    last = stopped if stopped is not None else 1 << 32
    killed = worked < (row["killed_line"] or 0) < last
    failed = worked < (row["failed_line"] or 0) < last
    end = "killed" if killed else "failed" if failed else "stopped" if stopped is not None else "open"
    return Life(
        row["start_id"], row["source"], row["begin_t"], row["end_t"], row["at_work_t"], bool(row["served"]), end,
        frozenset(row["pids"] or ()), place_of_path(row["source"]), worked, stopped,
    )  # fmt: skip


def server_of(lives: Sequence[Life], containers: Sequence[Mapping[str, Any]], kin: Kin) -> Server:
    """The server that the bundle is about.

    A container is its own if its image or command serves, or its pod or id is that of a life's log; where neither is
    told, one that asks for a GPU; else those that are named as a model server is, by their pod or, without one, themselves, and of several of
    these the ones that share a word with this server's own names; where only one pod is described, that one.
    Where none is, one that began and ended with a life's log is its own, whatever its image is called.
    Without a log, the pod whose end was asked for is what the bundle is about.
    """
    server = Server(lives, kin=kin)
    for life in lives:
        _add(server, life.place.pod, life.place.namespace, life.place.pod_uid, life.place.container_id, life.place.node)
        if life.place.container:
            server.containers.add(life.place.container)
    logged = set(server.pods)
    shown = {
        row["pod"] for row in containers if row["serves"]
    }  # what stands beside the container that serves is a helper
    own = [
        row for row in containers
        if row["serves"] or (row["serves"] is None and (row["pod"] in logged - shown or bool(row.get("image") and ENGINE.search(row["image"]))))
    ]  # fmt: skip
    if not own and not logged:
        own = [row for row in containers if row["gpus"] and row["serves"] is None]
    if not own and not logged:
        named = [row for row in containers if row["serves"] is None and kin.has(row["pod"] or row["name"])]
        own = [row for row in named if kin.shares_a_word(row["pod"] or row["name"])] or named
    if not own and not logged and len({row["pod"] for row in containers}) == 1:
        own = [row for row in containers if row["serves"] is not False and not outlived(row, lives)]
    own = _asked_about(containers, own) if not lives else own
    own = own or [row for row in containers if any(lived_as_long(row, life) for life in lives)]
    for row in own:
        _add(server, row["pod"], row["namespace"], row["pod_uid"], row["container_id"], row["node"])
        if row["name"]:
            server.containers.add(row["name"])
        if row["memory_limit_bytes"]:
            server.memory_limits.add(row["memory_limit_bytes"])
        if row["serves"] and row["ended_t"] is not None:
            server.ended.add(row["ended_t"])
        if row["serves"] and row["exit_code"] is not None:
            server.exit_codes.add(row["exit_code"])
        if row["state"] == "Waiting" and row["reason"] == "PodInitializing":
            server.initializing.add(row["pod"])
        if row["state"] == "Running" and row["started_t"] is not None:
            server.running_since = max(row["started_t"], server.running_since or row["started_t"])
    return server


WENT_ON_S = 60.0
"""A server whose worker was killed stops answering within seconds; statistics come every ten."""
ZONE_S, ZONES_S, SEEN_S = 1800.0, 14 * 3600.0, 90.0
"""Zones differ by half hours and up to fourteen hours; an engine notices a dead worker within a minute and a half."""
LAST_S, BEFORE_S = 30.0, 5.0
"""An engine with work in hand writes every ten seconds: its last line is no more than three times that before its end, and
a clock of whole seconds may tell the end a little before it."""


def zone_apart(t: float, life: Life, within: float = SEEN_S) -> float:
    """By how many seconds a clock that tells `t` for the end of a life is ahead of the life's log: 0 = by none, or `t` is not its end."""
    behind = math.inf if life.end_t is None else t - life.end_t
    if not abs(behind) <= ZONES_S:
        return 0.0
    steps = round((behind - (within - BEFORE_S) / 2) / ZONE_S)
    return steps * ZONE_S if steps and -BEFORE_S <= behind - steps * ZONE_S <= within else 0.0


DAY_S = 86400.0
ANOTHER_DAY_S = 12 * 3600.0
"""A supervisor starts again within minutes, and tries of one person follow each other within a working day."""


def ended_another_day(row: Mapping[str, Any], server: Server) -> float | None:
    """Seconds between the end of another pod's container and the begin of a server that came up and shows no end; None where it is none of another day."""
    begins = [life.begin_t for life in server.lives if life.begin_t is not None]
    its = any(row["pod"] in (life.place.pod or life.source) for life in server.lives) if row["pod"] else True
    if not server.came_up or not begins or row["ended_t"] is None or its:
        return None
    before = min(begins) - in_year_of(row["ended_t"], min(begins))
    return before if before > ANOTHER_DAY_S else None


def outlived(row: Mapping[str, Any], lives: Sequence[Life]) -> bool:
    """Whether a server answered on after a container of no cluster had ended: it was another program's.

    Years are left out where one of the two clocks tells none.
    """
    if row["ended_t"] is None or row["pod"] or row["serves"]:
        return False
    for life in lives:
        if life.at_work_t is None or life.begin_t is None:
            continue
        ended = in_year_of(row["ended_t"], life.at_work_t)
        if life.begin_t < ended < life.at_work_t - WENT_ON_S and not zone_apart(ended, life):
            return True
    return False


def lived_as_long(row: Mapping[str, Any], life: Life) -> bool:
    """Whether a log begins and ends with a container: after it had begun, before it had ended, and hardly apart on both sides.

    A program that is asked to stop says so, and may take the time that it is granted (half a minute where nobody says otherwise) before
    it is gone. Beginnings alone agree by chance where all of a node starts at a time.
    """
    ended, ran = cast("float | None", row["ended_t"]), cast("float | None", row.get("ran_s"))
    if ended is None or ran is None or life.begin_t is None or life.end_t is None:
        return False
    loading, leaving = life.begin_t - (ended - ran), ended - life.end_t
    return -BEFORE_S <= loading <= SEEN_S and -BEFORE_S <= leaving <= SEEN_S


def long_before(day: float, lives: Sequence[Life]) -> float | None:
    """Seconds by which a day that a text names began before the first life; None where it was not over by then in any zone, or no life tells its time."""
    begins = [life.begin_t for life in lives if life.begin_t is not None]
    before = min(begins) - in_year_of(day, min(begins)) if begins else 0.0
    return before if before > DAY_S + ZONES_S else None


def in_year_of(t: float, other: float) -> float:
    """A time in the year of another one, where that tells none."""
    one, its = (dt.datetime.fromtimestamp(each, dt.UTC) for each in (t, other))
    return (
        one.replace(year=its.year).timestamp() if its.year < NOMINAL_YEAR + 3 and (one.month, one.day) != (2, 29) else t
    )


_BAD_ENDS = frozenset(("OOMKilled", "Error", "Evicted", "CrashLoopBackOff"))


def _asked_about(containers: Sequence[Mapping[str, Any]], own: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The one pod whose end somebody had described, where the servers beside it run and are no more than names in a list."""
    ended = {row["pod"] for row in containers if (row.get("last_reason") or row.get("reason")) in _BAD_ENDS}
    about = [row for row in containers if row["pod"] in ended and row["pod"]]
    told = any(row.get("exit_code") is not None and row.get("memory_limit_bytes") is not None for row in about)
    listed = all(
        row["state"] == "Running" and row["serves"] is None and not row["gpus"] and row["pod"] not in ended
        for row in own
    )
    return about if len(ended) == 1 and told and listed else own


def _add(
    server: Server, pod: str | None, namespace: str | None, uid: str | None, container: str | None, node: str | None
) -> None:
    for value, known in (
        (pod, server.pods), (namespace, server.namespaces), (uid, server.pod_uids), (container, server.container_ids), (node, server.nodes),
    ):  # fmt: skip
        if value:
            known.add(value)
