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
        samples=(("LAST SEEN", "2m30s", 150.0),),
        not_names=("message age",),
    ),
    Quantity(
        "event.type", "cluster_event", "type", "text",
        strong="event type",
        weak="type, severity, level",
        pattern=r"^(?:Normal|Warning)$",
        samples=(("TYPE", "Warning", "Warning"),),
        not_names=("process type",),
    ),
    Quantity(
        "event.reason", "cluster_event", "reason", "text",
        strong="event reason",
        weak="reason, event",
        pattern=r"^[A-Z][A-Za-z]{2,40}$",
        samples=(("REASON", "OOMKilling", "OOMKilling"),),
        not_names=("finish_reason",),
    ),
    Quantity(
        "event.object", "cluster_event", "object", "text",
        strong="involved object, regarding, event object",
        weak="object, resource",
        pattern=r"^[A-Za-z]+/[\w.-]+$",
        exact="involvedObject.name, involvedObject",
        samples=(("OBJECT", "pod/llm-0", "pod/llm-0"),),
        not_names=("objective",),
    ),
    Quantity(
        "event.count", "cluster_event", "count", "count",
        strong="event count, times seen",
        weak="times, occurrences, repeats",
        exact="count, series.count",
        high=1e9,
        samples=(("count", "4", 4), ("times", 4, 4)),
        not_names=("token_count",),
    ),
    Quantity(
        "event.message", "cluster_event", "message", "text",
        strong="event message",
        weak="message, msg, note, text, description",
        samples=(("MESSAGE", "Back-off restarting failed container", "Back-off restarting failed container"),),
        not_names=("message_id",),
    ),
)  # fmt: skip
