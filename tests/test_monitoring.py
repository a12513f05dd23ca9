"""The alert rules and the dashboard that the docs ship: well-formed, and of metrics that really exist, asked as their kind allows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from oomdoc.assemble import watch
from oomdoc.judge.rules import load_rules

FOLDER = Path(__file__).parents[1] / "docs" / "monitoring"
METRICS: dict[str, dict[str, str]] = {
    name: fields
    for group in tomllib.loads((FOLDER / "metrics.toml").read_text(encoding="utf-8")).values()
    for name, fields in group.items()
}
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
BOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
EXPRESSIONS = [
    *((rule["alert"], rule["expr"]) for rule in ALERTS),
    *((panel["title"], target["expr"]) for panel in BOARD["panels"] for target in panel["targets"]),
]
FUNCTIONS = {"sum", "max", "min", "avg", "count", "rate", "increase", "delta", "deriv", "histogram_quantile"}
WORDS = {"by", "without", "on", "ignoring", "and", "or", "unless", "group_left", "group_right"}
TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")|(?P<range>\[(?:\d+[smhdw]|\$__rate_interval)\])|(?P<name>[A-Za-z_:][\w:]*)|(?P<number>\d+(?:\.\d+)?)|(?P<mark>=~|!~|!=|==|>=|<=|[-+*/<>=(){},])|(?P<blank>\s+)"""
)


def asked(expression: str) -> Iterator[tuple[str, str | None]]:
    """Each metric of an expression with the function right around its range (None = asked as it is); ValueError if it is malformed."""
    tokens: list[tuple[str, str]] = []
    place = 0
    while place < len(expression):
        match = TOKEN.match(expression, place)
        if match is None:
            raise ValueError(f"{expression[place : place + 20]!r}")
        place = match.end()
        if match.lastgroup != "blank":
            tokens.append((str(match.lastgroup), match[0]))
    around: list[str | None] = []
    opened: list[str] = []
    for number, (kind, text) in enumerate(tokens):
        before = tokens[number - 1][1] if number else ""
        after = tokens[number + 1][1] if number + 1 < len(tokens) else ""
        if text in "({":
            opened.append(text)
            # labels of `by (...)`, which come before or after what is aggregated
            around.append(
                "labels"
                if text == "{" or before in WORDS
                else before
                if before in FUNCTIONS
                else around[-1]
                if around
                else None
            )
            if text == "(" and before == ")" and around[-1] != "labels":
                around[-1] = None
        elif text in ")}":
            if not opened or opened.pop() + text not in ("()", "{}"):
                raise ValueError("brackets")
            around.pop()
        elif kind == "name" and not (around and around[-1] == "labels"):
            if text in FUNCTIONS or text in WORDS:
                if text in FUNCTIONS and after not in ("(", "by"):
                    raise ValueError(f"{text} without brackets")
            else:
                yield text, around[-1] if around else None
    if opened:
        raise ValueError("brackets")


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_every_metric_exists_and_is_asked_as_its_kind_allows(title: str, expression: str) -> None:
    found = list(asked(expression))
    assert found, title
    for name, function in found:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        histogram = METRICS.get(base, {}).get("kind") == "histogram" and base != name
        assert histogram or name in METRICS, f"{title}: no metric {name}"
        kind = "histogram" if histogram else METRICS[name]["kind"]
        if kind == "gauge":
            assert function not in ("rate", "increase"), f"{title}: {name} is a gauge"
        else:
            assert function in ("rate", "increase"), f"{title}: {name} is a {kind}"


@pytest.mark.parametrize("wrong", ["rate(x[5m]", "sum(a))", "a > @", "sum x", 'a{b="c"', "rate(x[5 minutes])"])
def test_a_malformed_expression_would_be_seen(wrong: str) -> None:
    with pytest.raises(ValueError):
        list(asked(wrong))


def test_what_is_read_out_of_an_expression() -> None:
    text = 'sum by (le, instance) (rate(a_bucket{x=~"b.*"}[5m])) / max by (c) (d or e) > 2 and on (f) g'
    assert list(asked(text)) == [("a_bucket", "rate"), ("d", None), ("e", None), ("g", None)]
    assert list(asked("rate(a[5m]) or delta(b[1h])")) == [("a", "rate"), ("b", "delta")]


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def test_the_list_of_metrics_is_complete_and_sane() -> None:
    for name, fields in METRICS.items():
        assert fields["kind"] in ("gauge", "counter", "histogram"), name
        assert ("since" in fields) == name.startswith("vllm:"), name
        assert (fields["kind"] == "counter") == name.endswith("_total"), name
        if "until" in fields:
            assert version(fields["since"]) < version(fields["until"]), name
    used = {
        re.sub(r"_(bucket|sum|count)$", "", name) if name not in METRICS else name
        for _, text in EXPRESSIONS
        for name, _ in asked(text)
    }
    unused = {"vllm:request_generation_tokens", "vllm:e2e_request_latency_seconds", "process_start_time_seconds"}
    assert METRICS.keys() - used <= unused


def test_a_metric_that_was_renamed_is_asked_by_both_names() -> None:
    for _, text in EXPRESSIONS:
        names = {name for name, _ in asked(text)}
        for old, new in (
            ("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"),
            ("vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits_total"),
        ):
            assert (old in names) == (new in names)


def test_alert_rules_have_the_form_of_prometheus() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names)
    causes = {rule.id for rule in load_rules(None)[0]}
    for rule in ALERTS:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[A-Z]\w+", rule["alert"])
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description", "cause"}
        assert rule["annotations"]["cause"] in causes
        assert re.search(r"[<>]=?|==", rule["expr"]), "an alert needs a threshold"
        for text in rule["annotations"].values():
            assert text.count("{{") == text.count("}}")


def test_promtool_is_content() -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool here; the tests above read the rules themselves")
    ran = subprocess.run([program, "check", "rules", str(FOLDER / "alerts.yaml")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_dashboard_has_what_grafana_requires() -> None:
    assert isinstance(BOARD["title"], str) and re.fullmatch(r"[\w-]{1,40}", BOARD["uid"])
    assert isinstance(BOARD["schemaVersion"], int) and BOARD["time"].keys() == {"from", "to"}
    assert {entry["name"]: entry["type"] for entry in BOARD["templating"]["list"]} == {
        "datasource": "datasource",
        "instance": "query",
    }
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    for panel in BOARD["panels"]:
        assert panel["type"] in ("timeseries", "table", "stat") and panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24 and not cells & taken, panel["title"]
        taken |= cells
        assert [target["refId"] for target in panel["targets"]] == list("ABCD"[: len(panel["targets"])])
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": [{"value": None}]})["steps"]
        assert steps[0]["value"] is None


def test_the_watch_section_and_the_alerts_have_the_same_thresholds() -> None:
    by_name = {rule["alert"]: rule["expr"] for rule in ALERTS}
    assert by_name["KvPoolNearlyFull"].endswith(f"> {watch.POOL_SHARE:g}")
    assert by_name["DeviceHeadroomSmall"].endswith(f"< {watch.HEADROOM_BYTES >> 20}")
    source = Path(watch.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r'"([A-Z][a-z]+[A-Z]\w+)"', source))
    assert named and named <= by_name.keys()


def test_the_page_names_every_alert() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert {rule["alert"] for rule in ALERTS} == set(re.findall(r"`([A-Z][a-z]\w+)`", page))


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_a_parser_of_promql_takes_every_expression(title: str, expression: str) -> None:
    promql = pytest.importorskip(
        "promql_parser", reason="`pip install promql-parser` reads expressions as Prometheus does"
    )
    filled = expression.replace("$__rate_interval", "5m").replace("$instance", ".*")
    assert promql.parse(filled), title


def test_the_dashboard_is_one_by_the_schema_of_grafana() -> None:
    """Read into the types that Grafana generates from its schema and written again, nothing is lost or unknown."""
    models = pytest.importorskip(
        "grafana_foundation_sdk.models.dashboard", reason="`pip install grafana-foundation-sdk`"
    )
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    again = json.loads(encoder.JSONEncoder().encode(models.Dashboard.from_json(BOARD)))
    assert list(lost(BOARD, again, "")) in (
        [],
        ["/templating/list[1]/definition"],
    )  # Grafana shows it; the schema has no such field


def lost(before: Any, after: Any, path: str) -> Iterator[str]:
    """Paths of what one object has and the other lacks or tells otherwise."""
    if isinstance(before, dict):
        for key, value in before.items():
            if not isinstance(after, dict) or key not in after:
                yield f"{path}/{key}"
            else:
                yield from lost(value, after[key], f"{path}/{key}")
    elif isinstance(before, list):
        for place, value in enumerate(before):
            if not isinstance(after, list) or place >= len(after):
                yield f"{path}[{place}]"
            else:
                yield from lost(value, after[place], f"{path}[{place}]")
    elif before != after:
        yield path
