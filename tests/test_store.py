"""The store: loading, years, and a locked door for questions."""

import datetime as dt
from pathlib import Path

import duckdb
import numpy as np
import pytest

from oomdoc.errors import UsageError
from oomdoc.evidence import incoming
from oomdoc.evidence.derived import Derived, made_of
from oomdoc.evidence.store import Store
from oomdoc.evidence.tables import TABLES, Batch


@pytest.fixture
def loaded(tmp_path: Path):
    with Store(tmp_path) as store:
        yield store


def test_small_and_large_batches_give_the_same_rows(loaded: Store) -> None:
    loaded.load("a.log", Batch("oom", {"line": [1, 2], "allocator": ["torch", None], "requested_bytes": [None, 5]}))
    many = list(range(1, 6001))
    loaded.load(
        "b.log",
        Batch(
            "oom",
            {"line": many, "allocator": ["torch"] * 6000, "requested_bytes": [None if n % 2 else n for n in many]},
        ),
    )
    loaded.flush()
    assert loaded.rows_of(
        "SELECT source, count(*) AS n, count(requested_bytes) AS known, count(allocator) AS named FROM oom GROUP BY source ORDER BY source"
    ) == [
        {"source": "a.log", "n": 2, "known": 1, "named": 1},
        {"source": "b.log", "n": 6000, "known": 3000, "named": 6000},
    ]


@pytest.mark.parametrize("few", [1, 10_000])
def test_rows_are_the_same_as_lists_and_as_arrays(loaded: Store, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_FIRST_NUMPY_ROWS", few)
    numbers = list(range(700))
    columns = {"line": numbers, "engine": [n % 3 for n in numbers], "kv_used": [None if n % 5 else n / 700 for n in numbers],
               "running": [n % 7 or None for n in numbers], "t": [n * 10.0 + 2e9 for n in numbers]}  # fmt: skip
    loaded.load("a.log", Batch("engine_stat", columns))
    loaded.flush()
    rows = loaded.rows_of("SELECT * FROM engine_stat ORDER BY line")
    assert [{name: row[name] for name in columns} for row in rows] == [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    assert None in loaded.values_of("engine_stat", "kv_used")


def test_numpy_columns_keep_their_nulls(loaded: Store) -> None:
    used = np.ma.masked_array(np.array([5, 0, 7], dtype=np.int64), mask=[False, True, False])
    loaded.load("gpu.csv", Batch("gpu_sample", {"line": np.array([1, 2, 3], dtype=np.uint32), "used_bytes": used}))
    loaded.flush()
    assert loaded.rows_of("SELECT used_bytes AS b, gpu FROM gpu_sample ORDER BY line") == [
        {"b": 5, "gpu": None},
        {"b": None, "gpu": None},
        {"b": 7, "gpu": None},
    ]


def nominal(year: int, month: int, day: int) -> float:
    return dt.datetime(year, month, day, tzinfo=dt.UTC).timestamp()


def test_yearless_stamps_take_the_year_of_the_bundle_and_step_over_new_year(loaded: Store) -> None:
    loaded.add(
        "milestone",
        [
            {"source": "v.log", "line": 1, "t": nominal(2000, 12, 31), "name": "x"},
            {"source": "v.log", "line": 2, "t": nominal(2001, 1, 1), "name": "x"},
        ],
    )
    loaded.add("request", [{"source": "r.log", "line": 1, "t": nominal(2026, 1, 1), "input_tokens": 1}])
    loaded.finish()
    assert [row["t"] for row in loaded.rows_of("SELECT t FROM milestone ORDER BY line")] == [
        nominal(2025, 12, 31),
        nominal(2026, 1, 1),
    ]


def test_without_any_year_the_stamps_stay_nominal(loaded: Store) -> None:
    loaded.add("milestone", [{"source": "v.log", "line": 1, "t": nominal(2000, 5, 1), "name": "x"}])
    loaded.finish()
    assert loaded.rows_of("SELECT t FROM milestone") == [{"t": nominal(2000, 5, 1)}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "COPY oom TO 'x.csv'",
        "INSTALL httpfs",
        "SET threads = 4",
        "DROP TABLE oom",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "INSERT INTO oom (line) VALUES (1)",
    ],
)
def test_a_question_reads_tables_and_nothing_else(loaded: Store, sql: str, tmp_path: Path) -> None:
    loaded.finish()
    with pytest.raises(duckdb.Error):
        loaded.ask(sql)
    with pytest.raises(UsageError):
        loaded.query(sql)


def test_a_runaway_query_is_interrupted(loaded: Store) -> None:
    loaded.finish()
    with loaded.database.bounded(0.3), pytest.raises(duckdb.InterruptException):
        loaded.database.con.execute(
            "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
        ).fetchall()


def test_a_kept_database_opens_with_plain_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "kept.duckdb"
    with Store(tmp_path, path) as store:
        store.add("oom", [{"source": "v.log", "line": 3, "allocator": "torch"}])
        store.finish()
        store.focus(None)
    with duckdb.connect(str(path), read_only=True) as plain:
        assert plain.execute("SELECT line FROM oom").fetchall() == [(3,)]
        assert plain.execute("SELECT ooms FROM failure").fetchall() == [(1,)]


def test_every_table_begins_with_its_place_and_says_what_it_means() -> None:
    for table in TABLES.values():
        assert table.says
        assert table.column_names[0] == "source"
        assert table.name == "source" or table.column_names[1] == "line"
        assert all(column.says for column in table.columns)
        assert len(set(table.column_names)) == len(table.column_names)


def test_a_database_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "there.duckdb"
    path.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists"):
        Store(tmp_path, path)
    assert path.read_bytes() == b"mine"


def many_samples(store: Store) -> None:
    """Two large sources, a small one, and one that comes back; the stamps of the last have no year."""
    for source, first, count in (("a.csv", 1, 25), ("small.csv", 1, 3), ("b'.csv", 1, 40), ("a.csv", 26, 5)):
        lines = np.arange(first, first + count, dtype=np.uint32)
        times = lines.astype(float) + nominal(2000 if source == "b'.csv" else 2026, 5, 1)
        used = np.ma.masked_array(lines.astype(np.int64), mask=lines % 7 == 0)
        store.load(source, Batch("gpu_sample", {"line": lines, "t": times, "used_bytes": used}))


@pytest.mark.parametrize("between", [False, True])
def test_large_sources_have_tables_of_their_own_and_nobody_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: bool
) -> None:
    seen = []
    for group, place in (
        (1_000, {"scratch": tmp_path}),
        (10, {"scratch": tmp_path}),
        (10, {"db": tmp_path / "x.duckdb"}),
    ):
        monkeypatch.setattr("oomdoc.evidence.incoming._ROW_GROUP", group)
        with Store(**place) as store:
            many_samples(store)
            if between:
                store.keep_between(nominal(2026, 5, 1) + 10, None)
            store.finish()
            seen.append(store.query("SELECT * FROM gpu_sample ORDER BY source, line"))
            parts = [
                name for (name,) in store.query("SELECT table_name FROM duckdb_tables()")[1] if "gpu_sample_" in name
            ]
            assert len(parts) == (0 if group > 100 else 3)
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][1]) == (52 if between else 73)
    with duckdb.connect(tmp_path / "x.duckdb", read_only=True) as db:
        assert db.execute("SELECT * FROM gpu_sample ORDER BY source, line").fetchall() == seen[0][1]


def test_a_view_without_room_is_unknown_and_the_others_answer(loaded: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a view holds side by side cannot be spilled; the run goes on, and the report can name the view."""
    loaded.finish()
    made = loaded.database.statement

    def statement(sql: str) -> object:
        if sql == made_of("heap"):
            raise duckdb.OutOfMemoryException("failed to pin block")
        return made(sql)

    monkeypatch.setattr(loaded.database, "statement", statement)
    monkeypatch.setattr(Derived, "plainly", True)
    loaded.derived.make("heap")
    assert loaded.unanswered == ["heap"]
    assert len(loaded.rows_of("FROM heap")) <= 1 and loaded.rows_of("FROM engine_start") is not None


def test_a_log_of_a_million_statistics_lines_is_bound_within_the_memory(loaded: Store) -> None:
    """The last but one line that shows work is told by the two greatest, not by a list of all, which did not fit beside the rest."""
    count = 1_000_000
    lines = np.arange(2, count + 2, dtype=np.uint32)
    columns = {"line": lines, "t": 1.8e9 + lines, "generation_tokens_per_s": np.full(count, 96.0)}
    loaded.add("milestone", [{"source": "v.log", "line": 1, "t": 1.8e9, "name": "serving"}])
    loaded.load("v.log", Batch("engine_stat", columns))
    loaded.flush()
    loaded.database.con.execute("SET memory_limit = '90MB'")  # what other tables leave
    loaded.finish()
    (life,) = loaded.scene.server.lives
    assert life.work_line == count


@pytest.mark.parametrize("count", [0, 3, 3_999, 4_000, 9_500])
def test_columns_as_arrays_are_whole_and_in_order(count: int, tmp_path: Path) -> None:
    """Few rows come as such, more as arrays behind them: none twice, none missing, NULL as NaN."""
    rows = [{"source": "r.csv", "line": at + 1, "t": None if at % 7 == 5 else float(at)} for at in range(count)]
    with Store(tmp_path) as store:
        store.add("request", rows)
        store.finish()
        told = store.columns_of("SELECT t, line FROM request ORDER BY line")
    assert told["line"].tolist() == [at + 1.0 for at in range(count)]
    assert np.array_equal(told["t"], [np.nan if at % 7 == 5 else float(at) for at in range(count)], equal_nan=True)


@pytest.mark.parametrize("of_another", [False, True])
@pytest.mark.parametrize("guessed", [False, True])
def test_an_incident_sees_neither_what_is_wrapped_nor_another_life(
    guessed: bool, of_another: bool, tmp_path: Path
) -> None:
    """Where neither is there nobody asks what is hidden; where either is, it is."""
    with Store(tmp_path) as store:
        steps = [(2, "server-version"), (4, "loaded"), (6, "serving"), *([(102, "server-version"), (104, "loaded"), (106, "serving")] if of_another else [])]  # fmt: skip
        store.add("milestone", [{"source": "a", "line": line, "name": name} for line, name in steps])
        store.add(
            "log_error", [{"source": "a", "line": 10, "kind": "other", "exception": "CalledProcessError", "text": "x"}]
        )
        store.add("frame", [{"source": "a", "line": 14, "function": "warmup"}])
        text = "Not enough memory to handle 2048 prefill tokens" if guessed else "CUDA error: out of memory"
        store.add("oom", [{"source": "a", "line": 20, "text": text}])
        if of_another:
            store.add(
                "oom", [{"source": "a", "line": 120, "text": "CUDA error: out of memory", "requested_bytes": 1 << 30}]
            )
        store.finish()
        incident = next(row for row in store.rows_of("SELECT incident, line FROM incident") if row["line"] < 100)
        store.focus(incident["incident"])
        assert [row["line"] for row in store.rows_of("FROM seen.oom")] == ([] if guessed else [20])
        store.focus(None)
        every = [20, 120] if of_another else [20]
        assert [row["line"] for row in store.rows_of("FROM seen.oom ORDER BY line")] == (
            every[1:] if guessed else every
        )


def test_only_queries_from_outside_ask_for_a_transaction_that_reads(loaded: Store) -> None:
    own, broken, other = "SELECT true AS holds", "SELECT error('no') AS holds", "SELECT false AS holds"
    loaded.finish()
    loaded.focus(None)
    loaded.trust([own, broken])
    assert loaded.ask(own) == {"holds": True}
    assert loaded.database._reads_only is False
    assert loaded.ask(other) == {"holds": False}
    assert loaded.database._reads_only is True
    with pytest.raises(duckdb.Error):  # ends the transaction that is open
        loaded.ask(broken)
    assert [loaded.ask(each) for each in (own, other)] == [{"holds": True}, {"holds": False}]
    with pytest.raises(duckdb.Error):
        loaded.database.con.execute("DELETE FROM main.oom")


class _Late:
    """A connection whose next ROLLBACK an interrupt hits that was meant for the question before."""

    def __init__(self, con: duckdb.DuckDBPyConnection, done: bool) -> None:
        self._con, self._done, self.hit = con, done, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._con, name)

    def execute(self, sql: object, *rest: object) -> object:
        if sql == "ROLLBACK" and not self.hit:
            self.hit = True
            if self._done:
                self._con.execute("ROLLBACK")
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
        return self._con.execute(sql, *rest)


@pytest.mark.parametrize("done", [False, True], ids=["before it was rolled back", "behind it"])
def test_a_late_interrupt_leaves_no_transaction_open(loaded: Store, done: bool) -> None:
    late = _Late(loaded.database.con, done)
    loaded.database.con = late
    with pytest.raises(duckdb.Error):
        loaded.ask("SELECT error('x')")
    assert late.hit
    assert loaded.ask("SELECT 7 AS n") == {"n": 7}
