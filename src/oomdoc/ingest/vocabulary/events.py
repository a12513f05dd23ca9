"""Events of a cluster, as `kubectl get events` and exports of it name their columns."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

QUANTITIES = (
    Quantity(
        "event.age", "cluster_event", "age_s", "age",
        strong="last seen",
        weak="age, first seen",
        exact="LAST SEEN, lastSeen",
        high=10 * 365 * 86_400,
    ),
    Quantity(
        "event.type", "cluster_event", "type", "text",
        strong="event type",
        weak="type, severity, level",
        pattern=r"^(?:Normal|Warning)$",
    ),
    Quantity(
        "event.reason", "cluster_event", "reason", "text",
        strong="event reason",
        weak="reason, event",
        pattern=r"^[A-Z][A-Za-z]{2,40}$",
    ),
    Quantity(
        "event.object", "cluster_event", "object", "text",
        strong="involved object, regarding, event object",
        weak="object, resource",
        pattern=r"^[A-Za-z]+/[\w.-]+$",
        exact="involvedObject.name, involvedObject",
    ),
    Quantity(
        "event.count", "cluster_event", "count", "count",
        strong="event count, times seen",
        weak="times, occurrences, repeats",
        exact="count, series.count",
        high=1e9,
    ),
    Quantity(
        "event.message", "cluster_event", "message", "text",
        strong="event message",
        weak="message, msg, note, text, description",
    ),
    Quantity(
        "metric.restarts", "metric", ":kube_pod_container_status_restarts_total", "count",
        strong="restart total, restarts total, container restarts, container restarts total, pod restarts, pod restarts total",
        exact="kube_pod_container_status_restarts_total, restarts_total",
        high=1e6, counter=True,
    ),
    Quantity(
        "metric.probe_failures", "metric", ":probe_failures_total", "count",
        strong="probe failed, probe failed total, probe failures, probe failures total, liveness failed, liveness failed total, liveness failures, liveness failures total, probe liveness failed, probe liveness failed total, probe liveness failures, probe liveness failures total, startup probe failed total, startup probe failures total, health check failed, health check failed total, health check failures, health check failures total, healthcheck failures, healthcheck failures total",
        high=1e9, counter=True,
    ),
    Quantity(
        "life.begin", "container", "+begin", "text",
        strong="start utc, started utc, start local, life start, container start",
        weak="start, started, begin, from, started at, start time, startedAt",
        pattern=r"\d{1,2}:\d\d",
    ),
    Quantity(
        "life.end", "container", "+end", "text",
        strong="end utc, ended utc, end local, life end, container end, killed at, died at",
        weak="end, ended, to, until, finished, finished at, stopped, stop, end time, finishedAt",
        pattern=r"\d{1,2}:\d\d",
    ),
    Quantity(
        "life.lasted", "container", "ran_s", "seconds",
        strong="lifetime, life s, lived, lived s, ran s, lasted, lasted s, life",
        weak="ran",
        high=1e9,
    ),
    Quantity(
        "life.code", "container", "exit_code", "number",
        strong="exit code, exitcode, exit status",
        weak="exit, code, rc",
        low=-64, high=255,
    ),
    Quantity(
        "life.id", "container", "container_id", "text",
        strong="container id, containerid",
        pattern=r"^[0-9a-f]{12,64}$",
    ),
    Quantity("life.image", "container", "image", "text", weak="image", pattern=r"^[\w.:/@-]{3,200}$"),
    Quantity("life.name", "container", "name", "text", weak="names, name", pattern=r"^[\w./-]{1,120}$"),
    Quantity(
        "life.reason", "container", "last_reason", "text",
        strong="termination reason, exit reason, last reason, end reason",
        weak="reason",
        pattern=r"^[A-Z][A-Za-z]{3,30}$",
    ),
)  # fmt: skip
