"""Rule files: read, checked, refused with `path:line` and the nearest valid name.

One TOML file per cause, `rules/<category>/<cause-id>.toml` (docs/adding-a-rule.md). This module knows the shape of a rule; it
neither runs a query nor weighs anything.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import tomli

from oomdoc.errors import RuleError
from oomdoc.evidence.tables import TABLES
from oomdoc.regexes import regex
from oomdoc.views import thresholds
from oomdoc.views.thresholds import Threshold

RULE_BYTES = 1 << 20  # the largest shipped has 30 KB; reading TOML takes a second per MB
LEAST_SHARE = 1e-9  # nobody counts finer, and its logarithm has to be a number
MOST_NUMBER = 1e9  # log-odds and counts of bundles
MOST_PARTS = 32
"""Of a dotted name: rules have three at most, and to read one takes time that grows with the square of its parts."""
_DEEP = regex(r"""(?<![\w"'-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*)""" + f"{{{MOST_PARTS}}}")
CATEGORIES = ("weights", "kv-cache", "parameters", "parallelism", "scheduling", "allocator", "host", "none")


@dataclass(frozen=True)
class EvidenceRule:
    """One observation: a query whose `holds` is TRUE, FALSE or NULL, and how often it holds with and without the cause."""

    id: str
    says: str
    sql: str
    p_cause: float
    p_other: float
    group: str | None
    unless: str  # how it reads when it does not hold; empty = the sentence with "not so:" before it
    judged: tuple[float, float] | None = None  # p_cause and p_other before they were counted (`oomdoc rules count`)
    counted: tuple[int, int, int, int] | None = None  # held / answered with the cause, held / answered without it


@dataclass(frozen=True)
class ReasonRule:
    """A sub-reason: told if its query holds; the first that does."""

    id: str
    says: str
    sql: str


@dataclass(frozen=True)
class ActionRule:
    """Advice whose numbers are columns of its query; `changes` maps engine flags to column names or fixed values."""

    id: str
    do: str
    why: str
    cost: str
    verify: str
    changes: Mapping[str, Any]
    sql: str
    when: str = "now"


@dataclass(frozen=True)
class Rule:
    """One cause."""

    id: str
    category: str
    title: str
    summary: str
    prior: float
    evidence: tuple[EvidenceRule, ...]
    reasons: tuple[ReasonRule, ...]
    actions: tuple[ActionRule, ...]
    references: tuple[Mapping[str, str], ...]
    tests: tuple[Mapping[str, Any], ...]
    path: Path
    unseen: float | None = (
        None  # log-odds of "something that nobody saw" it competes with; None: as all (weigh.ELSEWHERE)
    )
    prior_judged: float | None = None  # before it was counted
    prior_counted: tuple[int, int] | None = None  # bundles with this cause, of how many
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)  # its own; queries have their values already


def rules_folder() -> Path:
    """Where the shipped rules are: in the wheel, or at the top of the checkout (an editable install)."""
    packed = Path(__file__).parents[1] / "_rules"
    if packed.is_dir():
        return packed
    checkout = Path(__file__).parents[3] / "rules"
    if checkout.is_dir():
        return checkout
    raise RuleError(
        "the rule files are missing from this installation", "Install oomdoc again, or name a folder with --rules"
    )


def load_rules(extra: Path | None = None, *, tests: bool = True) -> tuple[list[Rule], list[str]]:
    """All shipped rules, and those of `extra` on top (same id replaces), in order of id; and the faults of broken files.

    A broken file is left out and named; the other rules go on. A folder that does not exist raises RuleError. Without
    `tests` those of the shipped rules are passed over: they are half of the text, and reading TOML is slow (27 ms).
    """
    rules: dict[str, Rule] = {}
    faults: list[str] = []
    folders = [rules_folder()]
    if extra is not None:
        if not extra.is_dir():
            raise RuleError(f"there is no rule folder {extra}", "Name a folder with <category>/<cause-id>.toml files")
        folders.append(extra)
    for folder in folders:
        for path in sorted(folder.glob("**/*.toml")):
            try:
                rule = read_rule(path, tests or folder != folders[0])
            except RuleError as fault:
                faults.append(str(fault))
                continue
            rules[rule.id] = rule
    return [rules[name] for name in sorted(rules)], faults


def rules_version(rules: Iterable[Rule]) -> str:
    """Twelve hex digits over the texts of the rule files: the same rules, the same version."""
    digest = hashlib.sha256()
    for rule in rules:
        digest.update(rule.id.encode() + b"\0" + rule.path.read_bytes())
    return digest.hexdigest()[:12]


def shipped_queries(rules: Iterable[Rule]) -> Iterator[str]:
    """The queries of those rules that came with the program, not from a folder of somebody else."""
    for rule in shipped_rules(rules):
        yield from (action.sql for action in rule.actions)
    yield from shipped_questions(rules)


def shipped_questions(rules: Iterable[Rule]) -> Iterator[str]:
    """Those of them that answer nothing about a bundle without evidence: all but advice, which may need none."""
    for rule in shipped_rules(rules):
        yield from (item.sql for item in rule.evidence)
        yield from (reason.sql for reason in rule.reasons)


def shipped_rules(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Those that came with the program, not from a folder of somebody else."""
    own = rules_folder()
    return (rule for rule in rules if rule.path.is_relative_to(own))


def place_of(rules: Iterable[Rule], sql: str) -> str:
    """Where a query stands: `path:line id`; the query's head where no rule has it."""
    for rule in rules:
        items: list[EvidenceRule | ReasonRule | ActionRule] = [*rule.evidence, *rule.reasons, *rule.actions]
        for item in items:
            if item.sql == sql:
                lines = rule.path.read_text(encoding="utf-8").splitlines()
                wanted = re.compile(rf'\s*id\s*=\s*"{re.escape(item.id)}"')
                number = next((i for i, line in enumerate(lines, 1) if wanted.match(line)), 1)
                return f"{rule.path}:{number} {item.id}"
    return " ".join(sql.split())[:80]


_RULE_KEYS = {
    "id", "title", "summary", "unseen", "prior", "prior_judged", "prior_counted", "threshold", "evidence", "reason", "action", "reference", "test",
}  # fmt: skip
_EVIDENCE_KEYS = {"id", "says", "sql", "p_cause", "p_other", "judged", "counted", "group", "unless"}
_REASON_KEYS = {"id", "says", "sql"}
_ACTION_KEYS = {"id", "do", "why", "cost", "verify", "changes", "sql", "when"}
_WHEN = ("now", "after-load-test")
_REFERENCE_KEYS = {"url", "backs"}
_TEST_KEYS = {"name", "given", "expect"}
_EXPECT_KEYS = {"holds", "fails", "unknown", "probability", "action", "reason"}


def read_rule(path: Path, tests: bool = True) -> Rule:
    """Read and check one rule file; RuleError names file, line and the nearest valid name.

    A text that was read before in this process is not parsed again: reading TOML is slow.
    """
    try:
        if not path.is_file():  # a pipe would be waited for, a device never ends
            raise RuleError(f"{path}: is no plain file", "Remove it from the folder")
        if path.stat().st_size > RULE_BYTES:
            raise RuleError(f"{path}: is larger than {RULE_BYTES:,} bytes", "Split it, one cause per file")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RuleError(f"{path}: cannot be read ({problem})") from None
    return _rule_of(path, text, tests)


@functools.lru_cache(maxsize=128)
def _rule_of(path: Path, text: str, tests: bool) -> Rule:
    wanted = text if tests else _without_tests(text)
    try:
        for number, content in enumerate(wanted.split("\n"), 1):
            # the dots are counted first: to look for such names in all of the shipped text took 90 ms
            if content.count(".") >= MOST_PARTS and _DEEP.search(content):
                raise RuleError(f"{path}:{number}: a name of more than {MOST_PARTS} parts", "Mend the syntax")
        raw = tomli.loads(wanted)
    except tomli.TOMLDecodeError as problem:
        line = re.search(r"line (\d+)", str(problem))
        raise RuleError(f"{path}:{line[1] if line else 1}: not TOML: {problem}", "Mend the syntax") from None
    except RecursionError:
        raise RuleError(f"{path}:1: brackets too deep inside each other", "Mend the syntax") from None
    except ValueError as problem:  # a number of thousands of digits
        raise RuleError(f"{path}:1: not TOML: {problem}", "Mend the syntax") from None
    check = _Check(path, text)
    check.keys(raw, _RULE_KEYS, "rule")
    check.shapes(raw)
    for key in ("id", "title", "summary", "prior"):
        check.need(raw, key, "rule")
    if raw["id"] != path.stem:
        check.fail(f'id = "{raw["id"]}" but the file is {path.name}', "id", "Give both the same name")
    category = path.parent.name
    if category not in CATEGORIES:
        check.fail(f"folder {category} is no category", "id", f"Use one of {', '.join(CATEGORIES)}")
    check.share(raw["prior"], "prior", "prior")
    own = _thresholds(check, raw)
    evidence = tuple(_evidence(check, item) for item in raw.get("evidence", ()))
    if not evidence:
        check.fail("a rule without evidence says nothing", "id", "Add an [[evidence]] table")
    names = [item.id for item in evidence]
    for name in names:
        if names.count(name) > 1:
            check.fail(f"evidence id {name} is used twice", name)
    return Rule(
        id=raw["id"], category=category, title=raw["title"], summary=raw["summary"], prior=float(raw["prior"]), evidence=evidence,
        reasons=tuple(ReasonRule(item["id"], item.get("says", ""), item["sql"]) for item in check.all(raw, "reason", _REASON_KEYS, ("id", "sql"))),
        actions=tuple(
            ActionRule(item["id"], item["do"], item.get("why", ""), item.get("cost", ""), item.get("verify", ""), item.get("changes", {}), item.get("sql", "SELECT true AS holds"), _when(check, item))
            for item in check.all(raw, "action", _ACTION_KEYS, ("id", "do"))
        ),
        references=tuple(dict(item) for item in check.all(raw, "reference", _REFERENCE_KEYS, ("url", "backs"))),
        tests=tuple(_test(check, item, names) for item in check.all(raw, "test", _TEST_KEYS, ("name", "expect"))),
        path=path, unseen=check.number(raw, "unseen"), prior_judged=raw.get("prior_judged"), prior_counted=check.numbers(raw, "prior_counted", 2),
        thresholds=own,
    )  # fmt: skip


def _thresholds(check: _Check, raw: Mapping[str, Any]) -> Mapping[str, Threshold]:
    """The rule's own thresholds; the queries of `raw` are written with the values of those that they name."""
    try:
        own = thresholds.read(raw.get("threshold", ()))
    except ValueError as problem:
        check.fail(str(problem), "threshold", f"A threshold has {', '.join(thresholds.KEYS)}")
    known = {**thresholds.SHARED, **own}
    for item in (item for key in ("evidence", "reason", "action") for item in raw.get(key, ()) if "sql" in item):
        for name in sorted(thresholds.names_in(item["sql"]) - known.keys()):
            nearest = difflib.get_close_matches(name, sorted(known), 1, 0.0)
            check.fail(f"{item.get('id', '')}: no threshold is called {name!r}", str(item.get("id", "sql")), f"Did you mean ${nearest[0]}?" if nearest else "Declare it as [[threshold]]")  # fmt: skip
        item["sql"] = thresholds.filled(item["sql"], known)
    return own


def _when(check: _Check, item: Mapping[str, Any]) -> str:
    when = item.get("when", "now")
    if when not in _WHEN:
        check.fail(f"action {item['id']!r}: when = {when!r}", "when", f"Use one of {', '.join(_WHEN)}")
    return str(when)


_TYPES: Mapping[str, Any] = {
    "p_cause": object,
    "p_other": object,
    "judged": list,
    "counted": list,
    "changes": dict,
    "given": dict,
    "expect": dict,
    "value": object,
}
_WORDS: Mapping[Any, str] = {str: "a text", dict: "a table", list: "a list"}
_TEMPLATES = frozenset({"says", "unless", "do", "why", "cost", "verify"})


def _without_tests(text: str) -> str:
    """The text up to its tests, if nothing else comes after them."""
    rule, _, rest = text.partition("\n[[test]]")
    return text if re.search(r"^\[+(?!\[|test\b)", rest, re.M) else rule


class _Check:
    """Faults of one file, each with its line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()

    def fail(self, what: str, near: str, hint: str = "") -> NoReturn:
        """Raise RuleError at the first line that holds `near`."""
        key = re.compile(rf"\s*(?:\[+)?{re.escape(near)}\b")
        number = next((i for i, line in enumerate(self.lines, 1) if key.match(line)), None) or next(
            (i for i, line in enumerate(self.lines, 1) if near in line), 1
        )
        raise RuleError(f"{self.path}:{number}: {what}", hint)

    def keys(self, table: Mapping[str, Any], allowed: set[str], where: str) -> None:
        """Refuse keys that a table does not have."""
        for key in table:
            if key not in allowed:
                nearest = difflib.get_close_matches(key, sorted(allowed), 1, 0.0)
                self.fail(f"{where} has no key {key!r}", key, f"Did you mean {nearest[0]!r}?" if nearest else "")

    def shapes(self, raw: Mapping[str, Any]) -> None:
        """Refuse values of the wrong type and templates that cannot be filled."""
        for key in ("threshold", "evidence", "reason", "action", "reference", "test"):
            items = raw.get(key, [])
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                self.fail(f"{key} is not a list of tables", key, f"Write [[{key}]]")
            for item in items:
                for name, value in item.items():
                    wanted = _TYPES.get(name, str)
                    if not isinstance(value, wanted) or isinstance(value, bool):
                        self.fail(
                            f"{name} of {key} {item.get('id', item.get('name', ''))} is not {_WORDS.get(wanted, 'a number')}",
                            name,
                        )
                    if name in _TEMPLATES:
                        self.template(value, name)
        for name in ("id", "title", "summary"):
            if name in raw and not isinstance(raw[name], str):
                self.fail(f"{name} is not a text", name)

    def template(self, text: str, near: str) -> None:
        """Refuse a sentence whose placeholders are no plain names."""
        try:
            fields = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
        except ValueError as problem:
            self.fail(f"{near} = {text[:60]!r} is no template: {problem}", text[:30])
            return
        for name in fields:
            if not name.isidentifier():
                self.fail(f"{near} has a placeholder {{{name}}} that is no column name", text[:30])

    def need(self, table: Mapping[str, Any], key: str, where: str) -> None:
        """Refuse a missing key."""
        if key not in table:
            self.fail(f"{where} {table.get('id', '')} lacks {key!r}".replace("  ", " "), str(table.get("id", where)))

    def share(self, value: Any, near: str, what: str) -> None:
        """Refuse what is no probability strictly between 0 and 1."""
        if not isinstance(value, (int, float)) or not LEAST_SHARE <= value <= 1 - LEAST_SHARE:
            self.fail(f"{what} = {str(value)[:40]} is not between 0 and 1", near)

    def number(self, table: Mapping[str, Any], key: str) -> float | None:
        """A number, None where there is none."""
        value = table.get(key)
        if value is not None and not _is_number(value):
            self.fail(f"{key} is not a number", key)
        return None if value is None else float(value)

    def numbers(self, table: Mapping[str, Any], key: str, count: int) -> Any:
        """A list of so many numbers as a tuple, None where there is none."""
        values = table.get(key)
        if values is None:
            return None
        if not isinstance(values, list) or len(values) != count or not all(map(_is_number, values)):
            self.fail(f"{key} does not hold {count} numbers", str(table.get("id", key)))
        return tuple(values)

    def all(
        self, raw: Mapping[str, Any], key: str, allowed: set[str], needed: tuple[str, ...]
    ) -> list[Mapping[str, Any]]:
        """The tables of an array, each checked."""
        items: list[Mapping[str, Any]] = list(raw.get(key, ()))
        for item in items:
            self.keys(item, allowed, key)
            for name in needed:
                self.need(item, name, key)
        return items


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MOST_NUMBER


def _evidence(check: _Check, item: Mapping[str, Any]) -> EvidenceRule:
    check.keys(item, _EVIDENCE_KEYS, f"evidence {item.get('id', '')}".strip())
    for key in ("id", "says", "sql", "p_cause", "p_other"):
        check.need(item, key, "evidence")
    for key in ("p_cause", "p_other"):
        check.share(item[key], str(item["id"]), f"{key} of {item['id']}")
    return EvidenceRule(
        item["id"],
        item["says"],
        item["sql"],
        float(item["p_cause"]),
        float(item["p_other"]),
        item.get("group"),
        item.get("unless", ""),
        check.numbers(item, "judged", 2),
        check.numbers(item, "counted", 4),
    )


def _test(check: _Check, item: Mapping[str, Any], evidence: list[str]) -> Mapping[str, Any]:
    check.keys(item["expect"], _EXPECT_KEYS, f"expect of test {item['name']!r}")
    span = item["expect"].get("probability")
    if span is not None and not (
        isinstance(span, list) and len(span) == 2 and all(isinstance(end, (int, float)) for end in span)
    ):
        check.fail(f"expect.probability of test {item['name']!r} is not [lowest, highest]", "expect.probability")
    action = item["expect"].get("action")
    if action is not None and not (isinstance(action, dict) and "id" in action):
        check.fail(f"expect.action of test {item['name']!r} has no id", "expect.action")
    for key in ("holds", "fails", "unknown"):
        for name in item["expect"].get(key, ()):
            if name not in evidence:
                nearest = difflib.get_close_matches(name, evidence, 1, 0.0)
                check.fail(
                    f"test {item['name']!r} speaks of evidence {name!r} that the rule does not have",
                    name,
                    f"Did you mean {nearest[0]!r}?" if nearest else "",
                )
    for table, rows in item.get("given", {}).items():
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            check.fail(f"test {item['name']!r}: given.{table} is not a list of rows", table)
        if table not in TABLES:
            nearest = difflib.get_close_matches(table, sorted(TABLES), 1, 0.0)
            check.fail(
                f"test {item['name']!r} fills an unknown table {table!r}",
                table,
                f"Did you mean {nearest[0]!r}?" if nearest else "",
            )
        for row in rows:
            for column in row:
                if column not in TABLES[table].column_names:
                    nearest = difflib.get_close_matches(column, TABLES[table].column_names, 1, 0.0)
                    check.fail(
                        f"test {item['name']!r}: table {table} has no column {column!r}",
                        column,
                        f"Did you mean {nearest[0]!r}?" if nearest else "",
                    )
    return item
