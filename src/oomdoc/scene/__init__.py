"""The scene: who the server of the bundle is, its lives, and whose each event is. Rules and views see events through it only.

`bind` reads the evidence tables once, before any view but `engine_start` is made, and gives each event of hosts, clusters,
drivers and supervisors a `Bond` (table `relation`). What is not the server's own is hidden from views and rules, and
listed in the report as set aside, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.scene import strangers
from oomdoc.scene.kills import bind_kills
from oomdoc.scene.lives import Server
from oomdoc.scene.lookups import placed_rows
from oomdoc.scene.owner import FOREIGN, NEAR, OWN, UNKNOWN, Bond
from oomdoc.scene.passes import (
    bind_cluster,
    bind_containers,
    bind_devices,
    bind_exits,
    bind_held,
    bind_host_events,
    bind_limits,
    bind_measured,
    bind_told,
)
from oomdoc.scene.presence import Tables, shows_server
from oomdoc.scene.relation import COINCIDENT, TABLES, Aside, Place, Relation
from oomdoc.scene.who import explains_itself, lives_of, who_serves

__all__ = ["COINCIDENT", "FOREIGN", "NEAR", "OWN", "TABLES", "UNKNOWN", "Aside", "Bond", "Scene", "Tables", "bind"]


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
    lives = lives_of(store)
    known = strangers.others(store, lives)
    server = who_serves(store, lives, known)
    relation = Relation(
        known.strangers, shows_server(store, known.strangers), explains_itself(store, server, known.strangers)
    )
    relation.of_strangers(store.filled)
    containers = placed_rows(
        store,
        "container",
        "source, line, NULL::DOUBLE AS t, pod, name, namespace, serves, last_reason, reason, restarts, exit_code, ended_t",
    )
    kills = bind_kills(store, server, relation, containers)
    bind_host_events(store, server, relation)
    bind_containers(server, relation, containers)
    bind_cluster(store, server, relation)
    bind_measured(store, server, relation)
    bind_held(store, server, relation, containers)
    bind_exits(store, server, relation, containers)
    bind_told(store, server, relation)
    bind_limits(store, server, relation)
    bind_devices(store, server, relation)
    return Scene(
        server,
        relation.present,
        relation.bonds,
        relation.asides(),
        relation.explained,
        frozenset(known.strangers),
        kills,
    )
