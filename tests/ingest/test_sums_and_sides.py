"""Rows that are sums over many requests are no requests; tables with a column for each attempt are read attempt by attempt."""

from __future__ import annotations

import pytest

from forms import read

HOURS = range(5)


@pytest.mark.parametrize(
    "text",
    [
        "day,model,calls,input_tokens,output_tokens,latency\n" + "".join(f"2026-05-0{h + 1},m,{410 + h},{91000 + h},{8100 + h},1.5\n" for h in HOURS),
        "window_start,window_end,input_tokens,output_tokens,latency_s\n" + "".join(f"2026-05-01T0{h}:00:00Z,2026-05-01T0{h + 1}:00:00Z,{91000 + h},{8100 + h},1.5\n" for h in HOURS),
        "hour,requests,prompt_tokens,completion_tokens\n" + "".join(f"{h},{410 + h},{91000 + h},{8100 + h}\n" for h in HOURS),
    ],
)  # fmt: skip
def test_sums_over_many_requests_are_no_requests(text: str) -> None:
    kind, found = read("usage.csv", text.encode())
    assert kind != "request-log" and "request" not in found


def test_a_count_within_a_request_makes_it_no_sum() -> None:
    text = "ts,input_tokens,output_tokens,call_s,tool_calls\n" + "".join(f"2026-05-01T07:00:0{h}Z,{900 + h},{80 + h},{2 + h},{h + 2}\n" for h in HOURS)  # fmt: skip
    rows = read("log.csv", text.encode())[1]["request"]
    assert [(row["input_tokens"], row["latency_s"]) for row in rows] == [(900 + h, 2.0 + h) for h in HOURS]


def attempts(text: str) -> list[dict[str, object]]:
    """The settings of each attempt in order, with how it went."""
    found: dict[int, dict[str, object]] = {}
    for row in read("tries.txt", text.encode())[1].get("trial", []):
        found.setdefault(row["attempt"], {"works": row["works"]})[row["flag"]] = row["value"]
    return list(found.values())


SIDE = [
    ("max_num_seqs", "192", "96"),
    ("gpu_memory_utilization", "0.94", "0.88"),
    ("KV cache size (tokens)", "151,000", "120,000"),
    ("result", "OOM after 5 min", "stable"),
]


@pytest.mark.parametrize(
    "head",
    [("", "attempt 1", "attempt 2"), ("setting", "night", "morning"), ("what", "run A", "run B"), ("", "config 1", "config 2")],
)  # fmt: skip
def test_a_column_for_each_attempt_is_an_attempt(head: tuple[str, str, str]) -> None:
    text = "".join("| " + " | ".join(row) + " |\n" for row in (head, ("---",) * 3, *SIDE))
    first, second = attempts(text)
    assert (first["max_num_seqs"], first["gpu_memory_utilization"], first["works"]) == ("192", "0.94", False)
    assert (second["max_num_seqs"], second["gpu_memory_utilization"], second["works"]) == ("96", "0.88", True)
    figures = read("tries.txt", text.encode())[1]["trial_figure"]
    assert [row["value"] for row in figures if row["quantity"] == "kv_tokens"] == [151000.0, 120000.0]


@pytest.mark.parametrize("head", [("", "monday", "tuesday"), ("pod", "chat-0", "chat-1")])
def test_columns_of_something_else_are_no_attempts(head: tuple[str, str, str]) -> None:
    rows = (("lunch", "soup", "rice"), ("visitors", "12", "9"), ("rooms", "3", "4"))
    text = "".join("| " + " | ".join(row) + " |\n" for row in (head, ("---",) * 3, *rows))
    assert not attempts(text)
