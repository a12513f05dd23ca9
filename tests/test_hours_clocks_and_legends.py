"""Whose hours a reading of the pool is of, what moments and paths a table of calls names, what a legend and a pod are called after: from text to rows or to the verdict, with a rival each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_ends_told_outside import put
from verdicts import UP, analysed, likely, minute, shows, tables


def rows(folder: Path, files: dict[str, str], query: str) -> list[tuple[object, ...]]:
    with tables(put(folder, files)) as analysis:
        return list(analysis.sql(query)[1])


def clock(seconds: float) -> str:
    return f"{8 + int(seconds) // 3600:02}:{int(seconds) // 60 % 60:02}:{seconds % 60:06.3f}"


def calls(prompt: int, at_once: int, cut: bool = False) -> str:
    """A gateway's sheet, with the moments of each call: `at_once` run together for 60 s each, who comes every 10 s waits for its turn; from 09:00 on."""
    lines = ["id,begun_utc,first_token_utc,ended_utc,prompt_tokens,completion_tokens,http"]
    free = [3600.0] * at_once
    for nth in range(120):
        came = 3600.0 + 10 * nth
        turn = max(came + 0.5, min(free))
        free[free.index(min(free))] = turn + 60
        if cut and turn + 60 > came + 300:
            lines.append(f"{nth},2026-03-02T{clock(came)}Z,,2026-03-02T{clock(came + 300)}Z,{prompt},0,504")
        else:
            lines.append(f"{nth},2026-03-02T{clock(came)}Z,2026-03-02T{clock(turn)}Z,2026-03-02T{clock(turn + 60)}Z,{prompt},200,200")  # fmt: skip
    return "\n".join(lines) + "\n"


CALM = UP + "".join(minute(at, 2, 0, 4.0 + at % 3) for at in range(2, 40))
"""The log breaks off before nine, while everything was calm."""


@pytest.mark.parametrize("cut", [False, True], ids=["all answered", "a timer cuts who waits"])
@pytest.mark.parametrize(("prompt", "demand"), [(84_000, True), (9_000, False)])
def test_a_log_of_another_hour_says_nothing_of_the_queue(tmp_path: Path, prompt: int, demand: bool, cut: bool) -> None:
    """Four prompts of 84,000 tokens are the pool of 390,000; of 9,000 something else lets no more than four run."""
    found = likely(tmp_path, {"server.log": CALM, "calls.csv": calls(prompt, 4, cut)})
    assert (found == "kv-demand-exceeds-pool") is demand


def test_a_log_of_the_same_hour_tells_that_the_pool_had_room(tmp_path: Path) -> None:
    """The gateway's clock shows the same minutes as the log, and the pool is nearly empty in each of them."""
    log = UP + "".join(minute(at, 2, 0, 4.0 + at % 3).replace(" 08:", " 09:") for at in range(1, 40))
    files = {"server.log": log, "calls.csv": calls(84_000, 4)}
    assert rows(tmp_path, files, "SELECT samples > 30, peak < 0.1 FROM kv_pressure") == [(True, True)]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("start_utc", "first_token_utc", "end_utc"), (4.0, 0.5)),
        (("submitted_at", "first_byte_at", "finished_at"), (4.0, 0.5)),
        (("arrival_ts", "first_chunk_ts", "done_ts"), (4.0, 0.5)),
        (("start_note", "first_token_note", "end_note"), (None, None)),
    ],
)
def test_moments_of_a_call_by_the_clock_behind_their_names(
    tmp_path: Path, names: tuple[str, str, str], told: tuple[float | None, float | None]
) -> None:
    lines = [f"id,{names[0]},{names[1]},{names[2]},prompt_tokens,completion_tokens,status"]
    lines += [f"r{nth},2026-05-04T10:{nth:02}:01Z,2026-05-04T10:{nth:02}:01.5Z,2026-05-04T10:{nth:02}:05Z,800,90,200" for nth in range(9)]  # fmt: skip
    assert rows(tmp_path, {"calls.csv": "\n".join(lines)}, "SELECT DISTINCT round(latency_s, 3), round(ttft_s, 3) FROM request") == [told]  # fmt: skip


@pytest.mark.parametrize(("key", "known"), [("system_prompt_sha", True), ("prefix_digest", True), ("image_tag_sha", False)])  # fmt: skip
def test_a_digest_of_a_text_names_it(tmp_path: Path, key: str, known: bool) -> None:
    lines = [json.dumps({"ts": f"2026-05-04T10:00:{nth:02}Z", key: f"c0ffee{nth % 3}", "usage": {"prompt_tokens": 700, "completion_tokens": 9}, "status": 200}) for nth in range(9)]  # fmt: skip
    assert rows(tmp_path, {"calls.jsonl": "\n".join(lines)}, "SELECT count(DISTINCT tenant) FROM request") == [(3 if known else 0,)]  # fmt: skip


def proxied(path: str, limit: float) -> str:
    """An access log of a proxy as a table: one call in five takes longer than its limit, but for those that stream."""
    lines = ["time_iso8601,client,method,uri,status,bytes,duration_s,streams"]
    for nth in range(60):
        late = nth % 5 == 0
        took = limit + 0.002 if late else limit * 1.6 if nth % 7 == 0 else 4.0 + nth % 9
        lines.append(f"2026-03-02T08:{10 + nth // 3:02}:{nth % 3 * 20:02}+00:00,10.4.0.{nth % 8},POST,{path},{504 if late else 200},{140 + nth},{took:.3f},{'-' if late else 'yes'}")  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("path", "timer"), [("/v1/chat/completions", True), ("/shop/basket", False)])
def test_a_proxys_table_of_calls_shows_its_timer(tmp_path: Path, path: str, timer: bool) -> None:
    """Calls of a shop have a status and a duration as well, and are none of the server's."""
    files = {"server.log": CALM, "front.csv": proxied(path, 90.0)}
    assert rows(tmp_path, files, "SELECT seconds, times, answered_longest_s FROM timer") == (
        [(90.002, 12, 144.0)] if timer else []
    )
    assert shows(tmp_path, files, "not-memory", "ended-by-a-timer") is timer


@pytest.mark.parametrize(("legend", "read"), [("kv_usage_pct llm-3", True), ("kv_usage_pct pressure", False)])
def test_a_legend_names_the_instance_behind_its_series(tmp_path: Path, legend: str, read: bool) -> None:
    lines = [f"Time,{legend},running,waiting"]
    lines += [f"2026-03-02 10:{at:02},{20 + at}.5,3,0" for at in range(12)]
    assert rows(tmp_path, {"server.log": CALM, "panel.csv": "\n".join(lines)}, "SELECT count(kv_used) > 0 FROM engine_stat WHERE source = 'panel.csv'") == [(read,)]  # fmt: skip


LISTED = (
    "NAMESPACE   NAME                        READY   STATUS    RESTARTS   AGE\n"
    "wiki        {name}   1/1     Running   0          6d\n"
    "wiki        crawler-29514410-vv8ks      0/1     Error     0          2h\n"
)


@pytest.mark.parametrize(("name", "whose"), [("wiki-7b-6c9f8d7b55-p4kzt", "foreign"), ("wiki-ui-6c9f8d7b55-p4kzt", "unknown")])  # fmt: skip
def test_a_pod_that_is_called_as_the_model_is_served(tmp_path: Path, name: str, whose: str) -> None:
    """Which of the pods serves is told by the name under which the model is asked for; what the others met is theirs."""
    scrape = 'vllm:num_requests_running{engine="0",model_name="wiki-7b"} 2.0\nvllm:kv_cache_usage_perc{engine="0",model_name="wiki-7b"} 0.1\n'
    files = {"server.log": CALM, "pods.txt": LISTED.format(name=name), "metrics.prom": scrape}
    query = "SELECT whose FROM relation WHERE of_table = 'container' AND source = 'pods.txt' AND line = 3"
    assert rows(tmp_path, files, query) == [(whose,)]


@pytest.mark.parametrize(
    ("text", "served"),
    [
        ("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='files.corp', port=443): Read timed out. (read timeout=30)", True),
        ("RuntimeError: NCCL error: unhandled system error", False),
    ],
)  # fmt: skip
def test_what_a_client_met_is_no_failure_of_a_second_server(tmp_path: Path, text: str, served: bool) -> None:
    """A job beside the server waits in vain for somebody else; what the server's log and its scrapes tell stays the server's."""
    scrape = 'vllm:num_requests_running{engine="0",model_name="wiki-7b"} 2.0\nvllm:kv_cache_usage_perc{engine="0",model_name="wiki-7b"} 0.1\n'
    files = {"server.log": CALM, "jobs.txt": f"crawler: {text}\n", "metrics.prom": scrape}
    own = rows(tmp_path, files, "SELECT count(*) = 0 FROM relation WHERE source = 'server.log' AND whose = 'foreign'")
    error = rows(tmp_path, files, "SELECT first_error_ref FROM failure")
    assert (own, error) == ([(served,)], [(None if served else "jobs.txt:1",)])


def shared(before: int, pool: int) -> dict[str, str]:
    """Two starts with the same flags on two nodes; what was used of their cards from before, as an exporter measures it."""

    def start(day: int, tokens: int) -> str:
        return UP.replace("03-02", f"03-0{day}").replace("390,000", f"{tokens:,}") + "".join(minute(at, 9, 0, 30.0).replace("03-02", f"03-0{day}") for at in range(2, 20))  # fmt: skip

    lines = ["time,Hostname,gpu,fb_used_mib"]
    for at in range(0, 240, 10):
        for host, used in (("n1", 71_000), ("n2", before if at < 120 else 71_000)):
            lines.append(f"2026-03-02T{6 + at // 60:02}:{at % 60:02}:00Z,{host},0,{used}")
    return {"a.log": start(1, 390_000), "b.log": start(2, pool), "exporter.csv": "\n".join(lines) + "\n"}


@pytest.mark.parametrize(("before", "taken"), [(28_128, True), (5_000, False)])
def test_a_pool_lacks_what_was_used_of_the_card_before(tmp_path: Path, before: int, taken: bool) -> None:
    """Qwen3-8B takes 147,456 bytes a token: 200,000 tokens are 28,125 MiB."""
    with analysed(put(tmp_path, shared(before, 190_000))) as analysis:
        signs = {
            sign.id for found in analysis.report.diagnoses if found.cause == "gpu-shared" for sign in found.evidence
        }
    assert ("the-pool-lacks-what-others-hold" in signs) is taken
