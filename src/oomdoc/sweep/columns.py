"""The tables of a sweep's dataset: columns, types, units, meaning. The contract with everybody who reads the Parquet files.

Every row begins with `night` and `bundle`. NULL is unknown. A type is that of Parquet: `string`, `int64`, `double`, `bool`, `date`, `binary`. A change of a column's meaning raises `DATASET_VERSION`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oomdoc.evidence.tables import Column, Table

DATASET_VERSION = "1"

_KEY = (
    Column("night", "date", "the night that wrote this; the folder `day=` says the same"),
    Column("bundle", "string", "the bundle's address: absolute path or URI, with `#pod=` or `#host=` where it is part of a log tree"),
)  # fmt: skip


def _table(name: str, says: str, *columns: tuple[str, str, str]) -> Table:
    return Table(name, says, (*_KEY, *(Column(*column) for column in columns)))


_ALL = (
    _table(
        "bundle",
        "one row per bundle and night in which it was read or judged again: the ledger of the sweep, and the diagnosis in short",
        ("name", "string", "last part of the address, as reports call the bundle"),
        ("host", "string", "host, as the evidence names it, else as far as the address names it"),
        ("pod", "string", "pod, as far as the address names it"),
        ("sha256", "string", "of the content: as `bundle.sha256` of the report; NULL where nothing could be read"),
        ("bytes", "int64", "as stored, packed"),
        ("files", "int64", "files inside, unpacked"),
        ("signature", "string", "hash over names, sizes and times of its files: unchanged, nothing is read"),
        ("etag", "string", "the object store's own hash, where it gives one"),
        ("settled", "bool", "false: changed so shortly before it was read that size and time do not prove the next time"),
        ("rules_version", "string", "rules that judged"),
        ("oomdoc_version", "string", "program that read"),
        ("status", "string", "read, judged (new rules, kept evidence), copy, unreadable, timeout, memory, crashed, changing, gone, io, error"),
        ("why", "string", "what went wrong, one sentence; NULL where nothing did"),
        ("attempts", "int64", "how often in a row this content could not be read; 0 where it was"),
        ("copy_of", "string", "the bundle with the same content that has the findings; NULL for an original"),
        ("verdict", "string", "diagnosed, healthy, not-memory, undecided or no-server"),
        ("cause", "string", "the first cause of the gravest incident"),
        ("reason", "string", "its sub-reason"),
        ("probability", "double", "of that cause, 0 to 1"),
        ("model", "string", "model of the engine that failed, else of the last one"),
        ("version", "string", "its vLLM version"),
        ("flags", "string", "its flags that bear on memory, JSON in order of name"),
        ("ledger_shape", "string", "parts of the device's memory, largest first, from 5 % on: `kv_pool>weights>free`"),
        ("incidents", "int64", "incidents in the report"),
        ("new_failures", "int64", "of them with a memory cause and first seen this night"),
        ("problems", "int64", "places that ought to have been understood and were not"),
        ("unread", "int64", "members that were not read"),
    ),
    _table(
        "finding",
        "one row per cause of the gravest incident with a probability of 5 % or more, the first one always",
        ("rank", "int64", "1 is the most probable"),
        ("cause", "string", "id of the cause"),
        ("category", "string", "its row of the root-cause matrix"),
        ("reason", "string", "sub-reason"),
        ("probability", "double", "0 to 1"),
        ("title", "string", "the cause in one sentence"),
        ("evidence", "string", "what speaks for it: JSON list of {id, says, weight (log-odds), refs}"),
        ("against", "string", "what speaks against it, alike"),
        ("actions", "string", "what to do: JSON list of {id, do, changes {flag: value}}"),
    ),
    _table(
        "incident",
        "one row per failure or episode, and one of kind `verdict` where a bundle has none and is not healthy either",
        ("incident", "string", "id inside the report: i1, i2"),
        ("incident_key", "string", "the same failure seen in a later night has the same key"),
        ("first_night", "date", "the night that saw it first: `first_night = night` counts every incident once"),
        ("fingerprint", "string", "hash of cause, reason, model, version, flags and ledger shape"),
        ("kind", "string", "what was seen first"),
        ("phase", "string", "what the engine was doing"),
        ("started", "string", "UTC, ISO 8601; without a year where the bundle has none"),
        ("engine", "string", "engine start: `path#number`"),
        ("ref", "string", "path:line of the first failure"),
        ("text", "string", "that line"),
        ("cause", "string", "first cause; NULL where the report ranks none for it"),
        ("reason", "string", "sub-reason"),
        ("probability", "double", "0 to 1"),
        ("action", "string", "the first thing to do"),
        ("title", "string", "the verdict in words, as the report's first line has it; of the gravest incident only"),
        ("cost", "string", "what users lost, as the report says it; alike"),
        ("host", "string", "as in `bundle`"),
        ("model", "string", "as in `bundle`, of this incident's engine"),
        ("version", "string", "alike"),
        ("flags", "string", "alike"),
    ),
    _table(
        "ledger",
        "one row per engine start, rank and device of the gravest incident: where the memory is",
        ("engine", "string", "engine start"),
        ("rank", "int64", "worker rank"),
        ("device", "string", "device"),
        ("moment", "string", "the last known moment: failure, rest, plan, profiled, loaded"),
        ("total_bytes", "int64", "of the device"),
        *((f"{part}_bytes", "int64", f"{part.replace('_', ' ')}") for part in (
            "other_processes", "non_torch", "weights", "feature", "kv_pool", "cuda_graph", "activation", "allocator_slack", "free", "unexplained")),
        ("kv_bytes_per_token", "double", "bytes of KV per token and rank"),
        ("kv_pool_tokens", "int64", "tokens that the pool holds"),
    ),
    _table(
        "engine",
        "one row per engine start",
        ("engine", "string", "engine start: `path#number`"),
        ("ref", "string", "path:line where it begins"),
        ("started", "string", "UTC, ISO 8601"),
        ("version", "string", "vLLM version"),
        ("model", "string", "model"),
        ("flags", "string", "all flags known: JSON {flag: value}"),
        ("last_milestone", "string", "how far it came"),
        ("failed", "bool", "whether it failed"),
    ),
    _table(
        "traffic",
        "one row per bundle with requests",
        ("requests", "int64", "requests with token counts"),
        ("profile", "string", "JSON: `traffic` of the report (docs/json.md)"),
    ),
    _table(
        "coverage",
        "one row per source that was read, and per thing that was not",
        ("source", "string", "path inside the bundle"),
        ("kind", "string", "what it was read as; NULL where it was not read"),
        ("bytes", "int64", "unpacked"),
        ("lines", "int64", "lines"),
        ("rows", "int64", "rows of evidence"),
        ("problems", "int64", "places that were not understood"),
        ("why", "string", "why it was not read, or not to its end; NULL where it was"),
    ),
    _table(
        "evidence",
        "one row per bundle whose evidence tables are kept, so that new rules judge it without reading it",
        ("sha256", "string", "of the content it was read from"),
        ("oomdoc_version", "string", "program that read: another one reads again"),
        ("tables", "binary", "the evidence tables as JSON, packed with zstd"),
    ),
    _table(
        "grown",
        "one row per file of a log tree that may grow and be read on from where it stood",
        ("sha256", "string", "of the bundle's content when the file was read"),
        ("oomdoc_version", "string", "program that read: another one reads again"),
        ("source", "string", "path inside the bundle"),
        ("bytes", "int64", "how many of its first bytes have to be as they were"),
        ("source_sha256", "string", "of these bytes"),
        ("state", "binary", "what was read of them, packed; for oomdoc alone"),
    ),
    _table(
        "seen",
        "one row per bundle and night in which its times had changed and its content had not: nothing new to say",
        ("sha256", "string", "of the content, found equal by reading it through"),
        ("signature", "string", "that counts from now on"),
        ("settled", "bool", "as in `bundle`"),
    ),
)  # fmt: skip

TABLES: Mapping[str, Table] = {table.name: table for table in _ALL}
"""The dataset's tables by name."""

READ = ("read", "judged", "copy")
"""Values of `bundle.status` that say: this is known. All others are errors that a report names."""


def arrow_schema(table: Table) -> Any:
    """The pyarrow schema of a table, meanings as metadata of the fields."""
    import pyarrow as pa

    types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "date": pa.date32(), "binary": pa.binary()}  # fmt: skip
    fields = [pa.field(column.name, types[column.type], metadata={"says": column.says}) for column in table.columns]
    return pa.schema(fields, metadata={"oomdoc_dataset": DATASET_VERSION, "says": table.says})


def arrow_table(name: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows as a pyarrow table; absent columns are NULL, nights are ISO dates."""
    import datetime as dt

    import pyarrow as pa

    table = TABLES[name]
    held = list(rows)
    schema = arrow_schema(table)
    arrays = []
    for column, field in zip(table.columns, schema, strict=True):
        values = [row.get(column.name) for row in held]
        if column.type == "date":
            values = [None if value is None else dt.date.fromisoformat(value) for value in values]
        arrays.append(pa.array(values, type=field.type))
    return pa.Table.from_arrays(arrays, schema=schema)
