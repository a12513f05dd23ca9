"""The JSON form against the published schema, and the schema against itself."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from oomdoc.model import schema
from oomdoc.report import REPORTS
from oomdoc.report.json import dump
from report_samples import SAMPLES, hostile, kv_demand

VALIDATOR = jsonschema.Draft202012Validator(schema.load())


def plain(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(REPORTS["json"](SAMPLES[name]()))
    return value


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.load())
    assert schema.text().endswith("}\n")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_valid(name: str) -> None:
    value = plain(name)
    if name == "hostile":  # its times are no times
        value["traffic"] = {}
    assert [f"{list(error.path)}: {error.message}" for error in VALIDATOR.iter_errors(value)] == []


def _set(path: str, new: Any) -> Any:
    def change(value: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        place: Any = value
        for step in parents:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            place[int(last)] = new
        else:
            place[last] = new

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("schema_version", "2"),
        _set("verdict", "sick"),
        _set("surprise", 1),
        _set("diagnoses", []),
        _set("diagnoses/0/probability", 1.2),
        _set("diagnoses/0/cause", "Not An Id"),
        _set("diagnoses/0/evidence/0/weight", "heavy"),
        _set("diagnoses/0/evidence/0/values/preemptions", "many"),
        _set("diagnoses/0/actions/0/extra", 1),
        _set("ledger/0/parts/weights_bytes", 1.5),
        _set("ledger/0/parts/wights_bytes", 1),
        _set("incidents/0/started", "yesterday"),
        _set("engines/0/flags/max_model_len/origin", "guessed"),
        _set("bundle/sha256", "abc"),
        _set("coverage/unread/0/why", None),
        _set("traffic/buckets/input/0/name", "XXL"),
        lambda value: value.pop("warnings"),
        lambda value: value["diagnoses"][0].pop("unknown"),
    ],
)
def test_a_mutated_report_is_invalid(change: Any) -> None:
    value = copy.deepcopy(plain("kv-demand"))
    assert VALIDATOR.is_valid(value)
    change(value)
    assert not VALIDATOR.is_valid(value)


def _properties(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for name, inner in node.get("properties", {}).items():
            if isinstance(inner, dict) and "if" not in path:
                yield f"{path}/{name}", inner
        for key, inner in node.items():
            yield from _properties(inner, f"{path}/{key}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from _properties(inner, f"{path}/{index}")


def test_every_property_is_described_and_says_its_unit() -> None:
    root = schema.load()
    found = [(path, inner) for path, inner in _properties(root) if "/if/" not in path and "/then/" not in path]
    assert len(found) > 100
    for path, inner in found:
        target = root["$defs"][inner["$ref"].rsplit("/", 1)[-1]] if "$ref" in inner else inner
        said = (inner.get("description", "") + " " + target.get("description", "")).lower()
        assert said.strip(), path
        name = path.rsplit("/", 1)[-1]
        if name.endswith("_bytes") or name == "bytes":
            assert "bytes" in said, path


def test_order_newline_and_compact_form() -> None:
    text = REPORTS["json"](kv_demand())
    assert text.endswith("}\n")
    assert list(json.loads(text))[:4] == ["schema_version", "oomdoc_version", "rules_version", "bundle"]
    compact = REPORTS["json"](kv_demand(), compact=True)
    assert compact.count("\n") == 1
    assert json.loads(compact) == json.loads(text)


def test_half_surrogates_and_controls_are_escaped_so_that_any_utf8_stream_takes_them() -> None:
    text = REPORTS["json"](hostile())
    assert "\\udcff" in text
    assert "\x1b" not in text
    text.encode("utf-8")
    assert json.loads(text)["warnings"] == list(hostile().warnings)


def test_no_number_is_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dump({"x": float("nan")})


def test_a_series_is_one_line_and_the_same_numbers() -> None:
    value = {
        "a": [1, None, -2.5, 1e-07],
        "b": ["[\n 1,\n 2\n]", "x"],
        "c": [[1, 2], [3, 4]],
        "d": [],
        "e": [{"f": [0]}],
    }
    text = dump(value)
    assert json.loads(text) == value
    assert '"a": [1, null, -2.5, 1e-07]' in text
    assert text.count("\n") < dump({"a": [str(n) for n in range(4)], **{k: value[k] for k in "bcde"}}).count("\n")
