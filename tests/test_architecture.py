"""Who may import whom, held on the source itself: every import statement, those inside functions too."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "oomdoc"

# A room is a module of `oomdoc` or a package in it. Each may import the rooms named here, and errors, regexes and units besides.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "regexes": set(),
    "units": set(),
    "faults": set(),
    "limits": {"faults"},
    "intake": set(),
    "physics": set(),
    "model": {"physics"},
    "scene": set(),
    "views": set(),
    "evidence": {"faults", "physics", "scene", "views"},
    "ingest": {"evidence", "intake"},
    "judge": {"evidence", "model", "views"},
    "redact": {"evidence", "faults", "ingest", "intake", "judge", "limits", "model"},
    "loading": {"evidence", "ingest", "intake", "model", "physics", "redact"},
    "fit": {"model", "physics"},
    "ledger": {"evidence", "fit", "model", "physics"},
    "replay": {"evidence", "physics"},
    "solve": {"evidence", "fit", "ledger", "model", "physics", "replay"},
    "story": {"model", "physics"},
    "assemble": {"evidence", "intake", "judge", "ledger", "loading", "model", "physics", "replay", "solve", "story"},
    "diagnose": {
        "assemble",
        "evidence",
        "faults",
        "ingest",
        "intake",
        "judge",
        "limits",
        "loading",
        "model",
        "redact",
        "replay",
    },
    "oomdoc": {"diagnose", "intake"},
    "collect": set(),
    "report": {"model", "physics"},
    "sweep": {
        "assemble",
        "diagnose",
        "evidence",
        "ingest",
        "intake",
        "judge",
        "loading",
        "model",
        "oomdoc",
        "physics",
        "report",
    },
    "cli": {
        "assemble",
        "collect",
        "diagnose",
        "evidence",
        "faults",
        "fit",
        "intake",
        "judge",
        "limits",
        "model",
        "oomdoc",
        "physics",
        "redact",
        "replay",
        "report",
        "sweep",
        "views",
    },
    "__main__": {"cli", "oomdoc"},
}
EVERYBODY = {"errors", "regexes", "units"}

# Single imports that the list above does not allow, each with its reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    (
        "oomdoc.assemble.assemble",
        "oomdoc",
    ): "the version, which is the package's own and written in one place, stands in every report",
}

HEAVY = {
    "duckdb",
    "_duckdb",
    "numpy",
    "isal",
    "ahocorasick_rs",
    "zstandard",
    "rich",
    "jinja2",
    "polars",
    "prompt_toolkit",
    "pyarrow",
    "yaml",
    "oomdoc.diagnose",
    "oomdoc.evidence.database",
    "oomdoc.evidence.store",
}


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name; a package's `__init__` has the package's name."""
    return {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in paths().items()}


def paths() -> dict[str, Path]:
    """The file of every module by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room(module: str) -> str:
    """`ingest` for `oomdoc.ingest.base`, `oomdoc` for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


@functools.cache
def imports() -> tuple[tuple[str, str, int], ...]:
    """(importing module, imported module, line) of every import of our own, wherever it stands in the source."""
    return tuple(entry for name, tree in modules().items() for entry in _imports(name, tree))


def _imports(name: str, tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(tree):
        targets = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: imports here are absolute"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [target if target in modules() else str(node.module) for target in whole]
        for target in targets:
            if target.split(".")[0] == "oomdoc":
                assert target in modules(), f"{name}:{node.lineno} imports {target}, which is no module"
                yield name, target, node.lineno


def test_every_room_has_its_rule() -> None:
    assert {room(name) for name in modules()} == set(ALLOWED)
    assert all(targets <= set(ALLOWED) for targets in ALLOWED.values())


def test_imports_go_the_allowed_way() -> None:
    used = set()
    wrong = []
    for name, target, line in imports():
        here, there = room(name), room(target)
        if here == there or there in EVERYBODY or there in ALLOWED[here]:
            continue
        if (name, target) in EXCEPTIONS:
            used.add((name, target))
            continue
        wrong.append(f"{name}:{line} imports {target}")
    assert not wrong, "\n".join(wrong)
    assert used == set(EXCEPTIONS), "an exception that nothing needs any more"


def test_imports_go_one_way_through_the_rooms() -> None:
    """The rooms have an order, that of the list: each may import only what stands above it, and the door stands wherever it is used."""
    order = list(ALLOWED)
    upward = {
        (name, other) for name, others in ALLOWED.items() for other in others if order.index(other) > order.index(name)
    }
    assert not upward, f"these would climb back up: {sorted(upward)}"


def test_what_is_allowed_is_used() -> None:
    made: dict[str, set[str]] = {name: set() for name in ALLOWED}
    for name, target, _ in imports():
        made[room(name)].add(room(target))
    idle = {name: targets - made[name] for name, targets in ALLOWED.items() if targets - made[name]}
    assert not idle, f"allowed and not used: {idle}"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for name, target, _ in imports():
        if (name, target) not in EXCEPTIONS:
            graph[name].add(target)
    state: dict[str, int] = {}
    trail: list[str] = []

    def visit(name: str) -> None:
        if state.get(name) == 1:
            raise AssertionError(" -> ".join([*trail[trail.index(name) :], name]))
        if name in state:
            return
        state[name] = 1
        trail.append(name)
        for target in sorted(graph[name]):
            visit(target)
        trail.pop()
        state[name] = 2

    for name in sorted(graph):
        visit(name)


def test_the_rooms_are_those_of_the_architecture_page() -> None:
    """The table in docs/architecture.md says the same as the list above."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = {}
    for row in re.findall(r"^\| `([\w.]+)` \| (?:.*?) \| ([^|]*) \|$", text, re.M):
        told[row[0]] = set(re.findall(r"`(\w+)`", row[1]))
    assert told == ALLOWED


# --- what is heavy comes late -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module", ["oomdoc", "oomdoc.cli", "oomdoc.errors", "oomdoc.units", "oomdoc.evidence.tables", "oomdoc.model"]
)
def test_nothing_heavy_is_imported_before_it_is_used(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & {HEAVY!r}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_only_the_store_opens_a_database() -> None:
    """`duckdb.connect` stands in one module."""
    openers = [name for name, tree in modules().items() if "connect" in _attributes_of(tree, "duckdb")]
    assert openers == ["oomdoc.evidence.database"]


def test_no_module_reaches_for_the_network() -> None:
    network = {"socket", "ssl", "http", "urllib", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "webbrowser"}
    found = {
        (name, alias)
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in ([item.name for item in node.names] if isinstance(node, ast.Import) else [str(node.module)])
        if alias.split(".")[0] in network
    }
    assert not found


def test_nothing_of_a_bundle_is_ever_run() -> None:
    """No pickle, no eval, no shell: what a stranger hands over is data."""
    calls = {"eval", "exec", "compile", "__import__"}
    found = []
    for name, tree in modules().items():
        # its parser only, which makes nodes and runs no constructor: the next test holds that
        forbidden = {"pickle", "marshal", "shelve", "subprocess", "yaml", "runpy"} - (
            {"yaml"} if name == YAML else set()
        )
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found += [
                    f"{name}:{node.lineno} {item.name}"
                    for item in node.names
                    if item.name.split(".")[0] in forbidden and (name, item.name) != ("oomdoc.redact.documents", "yaml")
                ]
            elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in forbidden:
                found.append(f"{name}:{node.lineno} {node.module}")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls:
                found.append(f"{name}:{node.lineno} {node.func.id}")
            elif (
                isinstance(node, ast.Attribute)
                and node.attr in ("system", "popen")
                and isinstance(node.value, ast.Name)
            ):
                found.append(f"{name}:{node.lineno} {node.value.id}.{node.attr}")
    assert not found
    used = _attributes_of(modules()["oomdoc.redact.documents"], "yaml")
    assert used == {"compose", "parse", "SafeLoader", "YAMLError"}, (
        "nodes with their places only: nothing is constructed"
    )


YAML = "oomdoc.ingest.launch.documents"


def test_of_the_yaml_library_only_the_parser_is_used() -> None:
    """Nodes and events of the safe loader: nothing that constructs, nothing that loads."""
    used = _attributes_of(modules()[YAML], "yaml")
    assert used == {"CollectionEndEvent", "CollectionStartEvent", "SafeLoader", "YAMLError", "compose_all", "parse"}
    assert '"CSafeLoader"' in (SOURCE / "ingest" / "launch" / "documents.py").read_text(encoding="utf-8")


def _attributes_of(tree: ast.AST, name: str) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


# --- docstrings -------------------------------------------------------------------------------------------------------


def test_everything_public_says_what_it_gives() -> None:
    mute = []
    for name, tree in modules().items():
        if not ast.get_docstring(tree):
            mute.append(name)
        mute += [
            f"{name}:{node.lineno} {title}" for node, title in _public(tree.body, "") if not ast.get_docstring(node)
        ]
    assert not mute, "\n".join(mute)


def _public(body: list[ast.stmt], prefix: str) -> Iterator[tuple[ast.ClassDef | ast.FunctionDef, str]]:
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            yield node, prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{prefix}{node.name}.")


MOST_LINES = 500
"""A module that is longer does two jobs: split it. Only lists of data may be longer."""
LISTS = {
    "oomdoc.evidence.tables": "the tables",
    "oomdoc.ingest.vllm_log": "the engine's messages",
}


def test_a_module_has_one_job() -> None:
    longer = {name for name, path in paths().items() if path.read_bytes().count(b"\n") > MOST_LINES}
    assert longer == set(LISTS), "a module became too long, or a list has become short enough to be no exception"


def test_a_list_is_data() -> None:
    """Of an exception nearly all lines are values, not statements."""
    for name in LISTS:
        tree = modules()[name]
        code = sum(node.end_lineno - node.lineno + 1 for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.end_lineno)  # fmt: skip
        assert code < MOST_LINES / 3, (name, code)
