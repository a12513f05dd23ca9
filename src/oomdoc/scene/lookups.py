"""What lines and sources are about that name nobody: the object whose description a line stands in, the devices of a source by size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomdoc.regexes import regex
from oomdoc.scene.lives import Server
from oomdoc.scene.owner import FOREIGN, NEAR, UNKNOWN, Bond
from oomdoc.scene.places import SAME_SIZE, place_of_path
from oomdoc.scene.presence import Tables


def rows_of(store: Tables, table: str, columns: str, where: str = "true") -> list[dict[str, Any]]:
    """Rows of a table in their order; none of one that is empty."""
    if table not in store.filled:
        return []
    order = "ALL" if columns.startswith("DISTINCT") else "source, line"
    return store.rows_of(f"SELECT {columns} FROM main.{table} WHERE {where} ORDER BY {order}")


def placed_rows(store: Tables, table: str, columns: str, where: str = "true") -> list[dict[str, Any]]:
    """Rows of a table, each with its place in it as `row`; NULL where the table stands in parts."""
    return rows_of(store, table, f"{'NULL' if table in store.parted else 'rowid'} AS row, {columns}", where)


_LABEL = regex(r'\b(?P<name>namespace|pod|pod_name|container|container_name|name)="(?P<value>[^"]*)"')


def box_of(labels: str | None) -> tuple[str | None, str | None, str | None]:
    """Namespace, pod and container of a sample that an exporter of containers gave.

    >>> box_of('namespace="chat",pod="llm-0",container="vllm"'), box_of('id="/docker/4f1e",name="proxy"'), box_of(None)
    (('chat', 'llm-0', 'vllm'), (None, None, 'proxy'), (None, None, None))
    """
    found = {match["name"]: match["value"] for match in _LABEL.finditer(labels or "") if match["value"]}
    pod, container = found.get("pod") or found.get("pod_name"), found.get("container") or found.get("container_name")
    return found.get("namespace"), pod, container or (None if pod else found.get("name"))


def of_source(path: str, server: Server, sizes: set[int], known: set[int], elsewhere: bool) -> Bond | None:
    """A source of device samples whose path names a node: None where it does not.

    `sizes` are the totals of its devices, `known` those that the server's own evidence states, in bytes; `elsewhere` says that
    samples of devices lie outside of any node's folder as well.
    """
    node = place_of_path(path).node
    if node is None:
        return None
    if server.nodes:
        return Bond(NEAR, f"node {node}") if node in server.nodes else Bond(FOREIGN, f"another node, {node}")
    if sizes and known:
        same = any(abs(one - other) <= SAME_SIZE * max(one, other) for one in sizes for other in known)
        return Bond(
            NEAR if same else FOREIGN,
            f"node {node}, whose devices are {'as large as' if same else 'of another size than'} the server's",
        )
    if elsewhere:
        return Bond(FOREIGN, f"another node, {node}")
    return Bond(UNKNOWN, f"node {node}, of which nothing says that the server ran there")


class Devices:
    """Sizes of the devices in each source, to tell those of the server's node from those of another."""

    TABLES = ("gpu_sample", "gpu_process", "gpu_device")

    def __init__(self, store: Tables) -> None:
        self._sizes: dict[str, set[int]] = {}
        for table in ("gpu_sample", "gpu_device"):
            for row in rows_of(store, table, "DISTINCT source, total_bytes", "total_bytes IS NOT NULL"):
                self._sizes.setdefault(row["source"], set()).add(row["total_bytes"])
        nodeless = {source for source in self._sizes if place_of_path(source).node is None}
        self._elsewhere = bool(nodeless)
        self._known = {size for source in nodeless for size in self._sizes[source]}
        self._known |= {
            row["total_bytes"]
            for row in rows_of(store, "oom", "DISTINCT source, total_bytes", "total_bytes IS NOT NULL")
        }

    def owner_of(self, source: str, server: Server) -> Bond | None:
        """Whose the devices of a source are."""
        return of_source(source, server, self._sizes.get(source, set()), self._known, self._elsewhere)


class Descriptions:
    """Which object a line is about that names none: the one whose description it stands in."""

    def __init__(self, store: Tables) -> None:
        self._by_source: dict[str, list[dict[str, Any]]] = {}
        for row in rows_of(store, "described", "source, line, kind, name, namespace, target"):
            self._by_source.setdefault(row["source"], []).append(row)

    def _at(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        before = [each for each in self._by_source.get(row["source"], ()) if each["line"] <= row["line"]]
        return before[-1] if before else None

    def of_event(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Object and namespace of an event."""
        found = self._at(row)
        if row["object"] or found is None or found["kind"] == "scaler":
            return {}
        return {"object": f"{found['kind']}/{found['name']}", "namespace": row["namespace"] or found["namespace"]}

    def of_exit(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Whose process a status without a name is of: the unit of a service manager that is described there."""
        found = self._at(row)
        return {} if row["name"] or found is None or found["kind"] != "unit" else {"name": found["name"]}

    def of_scaler(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Target and namespace of a statement about a scaler."""
        found = self._at(row)
        if row["target"] or found is None or found["kind"] != "scaler":
            return {}
        return {"target": found["target"], "namespace": row["namespace"] or found["namespace"]}
