"""What happened when: readings on the grid, gaps that stay gaps, and the moments that are marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.assemble.timeline import AFTER_S, BEFORE_S, MOST_DEVICES, STEPS, timeline
from oomdoc.evidence.store import Store
from oomdoc.units import GIB, parse_time

T0 = 1_795_200_000.0


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as made:
        yield made


def told(
    store: Store, incident: dict[str, Any] | None = None, proof: tuple[tuple[str, str], ...] = ()
) -> dict[str, Any]:
    store.finish(None)
    return timeline(store, incident, proof)


def series(made: dict[str, Any], chart: str) -> dict[str, list[Any]]:
    return {row["name"]: row["values"] for row in made["series"] if row["chart"] == chart}


def place(made: dict[str, Any], t: float) -> int:
    begin = parse_time(made["from_t"])
    assert begin is not None
    return int((t - begin) // made["step_s"])


def test_nothing_with_a_time_is_nothing(store: Store) -> None:
    store.add("gpu_sample", [{"source": "a", "line": 1, "gpu": 0, "used_bytes": GIB}])
    assert told(store) == {}


def test_a_step_has_the_highest_reading_and_none_stays_none(store: Store) -> None:
    rows = [(0, 10), (100_000, 30), (100_001, 50), (3_600_000 / 10, 20)]
    store.add(
        "gpu_sample",
        [{"source": "smi.csv", "line": n, "t": T0 + t / 100, "gpu": 0, "used_bytes": used * GIB, "total_bytes": 80 * GIB} for n, (t, used) in enumerate(rows, 1)],
    )  # fmt: skip
    made = told(store)
    values = series(made, "device_memory")["GPU 0"]
    assert len(values) == made["steps"] <= STEPS + 1
    assert values[place(made, T0)] == 10 * GIB
    assert values[place(made, T0 + 1000)] == 50 * GIB
    assert sum(value is not None for value in values) == 3
    assert made["series"][0]["limit"] == 80 * GIB


def test_two_hosts_with_the_same_index_stay_apart(store: Store) -> None:
    store.add(
        "gpu_sample",
        [
            {"source": name, "line": 1, "t": T0 + n, "gpu": 0, "used_bytes": GIB}
            for n, name in enumerate(("a/smi", "b/smi"))
        ],
    )
    assert list(series(told(store), "device_memory")) == ["GPU 0, a/smi", "GPU 0, b/smi"]


def test_statistics_lines_count_before_metrics(store: Store) -> None:
    store.add(
        "engine_stat",
        [
            {"source": "v.log", "line": n, "t": T0 + 10 * n, "kv_used": n / 10, "running": n, "waiting": 0}
            for n in range(1, 9)
        ],
    )
    store.add("metric", [{"source": "m", "line": 1, "t": T0 + 5, "name": "vllm:kv_cache_usage_perc", "value": 0.99}])
    made = told(store)
    assert max(value for value in series(made, "kv_used")["KV pool in use"] if value is not None) == 0.8
    assert series(made, "requests")["waiting"][place(made, T0 + 40)] == 0


def test_metrics_speak_where_no_line_does_and_counters_are_growth(store: Store) -> None:
    scrapes = [(0, 5.0, 0.2), (300, 5.0, 0.9), (600, 47.0, 1.0), (900, 2.0, 0.3)]  # the last one after a restart
    for n, (t, counter, used) in enumerate(scrapes):
        for line, (name, value) in enumerate(
            (("vllm:num_preemptions_total", counter), ("vllm:gpu_cache_usage_perc", used)), 1
        ):
            store.add(
                "metric",
                [{"source": f"{n}.prom", "line": line, "t": T0 + t, "name": name, "labels": "", "value": value}],
            )
    made = told(store)
    assert [
        value for value in series(made, "preemptions")["preemptions since the scrape before"] if value is not None
    ] == [0, 42, 0]
    assert series(made, "kv_used")["KV pool in use"][place(made, T0 + 600)] == 1.0


def test_nobody_who_counts_preemptions_is_no_series(store: Store) -> None:
    store.add(
        "engine_stat",
        [
            {"source": "v.log", "line": 1, "t": T0, "kv_used": 0.5},
            {"source": "v.log", "line": 2, "t": T0 + 60, "kv_used": 0.6},
        ],
    )
    assert series(told(store), "preemptions") == {}


def test_arrivals_are_zero_between_the_first_and_the_last_and_unknown_outside(store: Store) -> None:
    store.add(
        "engine_stat", [{"source": "v.log", "line": n, "t": T0 + t, "kv_used": 0.5} for n, t in enumerate((0, 1000), 1)]
    )
    store.add(
        "request",
        [
            {"source": "r", "line": n, "t": T0 + t, "input_tokens": size}
            for n, (t, size) in enumerate(((300, 100), (300, 9000), (500, 600)), 1)
        ],
    )
    made = told(store)
    arrivals = series(made, "arrivals")
    assert set(arrivals) == {"S", "M", "XL"}
    assert arrivals["S"][place(made, T0)] is None
    assert arrivals["S"][place(made, T0 + 400)] == 0
    assert (arrivals["XL"][place(made, T0 + 300)], arrivals["M"][place(made, T0 + 500)]) == (1, 1)
    assert arrivals["M"][place(made, T0 + 900)] is None


def test_clocks_far_from_the_failure_are_left_out(store: Store) -> None:
    store.add(
        "gpu_sample",
        [
            {"source": "smi", "line": n, "t": t, "gpu": 0, "used_bytes": GIB}
            for n, t in enumerate((T0 - 40 * BEFORE_S, T0, T0 + 5 * AFTER_S), 1)
        ],
    )
    made = told(store, {"t": T0})
    assert series(made, "device_memory")["GPU 0"] == [GIB]


def test_the_proof_of_the_first_cause_is_marked_where_its_line_carries_a_time(store: Store) -> None:
    store.add("engine_stat", [{"source": "pods/a:b.log", "line": n, "t": T0 + n, "kv_used": 0.9} for n in (1, 7, 90)])
    proof = (
        ("pods/a:b.log:7", "the pool was full"),
        ("pods/a:b.log:8", "no such line"),
        ("notes.txt", "a whole file"),
        ("x:" + "9" * 30, "absurd"),
    )
    made = told(store, None, proof)
    assert [(mark["kind"], mark["says"], mark["ref"]) for mark in made["marks"]] == [
        ("evidence", "the pool was full", "pods/a:b.log:7")
    ]
    assert parse_time(made["marks"][0]["t"]) == T0 + 7


def test_a_day_of_many_devices_stays_small(tmp_path: Path) -> None:
    store = Store(tmp_path)  # so many rows go in as arrays, which a store without a scratch folder refuses
    lines = range(0, 86_400, 60)
    for gpu in range(MOST_DEVICES + 4):
        store.add(
            "gpu_sample",
            [
                {"source": "smi", "line": n + 1, "t": T0 + t, "gpu": gpu, "used_bytes": GIB + n}
                for n, t in enumerate(lines)
            ],
        )
    made = told(store)
    assert len(made["series"]) == MOST_DEVICES
    assert all(len(row["values"]) <= STEPS + 1 for row in made["series"])
    store.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 90_000), st.floats(0, 1)), min_size=1, max_size=40))
def test_no_reading_is_lost_or_made_up(points: list[tuple[float, float]]) -> None:
    with Store() as store:
        store.add(
            "engine_stat",
            [{"source": "v", "line": n, "t": T0 + t, "kv_used": used} for n, (t, used) in enumerate(points, 1)],
        )
        made = told(store)
        values = [value for value in series(made, "kv_used")["KV pool in use"] if value is not None]
        last = max(t for t, _ in points)
        seen = [used for t, used in points if t >= last - BEFORE_S]
        assert max(values) == round(max(seen), 4)
        assert 1 <= len(values) <= len(seen)
