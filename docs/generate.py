"""Writes the pages that come from the code: `make docs`. With `--check` it writes nothing and exits 1 if a page is old.

Whole pages: docs/tables.md, docs/rules.md, docs/cli.md, docs/engine-atlas.md, and docs/causes with a page per rule. Blocks between `<!-- generated: NAME -->` and `<!-- end -->` in
pages that people write: the run in README.md, the diagnosis redone by hand in docs/method.md, the fields in docs/json.md.
Everything is made from the program itself and from one shipped bundle, so that no page can say what the code does not do.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from needs import answerless, as_bare, columns_of, names_of, parts, rowless  # it stands beside this file

ROOT = Path(__file__).resolve().parents[1]
DEMO = "sample_logs/kv-demand-long-chats"
WIDTH = 80
RUN_ENDS_BEFORE = (
    "What else would help",
    "What to do until then",
    "What would help after",
    "What would not help",
)  # README shows the first screen; `make demo` shows the rest
CATEGORIES = {
    "weights": "Weights",
    "kv-cache": "KV cache",
    "parameters": "Parameters",
    "parallelism": "Parallelism",
    "scheduling": "Scheduling and sharing",
    "allocator": "Allocator",
    "host": "Host memory",
    "none": "No memory failure",
}
ONE_SIDED = r"SELECT CASE WHEN (?:(?!\bTHEN\b).)* THEN true END AS holds\b"  # TRUE or NULL, never FALSE
MADE = "<!-- Made by `make docs` from the code. Do not edit. -->\n\n"


def pages() -> dict[Path, str]:
    """Every page that is made or holds a made block, with the text it ought to have."""
    whole = {"docs/tables.md": tables, "docs/rules.md": rules, "docs/cli.md": cli, "docs/engine-atlas.md": atlas}
    blocks: dict[str, dict[str, Callable[[], str]]] = {
        "README.md": {"run": run},
        "docs/method.md": {"by-hand": by_hand, "unseen": unseen},
        "docs/json.md": {"fields": fields},
        "docs/sweep.md": {"dataset": dataset},
    }
    made = {ROOT / name: MADE + render() for name, render in whole.items()}
    made[ROOT / "docs" / "causes" / "README.md"] = MADE + causes()
    made |= {ROOT / "docs" / "causes" / f"{rule.id}.md": MADE + own_page(rule) for rule in all_rules()}
    for name, renders in blocks.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for block, render in renders.items():
            text = with_block(text, block, render())
        made[ROOT / name] = text
    made[ROOT / "src" / "oomdoc" / "views" / "blank.json"] = blank_views()
    made[ROOT / "src" / "oomdoc" / "views" / "parts.json"] = parts_of_views()
    made[ROOT / "src" / "oomdoc" / "views" / "questions.json"] = questions()
    made[ROOT / "src" / "oomdoc" / "physics" / "weights.json"] = loaded_weights()
    return made


def blank_views() -> str:
    """What each view reads and needs, its columns, and its rows in a bundle without evidence (NULLs left out): one view a line."""
    from oomdoc.evidence.store import Store
    from oomdoc.views import VIEWS
    from oomdoc.views.blank import mark

    columns = relations()
    lines, rowed = [], set()
    with Store() as store:
        store.derived.plainly = True  # what this file said before has no say
        store.finish()
        store.focus(None)
        for name, view in VIEWS.items():
            described = store.rows_of(f"DESCRIBE main.{name}")
            rows = store.rows_of(f"SELECT * FROM main.{name}")
            known = {
                "mark": mark(view.sql),
                "reads": read_by(view.sql),
                "rowless": rowless(view.sql, columns, told_columns()),
                "bare": as_bare(view.sql, columns, told_columns(), rowed),
                "columns": {row["column_name"]: row["column_type"] for row in described},
                "rows": [{key: value for key, value in row.items() if value is not None} for row in rows],
            }
            rowed |= {name} if rows else set()
            lines.append(f"  {json.dumps(name)}: {json.dumps(known, default=float)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def parts_of_views() -> str:
    """What each part of a view's WITH clause gives in a bundle without evidence, and when it gives that: one view a line.

    Constants for it are left out where they are no shorter than its text.
    """
    from oomdoc.evidence.store import Store
    from oomdoc.views import VIEWS
    from oomdoc.views.blank import mark

    lines, rowed = [], set[str]()
    with Store() as store:
        store.derived.plainly = True
        store.finish()
        store.focus(None)
        for name, view in VIEWS.items():
            found: list[list[Any]] = []
            for part, at, begin, end, claim in parts(view.sql, relations(), told_columns(), rowed):
                text = constants(store, f"{view.sql[: end + 1]} SELECT * FROM {part}") if claim is not None else None
                told = text is not None and len(text) < end - begin
                found.append([part, at, begin, end, claim if told else None, text if told else None])
            rowed |= {name} if store.rows_of(f"SELECT * FROM main.{name}") else set()
            if any(text is not None for *_, text in found):
                lines.append(f"  {json.dumps(name)}: {json.dumps({'mark': mark(view.sql), 'parts': found})}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def constants(store: Any, sql: str) -> str | None:
    """A query that gives what another gives, without reading anything; None where that has several rows."""
    from oomdoc.evidence.database import literal

    cursor = store.database.con.execute(sql)
    columns = [(column[0], str(column[1])) for column in cursor.description]
    rows = cursor.fetchmany(2)
    if len(rows) > 1:
        return None
    told = rows[0] if rows else [None] * len(columns)
    values = ", ".join(
        f'{literal(value)}::{kind} AS "{column}"' for value, (column, kind) in zip(told, columns, strict=True)
    )
    return f"SELECT {values}{'' if rows else ' WHERE false'}"


def questions() -> str:
    """What each question of the shipped rules reads, which columns of views it names, and when it tells nothing, by its mark."""
    from oomdoc.judge.rules import load_rules, shipped_questions
    from oomdoc.views import VIEWS
    from oomdoc.views.blank import mark

    columns = relations()
    found = dict.fromkeys(shipped_questions(load_rules(tests=False)[0]))
    lines = {}
    for sql in found:
        told = {
            "reads": (read := read_by(sql)),
            "columns": columns_of(sql, {name: columns[name] for name in read if name in VIEWS}),
            "nothing": answerless(sql, columns, told_columns()),
        }
        lines[mark(sql)] = f'  "{mark(sql)}": {json.dumps(told)}'
    assert len(lines) == len(found), "two questions with one mark"
    return "{\n" + ",\n".join(line for _, line in sorted(lines.items())) + "\n}\n"


def loaded_weights() -> str:
    """The least and the most bytes that the published checkpoint of each model loads on one device; those unknown are left out."""
    from oomdoc.physics.catalogue import models
    from oomdoc.physics.weights import weights_bytes

    found = {model.name: weights_bytes(model) for model in models()}
    assert len(found) == len(models()), "two models with one name"
    lines = [f"  {json.dumps(name)}: {json.dumps([size.lo, size.hi])}" for name, size in found.items() if size]
    return "{\n" + ",\n".join(lines) + "\n}\n"


@functools.cache
def relations() -> Mapping[str, Sequence[str]]:
    """Every relation that differs from bundle to bundle, in the order in which they are made, with its columns."""
    from oomdoc.evidence.store import OWN_TABLES
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    tables = {name: tuple(table.column_names) for name, table in TABLES.items()}
    return tables | dict.fromkeys(OWN_TABLES, ()) | {name: tuple(view.columns) for name, view in VIEWS.items()}


@functools.cache
def told_columns() -> Mapping[str, Sequence[str]]:
    """Those of which it will be known what stands in them: all columns of views, and of tables all that a row may lack."""
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    everywhere = {"source", "line"}
    tables = {name: [each for each in table.column_names if each not in everywhere] for name, table in TABLES.items()}
    return tables | {name: tuple(view.columns) for name, view in VIEWS.items()}


def read_by(sql: str) -> list[str]:
    """Those of these relations that a query reads."""
    return sorted({table.rpartition(".")[2] for table in names_of(sql)} & relations().keys())


def with_block(text: str, name: str, body: str) -> str:
    """The text with the block of that name replaced; KeyError where it has none."""
    found = re.search(rf"(<!-- generated: {re.escape(name)} -->\n).*?(<!-- end -->)", text, re.S)
    if not found:
        raise KeyError(f"no block <!-- generated: {name} -->")
    return text[: found.start()] + found[1] + body.rstrip("\n") + "\n" + found[2] + text[found.end() :]


# ---- the shipped bundle


@functools.cache
def demo() -> Any:
    """The report of the shipped bundle that README and method.md show."""
    from oomdoc import diagnose

    with diagnose.analyze(ROOT / DEMO) as analysis:
        return analysis.report


def run() -> str:
    """README's run: what `oomdoc analyze` prints at 80 columns, down to the fix."""
    from oomdoc.report import REPORTS

    lines = REPORTS["terminal"](demo(), width=WIDTH, color=False).splitlines()
    shown = next((place for place, line in enumerate(lines) if line.startswith(RUN_ENDS_BEFORE)), len(lines))
    headings = [line.split(" (")[0] for place, line in enumerate(lines) if place >= shown and _is_heading(lines, place)]
    rest = f"\nBelow that it prints: {'; '.join(headings)}.\n" if headings else ""
    return fenced("console", f"$ oomdoc analyze {DEMO}\n" + "\n".join(lines[:shown]).rstrip()) + rest


def _is_heading(lines: Sequence[str], place: int) -> bool:
    return place > 0 and not lines[place - 1] and lines[place][:1].isupper()


def by_hand() -> str:
    """The first cause of the shipped bundle: every step from its prior to its probability."""
    from oomdoc.judge.weigh import weight_of
    from oomdoc.model import FINEST

    report = demo()
    first = report.diagnoses[0]
    odds = math.log(first.prior / (1 - first.prior))
    body = [
        [
            "start",
            f"{first.prior:.0%} before any sign",
            f"ln({first.prior:g} / {1 - first.prior:g})",
            f"{odds:+.4f}",
            "",
        ],
    ]
    known = {item.id: item for item in _rule(first.cause).evidence}
    for item in (*first.evidence, *first.against):
        rule = known.get(item.id)
        if rule is None:  # the words of the bundle: no sign of the rule's
            odds += item.weight
            body.append([f"`{item.id}`", text(item.says), "[words](#words)", f"{item.weight:+.4f}", ""])
            continue
        held = (item.weight > 0) == (rule.p_cause > rule.p_other)
        ratio = f"{rule.p_cause:g} / {rule.p_other:g}" if held else f"{1 - rule.p_cause:g} / {1 - rule.p_other:g}"
        odds += item.weight
        counted = weight_of(rule, held)
        how = "another of its group counts" if not item.weight else f"ln({ratio})"
        if item.weight and abs(item.weight - counted) > 5e-4:
            how = f"fitted; counted: ln({ratio}) = {counted:+.2f}"
        body.append([f"`{item.id}`", text(item.says), how, f"{item.weight:+.4f}", ", ".join(item.refs[:1])])
    p = 1 / (1 + math.exp(-odds))
    table_text = table(["step", "what the bundle says", "arithmetic", "log-odds", "where"], body)
    silent = [f"`{name}`" for name in first.unknown]
    grouped = sorted({item.group for item in known.values() if item.group})
    notes = [
        f"The sum is {odds:+.4f}; 1 / (1 + e^-({odds:.4f})) = {p:.6f}, and the report shows {first.probability:g}"
        + (
            " (the ceiling, see below)."
            if first.probability == FINEST
            else " (its share among the rivals, see below)."
            if first.probability != first.own_probability
            else "."
        )
    ]
    if grouped:
        notes.append(f"Of the group {' and '.join(f'`{name}`' for name in grouped)} only the strongest line counts.")
    if silent:
        notes.append(f"The bundle could not answer {', '.join(silent)}: they add 0.")
    return f"`{first.cause}` in `{DEMO}`:\n\n{table_text}\n" + " ".join(notes) + "\n"


def unseen() -> str:
    """The first runs on unseen reports, from the figures that reports quote."""
    from oomdoc.story.record import ROUNDS, SURE_FROM, like

    head = ["round", "when it was run", "fair", "the label itself", "in the first three", "Brier", "ECE", f"said at {SURE_FROM:g} or more: right"]  # fmt: skip
    body = [
        [each.name, each.state, *(f"{part / each.bundles:.2f}" for part in (each.fair, each.label, each.first_three)), f"{each.brier:.3f}", f"{each.ece:.3f}", f"{each.sure_right} of {each.sure}"]
        for each in ROUNDS
    ]  # fmt: skip
    (right, of), (lower, rest) = like(SURE_FROM), like(0.0)
    return table(head, body) + (
        f"\nTogether: {right:,} of {of:,} verdicts at {SURE_FROM:g} or more were right, and {lower} of the {rest} below it. Every report quotes the figure of its own range.\n"
    )


def _rule(cause: str) -> Any:
    return next(rule for rule in all_rules() if rule.id == cause)


# ---- tables


def _booked(tree: ast.AST) -> Iterator[str]:
    """What stands first in a call that makes rows, or in a pair of a table and its row: names of tables among it."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if isinstance(node, ast.Call) and name in ("add", "add_columns", "Batch"):
            first = node.args[:1]
        else:
            first = node.elts[:1] if isinstance(node, ast.Tuple) and len(node.elts) == 2 else []
        yield from (one.value for one in first if isinstance(one, ast.Constant) and isinstance(one.value, str))


@functools.cache
def fills(name: str) -> frozenset[str]:
    """The tables that an ingestor's module and those that serve it make rows of, and other words.

    What it has of other ingestors is a function or two, and their tables count.
    """
    from oomdoc.ingest import INGESTORS

    module = importlib.import_module(name)
    tree = ast.parse(inspect.getsource(module))
    words = {*_booked(tree), *(pattern.table for pattern in getattr(module, "PATTERNS", ()))}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("oomdoc.ingest"):
            continue
        for alias in node.names:
            inside = importlib.import_module(str(node.module))
            deeper = not hasattr(inside, alias.name)  # a module that is imported when it is first needed
            found = importlib.import_module(f"{node.module}.{alias.name}") if deeper else getattr(inside, alias.name)
            served = found.__name__ if inspect.ismodule(found) else str(node.module)
            if served in ("oomdoc.ingest.base", name) or ".vocabulary" in served:
                continue
            if all(served != one.__name__ for one in INGESTORS):
                words |= fills(served)
            elif inspect.isfunction(found):
                words |= {*_booked(ast.parse(inspect.getsource(found)))}
    return frozenset(words)


def tables() -> str:
    """docs/tables.md."""
    from oomdoc.evidence.tables import TABLES
    from oomdoc.ingest import INGESTORS
    from oomdoc.views import VIEWS

    filled: dict[str, list[str]] = {}
    for module in INGESTORS:
        for name in sorted(fills(module.__name__) & TABLES.keys() - {"problem"}):
            if module.KIND not in filled.get(name, ()):
                filled.setdefault(name, []).append(module.KIND)
    out = [
        "# Evidence tables and views",
        "",
        "What the ingestors write and the rules ask. `oomdoc tables` prints the same in a terminal, and",
        '`oomdoc sql BUNDLE "SELECT ..."` answers from all of it. NULL is *unknown*, never zero. `_bytes` are bytes, `_s`',
        "seconds, `t` is epoch seconds in UTC, shares are 0..1. Every table begins with `source` (path inside the bundle) and",
        "`line` (1-based physical line).",
        "",
        f"{len(TABLES)} tables: {', '.join(link(name) for name in TABLES)}.",
        "",
        f"{len(VIEWS)} views: {', '.join(link(name) for name in VIEWS)}.",
        "",
        "`focus` holds the incident in question and `engine_default` the defaults of the engine by version; `seen.<table>` is a",
        "log table without the rows that belong to another incident ([architecture](architecture.md#how-an-incident-is-focused)).",
        "",
        "## Tables",
    ]
    for one in TABLES.values():
        out += ["", f"### {one.name}", "", sentence(one.says)]
        if one.name in filled:
            out += ["", f"Filled by the ingestors {', '.join(f'`{kind}`' for kind in filled[one.name])}."]
        columns = [[f"`{column.name}`", column.type, text(column.says)] for column in one.columns]
        out += ["", table(["column", "type", "meaning"], columns).rstrip()]
    out += ["", "## Views"]
    asked = askers()
    for view in VIEWS.values():
        out += ["", f"### {view.name}", "", sentence(view.says), ""]
        out.append(f"Made once per {view.scope}. Reads {', '.join(link(name) for name in sources_of(view.sql))}.")
        if view.name in asked:
            out += ["", f"Asked by {', '.join(f'[`{cause}`](rules.md#{cause})' for cause in asked[view.name])}."]
        columns = [[f"`{name}`", text(says)] for name, says in view.columns.items()]
        out += ["", table(["column", "meaning"], columns).rstrip()]
    return "\n".join(out) + "\n"


def dataset() -> str:
    """The tables of a sweep's store, for docs/sweep.md."""
    from oomdoc.sweep.columns import DATASET_VERSION, TABLES

    out = [f"Version {DATASET_VERSION} of the dataset: {', '.join(f'[`{name}`](#{name})' for name in TABLES)}."]
    for one in TABLES.values():
        columns = [[f"`{column.name}`", column.type, text(column.says)] for column in one.columns]
        out += [
            "",
            f"### {one.name}",
            "",
            sentence(one.says),
            "",
            table(["column", "type", "meaning"], columns).rstrip(),
        ]
    return "\n".join(out) + "\n"


def link(name: str) -> str:
    """A table or view as a link within docs/tables.md; plain where the page has no such heading."""
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    bare = name.removeprefix("seen.")
    return f"[`{name}`](#{bare})" if bare in TABLES or bare in VIEWS else f"`{name}`"


def sources_of(sql: str) -> list[str]:
    """The tables and views that a query names and a person may ask, in order of name; those of `seen` with that prefix."""
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    known = {*TABLES, *VIEWS, "focus", "engine_default"}
    return sorted(name for name in names_of(sql) if name.removeprefix("seen.") in known)


def askers() -> dict[str, list[str]]:
    """For each table or view the causes whose evidence asks it."""
    asked: dict[str, list[str]] = {}
    for rule in all_rules():
        for name in sorted({name for item in rule.evidence for name in sources_of(item.sql)}):
            asked.setdefault(name, []).append(rule.id)
    return asked


# ---- rules


@functools.cache
def all_rules() -> tuple[Any, ...]:
    """The shipped rules by category and id; a broken file is an error here."""
    from oomdoc.judge.rules import CATEGORIES as ORDER
    from oomdoc.judge.rules import load_rules

    found, faults = load_rules()
    if faults:
        raise SystemExit("\n".join(faults))
    return tuple(sorted(found, key=lambda rule: (ORDER.index(rule.category), rule.id)))


def rules() -> str:
    """docs/rules.md: the matrix, who asks what, the evidence by id, and a page for every cause."""
    from oomdoc.views.thresholds import SHARED

    every = all_rules()
    out = [
        "# Causes and evidence",
        "",
        f"{len(every)} causes, {sum(len(rule.evidence) for rule in every)} pieces of evidence, "
        f"{sum(len(rule.tests) for rule in every)} tests of their own. ×16 multiplies the odds of the cause by 16, ÷16 divides",
        "them; what a bundle cannot tell does nothing, and `-` marks evidence that cannot be refuted, only found or not.",
        "[The method](method.md) says how they add up, and `oomdoc explain CAUSE` prints one page in a terminal.",
        "",
        "- [The matrix](#the-matrix): cause, signal, what speaks against it, first action",
        "- [Who asks what](#who-asks-what): causes × views, the strongest factor of each",
        "- [Evidence by id](#evidence-by-id): which causes it lifts and which it lowers",
        "- [Shared thresholds](#shared-thresholds): numbers that several queries compare with",
        "- [Every cause](#every-cause)",
        "",
        "## The matrix",
        "",
        matrix(every),
        "## Who asks what",
        "",
        "The strongest factor that a cause draws from each [table or view](tables.md): × lifts it, ÷ lowers it.",
        "",
        heat(every),
        "## Evidence by id",
        "",
        "The same id in several rules is the same kind of observation. The factor is what it does to the odds when it holds.",
        "",
        by_evidence(every),
        "## Shared thresholds",
        "",
        "What several queries compare with (`src/oomdoc/views/thresholds.toml`); a cause's own stand on its page.",
        "",
        thresholds_of(SHARED.values()),
        "## Every cause",
        "",
    ]
    category = ""
    for rule in every:
        if rule.category != category:
            category = rule.category
            out += [f"### {CATEGORIES[category]}", ""]
        out.append(cause_page(rule))
    return "\n".join(out).rstrip() + "\n"


def weights(item: Any) -> tuple[float, float]:
    """What an item adds to the log-odds when it holds and when it is refuted; 0 where its query never says FALSE."""
    so, not_so = math.log(item.p_cause / item.p_other), math.log((1 - item.p_cause) / (1 - item.p_other))
    return so, 0.0 if re.match(ONE_SIDED, " ".join(item.sql.split())) else not_so


def matrix(every: Iterable[Any]) -> str:
    """One row per cause: what tells most for it, what tells most against it, the first action.

    Most telling is not the largest factor but the largest that can be expected: a rare proof tells little on average.
    """
    body = []
    for rule in every:
        signal = max(rule.evidence, key=lambda item: item.p_cause * weights(item)[0])
        held = min(rule.evidence, key=lambda item: item.p_other * weights(item)[0])
        refuted = min(rule.evidence, key=lambda item: (1 - item.p_other) * weights(item)[1])
        if held.p_other * weights(held)[0] <= (1 - refuted.p_other) * weights(refuted)[1]:
            against = f"{factor(weights(held)[0])} {open_sentence(held.says)}"
        else:
            against = f"{factor(weights(refuted)[1])} {open_sentence(refuted.unless or 'not so: ' + refuted.says)}"
        action = open_sentence(rule.actions[0].do) if rule.actions else ""
        lead = f"{factor(weights(signal)[0])} {open_sentence(signal.says)}"
        body.append([rule.category, f"[`{rule.id}`](#{rule.id})", lead, against, action])
    return table(["category", "cause", "most telling signal", "most telling against it", "first action"], body)


def heat(every: Sequence[Any]) -> str:
    """Causes × tables and views: the strongest factor in each cell."""
    cells: dict[tuple[str, str], float] = {}
    for rule in every:
        for item in rule.evidence:
            for name in sources_of(item.sql):
                cells[rule.id, name] = max((*weights(item), cells.get((rule.id, name), 0.0)), key=abs)
    names = sorted({name for _, name in cells}, key=lambda name: (-sum(1 for _, used in cells if used == name), name))
    body = [
        [
            f"[`{rule.id}`](#{rule.id})",
            *(factor(cells[rule.id, name]) if (rule.id, name) in cells else "" for name in names),
        ]
        for rule in every
    ]
    return table(["cause", *names], body)


def by_evidence(every: Iterable[Any]) -> str:
    """Evidence ids and the causes they lift or lower."""
    lifts: dict[str, list[tuple[float, str]]] = {}
    for rule in every:
        for item in rule.evidence:
            lifts.setdefault(item.id, []).append((weights(item)[0], rule.id))

    def listed(entries: Iterable[tuple[float, str]]) -> str:
        ordered = sorted(entries, key=lambda entry: (-abs(entry[0]), entry[1]))
        return ", ".join(f"`{cause}` {factor(weight)}" for weight, cause in ordered)

    body = [
        [
            f"`{name}`",
            listed(entry for entry in lifts[name] if entry[0] > 0),
            listed(entry for entry in lifts[name] if entry[0] < 0),
        ]
        for name in sorted(lifts)
    ]
    return table(["evidence", "speaks for", "speaks against"], body)


def cause_page(rule: Any) -> str:
    """One cause: what it means, its evidence with factors, sub-reasons, actions, references."""
    file = f"rules/{rule.category}/{rule.id}.toml"
    out = [f"#### {rule.id}", "", f"**{text(rule.title)}.** {text(rule.summary)}", ""]
    out += [f"Prior {rule.prior:.0%}; source [`{file}`](../{file}), tests of its own: {len(rule.tests)}.", ""]
    body = []
    for item in rule.evidence:
        so, not_so = weights(item)
        asks = ", ".join(
            f"[{name}](tables.md#{name.removeprefix('seen.')})"
            for name in sources_of(item.sql)
            if name not in ("focus", "engine_default")
        )
        refuted = factor(not_so) if not_so else "-"
        body.append([f"`{item.id}`", open_sentence(item.says), factor(so), refuted, item.group or "", asks])
    out.append(table(["evidence", "says", "so", "not so", "group", "asks"], body))
    if rule.reasons:
        out += [f"Sub-reasons, the first that holds: {', '.join(f'`{reason.id}`' for reason in rule.reasons)}.", ""]
    if rule.actions:
        body = [
            [
                f"`{action.id}`",
                open_sentence(action.do),
                open_sentence(action.cost),
                ", ".join(f"`{name}`" for name in action.changes),
            ]
            for action in rule.actions
        ]
        out.append(table(["action", "do", "cost", "changes"], body))
    if rule.thresholds:
        out.append(thresholds_of(rule.thresholds.values()))
    for reference in rule.references:
        out.append(f"- <{reference['url']}>: {text(reference['backs'])}")
    return "\n".join(out).rstrip() + "\n"


def thresholds_of(declared: Iterable[Any]) -> str:
    """Numbers that queries compare with: value, unit, reason and source of each."""
    body = [[f"`{one.name}`", f"{one.value:,}", text(one.unit), text(one.why), text(one.source)] for one in declared]
    return table(["threshold", "value", "unit", "why this one", "source"], body)


def own_page(rule: Any) -> str:
    """docs/causes/<id>.md: the same as a page of its own, with how to check and how it is told from others."""
    told = cause_page(rule).replace(
        f"#### {rule.id}\n", f"# {text(rule.title)}\n\n`{rule.id}`, {CATEGORIES[rule.category]}\n", 1
    )
    told = told.replace("](../rules/", "](../../rules/").replace("](tables.md", "](../tables.md")
    checks = [f"- `{action.id}`: {open_sentence(action.verify)}" for action in rule.actions if action.verify]
    reasons = [f"- `{action.id}`: {open_sentence(action.why)}" for action in rule.actions if action.why]
    for title, lines in (("The arithmetic of the advice", reasons), ("How to see that it helped", checks)):
        if lines:
            told += f"\n## {title}\n\n" + "\n".join(lines) + "\n"
    return (
        told
        + f"\n`oomdoc explain {rule.id}` prints this in a terminal. [All causes](README.md), [the method](../method.md).\n"
    )


def causes() -> str:
    """docs/causes/README.md: every cause with its page, by category."""
    out = [
        "# Causes",
        "",
        "What can be true of a server that ran out of memory, or seems to have. Each page is made from the cause's rule.",
        "",
    ]
    for category, title in CATEGORIES.items():
        out += [f"## {title}", ""]
        out += [
            f"- [`{rule.id}`]({rule.id}.md): {text(rule.title)}" for rule in all_rules() if rule.category == category
        ]
        out.append("")
    return "\n".join(out).rstrip() + "\n"


# ---- command line


def cli() -> str:
    """docs/cli.md: every command as its `--help` tells it."""
    import typer.main

    from oomdoc.cli import app

    root: Any = typer.main.get_command(app)
    commands = dict(_commands(root, "oomdoc"))
    names = [name for name in commands if name != "oomdoc"]
    out = [
        "# Commands",
        "",
        "Every command works offline, reads only and never writes beside its input. Standard output is the result, standard",
        "error is progress and warnings. `oomdoc COMMAND --help` prints the same.",
        "",
        *(f"- [`{name}`](#{name.replace(' ', '-')}): {text(first_line(commands[name]))}" for name in names),
    ]
    for name, command in commands.items():
        out += ["", f"## {name}", "", "```text", usage(name, command), "```", "", prose(command.help or "")]
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
        if arguments:
            rows = [[f"`{param.metavar or param.name.upper()}`", text(param.help or "")] for param in arguments]
            out += ["", table(["argument", "what"], rows).rstrip()]
        if options:
            out += ["", table(["option", "what"], [option(param) for param in options]).rstrip()]
    return "\n".join(out) + "\n"


ATLAS_SAMPLE = 150  # characters of a sample line that the atlas shows


def atlas() -> str:
    """docs/engine-atlas.md: every message shape of the engine, who reads it, or why nobody does."""
    from oomdoc.ingest.text_log import PATTERNS
    from oomdoc.physics.defaults import NEWEST_READ, OLDEST_READ

    listed = tomllib.loads((ROOT / "docs" / "engine-atlas.toml").read_text(encoding="utf-8"))
    own = [pattern for pattern in PATTERNS if pattern.versions]
    by_table: dict[str, list[Any]] = {}
    for pattern in own:
        by_table.setdefault(pattern.table, []).append(pattern)
    out = [
        "# Engine atlas",
        "",
        f"Every message shape of vLLM {OLDEST_READ} to {NEWEST_READ} that we know of: where it goes, or why it is passed over. A range names the",
        f"first and the last release *checked* that prints the shape; `→` means still there in {NEWEST_READ}. What is read by a pattern is",
        "tried on its samples in every test run, and so is what is read elsewhere and what is skipped. A line that announces a",
        "figure or a failure in words that nothing here reads becomes a row of `problem` and a warning of the report",
        "(`ingest/wordings.py`).",
        "",
        f"{len(own)} shapes by patterns, {len(listed['elsewhere'])} read elsewhere, {len(listed['skipped'])} skipped.",
        "",
        "## Read by patterns",
        "",
    ]
    for name in sorted(by_table):
        out += [f"### Into `{name}`", ""]
        body = [[f"`{item.name}`", item.versions, _sample(item.samples[0][0])] for item in by_table[name]]
        out += [table(["pattern", "versions", "sample"], body)]
    out += ["## Read elsewhere", ""]
    body = [
        [text(item["shape"]), item["versions"], f"`{item['table']}`", text(item["by"]), _sample(item["sample"])]
        for item in listed["elsewhere"]
    ]
    out += [table(["shape", "versions", "table", "by", "sample"], body)]
    out += ["## Skipped on purpose", ""]
    body = [
        [text(item["shape"]), item["versions"], text(item["reason"]), _sample(item["sample"])]
        for item in listed["skipped"]
    ]
    out += [table(["shape", "versions", "reason", "sample"], body)]
    out += _mined()
    return "\n".join(out).rstrip("\n") + "\n"


def _mined() -> list[str]:
    """What `docs/mine.py` found in the engine's sources: how much of it is read, what is known by a reason, what is open."""
    walked, _, *lines = (ROOT / "packaging" / "engine-messages.tsv").read_text(encoding="utf-8").splitlines()
    versions = walked.partition(":")[2].split()
    rows = [line.split("\t") for line in lines]
    benign = [row for row in rows if row[4] == "benign"]
    reasoned = Counter(row[4].removeprefix("known:") for row in rows if row[4].startswith("known:"))
    left = [row for row in rows if not row[4] and row[1] == versions[-1]]
    entries = tomllib.loads((ROOT / "packaging" / "engine-known.toml").read_text(encoding="utf-8"))["known"]
    out = [
        "## To work through",
        "",
        "`docs/mine.py` walks the releases of a checkout and writes `packaging/engine-messages.tsv`: every message that bears on memory or on a",
        f"server's end. In {len(versions)} releases, {versions[0]} to {versions[-1]}, those are {len(rows)}: {len(rows) - len(benign) - reasoned.total() - sum(not row[4] for row in rows)} are read by patterns, {len(benign)} are what a healthy",
        f"server says, {reasoned.total()} announce a failure and need no reader of their own, for a reason that `packaging/engine-known.toml` gives:",
        "",
        table(
            ["id", "kind", "messages", "reason"],
            [[f"`{one['id']}`", one["kind"], str(reasoned[one["id"]]), text(one["says"])] for one in entries],
        ),
        "",
    ]
    if not left:
        return [*out, f"Of {versions[-1]} no message is open."]
    shown = [
        [row[0], row[2], f"`{row[3]}`", f"``{row[5].replace('|', chr(92) + '|').replace('`', chr(39))} ``"]
        for row in left
    ]
    return [*out, f"Open of {versions[-1]}:", "", table(["since", "level", "file", "message"], shown)]


def _sample(line: str) -> str:
    """A sample line as code in a cell; what is no character is shown as its name."""
    shown = line.replace("\x1b", "␛").replace("|", "\\|")
    return f"``{shown[:ATLAS_SAMPLE]}{' …' if len(shown) > ATLAS_SAMPLE else ''} ``" if line else ""


def _commands(command: Any, path: str) -> Iterable[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, f"{path} {name}")


def first_line(command: Any) -> str:
    """The first sentence of a command's help."""
    return str(command.help or "").strip().splitlines()[0]


def usage(name: str, command: Any) -> str:
    """How a command is called, on one line."""
    words = [name]
    if any(param.param_type_name == "option" and param.name != "help" for param in command.params):
        words.append("[OPTIONS]")
    for param in command.params:
        if param.param_type_name == "argument":
            word = str(param.metavar or param.name.upper()) + ("..." if param.nargs == -1 else "")
            words.append(word if param.required else f"[{word}]")
    return " ".join([*words, "COMMAND [ARGS]..."] if hasattr(command, "commands") else words)


def option(param: Any) -> list[str]:
    """Names with the placeholder, and the meaning with the default, of one option."""
    value = "" if getattr(param, "is_flag", False) else f" {param.metavar or param.name.upper()}"
    default = param.default
    shown = f" Default: `{default}`." if default not in (None, False, ()) and not callable(default) else ""
    names = ", ".join(f"`{name}{value}`".replace("|", "\\|") for name in param.opts)
    return [names, text(param.help or "") + shown]


def prose(help_text: str) -> str:
    """Help text as Markdown: paragraphs after a form-feed mark are kept as they are, the others flow."""
    out = []
    for paragraph in re.split(r"\n\s*\n", help_text.strip()):
        lines = [line.rstrip() for line in paragraph.splitlines()]
        if lines[0].strip() == "\b":
            title, body = lines[1].strip(), lines[2:]
            margin = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
            out.append(
                f"{title}\n\n"
                + fenced("text" if "status" in title else "sh", "\n".join(line[margin:] for line in body)).rstrip()
            )
        else:
            out.append(text(" ".join(line.strip() for line in lines)))
    return "\n\n".join(out)


# ---- the JSON report


def fields() -> str:
    """Every field of the report, from its JSON Schema: one table per object."""
    from oomdoc.model.schema import load

    out: list[str] = []
    kinds = _kinds()
    _object(out, "report", load())
    first = ("diagnosis", "evidence", "action", "incident", "first_failure", "ledger_entry", "parts", "engine", "flag",
             "traffic", "bucket", "peak", "source", "unread", "collect", "watch")  # fmt: skip
    for name in (*first, *(kind for kind in kinds if kind not in first)):
        if kinds.get(name, {}).get("properties"):
            _object(out, name, kinds[name])
    return "\n".join(out)


def _object(out: list[str], title: str, schema: Mapping[str, Any]) -> None:
    out += [f"### {title}", "", text(schema.get("description", "")), ""]
    body: list[list[str]] = []
    _rows(body, "", schema)
    out.append(table(["field", "type", "meaning"], body))


def _rows(body: list[list[str]], path: str, schema: Mapping[str, Any]) -> None:
    kinds = _kinds()
    for name, field in (schema.get("properties") or {}).items():
        target = kinds.get(str(field.get("$ref")).rsplit("/", 1)[-1], {})
        body.append([f"`{path}{name}`", _type(field), text(field.get("description") or target.get("description", ""))])
        inner = field.get("properties") or {}
        alike = {tuple(value.get("properties", ())) for value in inner.values()}
        if len(inner) > 1 and len(alike) == 1 and () not in alike:  # the same measures of several things: one row
            of = ", ".join(f"`{key}`" for key in next(iter(alike)))
            body.append([f"`{path}{name}.*`", "object", f"For each of {', '.join(f'`{key}`' for key in inner)}: {of}."])
        elif inner:
            _rows(body, f"{path}{name}.", field)


@functools.cache
def _kinds() -> Mapping[str, Any]:
    from oomdoc.model.schema import load

    return load()["$defs"]


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return {
            "bytes": "bytes or null",
            "time": "time or null",
            "ref": "`path:line`",
            "refs": "list of `path:line`",
            "id": "id",
        }.get(name, f"[{name}](#{name})")
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if isinstance(schema.get("additionalProperties"), Mapping) and not schema.get("properties"):
        return f"object: name to {_type(schema['additionalProperties'])}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# ---- Markdown


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table with an empty line after it."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines) + "\n"


def text(raw: str) -> str:
    """Text of the code for a Markdown cell: one line, no table bars, no tags."""
    flat = " ".join(raw.split())
    parts = re.split(r"(`[^`]*`)", flat)
    return "".join(part.replace("|", "\\|") if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _escaped(part: str) -> str:
    return part.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")


def sentence(raw: str) -> str:
    """A description as a sentence: a capital in front, a full stop behind."""
    said = text(raw)
    return said[:1].upper() + said[1:] + ("" if said.endswith(".") else ".")


def open_sentence(raw: str) -> str:
    """A rule's sentence before any bundle: `{share:.0%}` reads *share*."""
    said = text(
        re.sub(r"`([^`]*\{[^`]*)`", lambda match: "`" + re.sub(r"\{(\w+)[^{}]*\}", r"<\1>", match[1]) + "`", raw)
    )
    return re.sub(r"\{(\w+)[^{}]*\}", lambda match: f"*{match[1]}*", said)


def factor(weight: float) -> str:
    """What a weight does to the odds, as reports write it."""
    from oomdoc.report.words import factor as written

    return written(weight)


def fenced(language: str, body: str) -> str:
    """A code block."""
    return f"```{language}\n{body}\n```\n"


def stale() -> list[Path]:
    """Pages that are not as the code has them now."""
    return [
        path for path, wanted in pages().items() if not path.is_file() or path.read_text(encoding="utf-8") != wanted
    ]


def main(argv: Sequence[str]) -> int:
    """Write the pages, or with `--check` name those that are old."""
    if list(argv) not in ([], ["--check"]):
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    old = stale()
    if argv:
        for path in old:
            print(f"{path.relative_to(ROOT)} is not current: run `make docs`")
        return 1 if old else 0
    made = pages()
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
