"""What a query needs to tell anything, and which columns it names: read off DuckDB's own parse of the query.

`generate.py` writes it down for all views and for all questions of the shipped rules, and the store makes no view and asks no
question whose answer is known to be nothing (`oomdoc.views.blank`). What is not understood here claims nothing, so that it is
made and asked.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Node = Mapping[str, Any]
Claim = Any
"""What has to be so for there to be nothing; `True` is always so, `False` is never known. Else:

- `"oom"`: the relation has no row
- `["failure", "ooms", ">", 0]`: in no row of the relation is this true; without a value `IS NULL` and `IS NOT NULL`; of `IN`,
  `NOT IN` and `LOWER IN` (of the small letters) the value is a list
- `["engine"]`: the view holds what it holds where a bundle has no evidence
- `{"any": [...]}`, `{"all": [...]}`: one of these, all of these
"""

_COMPARED = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_STRICT = {
    "+", "-", "*", "/", "//", "%", "||", "~~", "!~~", "~~*", "!~~*", "abs", "floor", "round", "lower", "length", "regexp_extract", "regexp_matches", "regexp_replace",
}  # fmt: skip
"""Functions that are NULL where an argument is."""
_OF_NOTHING = {"max", "min", "sum", "avg", "any_value", "bool_or", "bool_and", "median"}
"""Aggregates that are NULL over no row, and over nothing but NULL."""
_OF_NO_ROW = _OF_NOTHING | {"arg_max", "arg_min", "max_by", "min_by", "first", "last", "list", "array_agg", "string_agg", "quantile_cont", "quantile_disc", "mode"}  # fmt: skip


@functools.cache
def syntax(sql: str) -> Any:
    """The syntax tree that DuckDB has of a query."""
    import duckdb

    row = duckdb.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
    return json.loads(row[0]) if row else None


@functools.cache
def aggregates() -> frozenset[str]:
    """Names of the functions that make one row of many, and of none."""
    import duckdb

    found = duckdb.execute("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'")
    return frozenset(name.lower() for (name,) in found.fetchall())


def nodes(tree: Any, *, within: bool = True) -> list[Node]:
    """All nodes of a tree, each before what is in it; without `within` not those of the queries inside it."""
    found: list[Node] = []
    ahead = [tree]
    while ahead:
        part = ahead.pop()
        if isinstance(part, dict):
            found.append(part)
            if within or part.get("class") != "SUBQUERY":
                ahead += reversed(part.values())
        elif isinstance(part, list):
            ahead += reversed(part)
    return found


def rowless(sql: str, columns: Mapping[str, Collection[str]], told: Mapping[str, Collection[str]]) -> Claim:
    """When a query has no row, as JSON (None: not known).

    `columns` are those of each relation, in the order of their making; of those in `told` it will be known what stands in them.

    >>> columns = {"a": ["k"], "b": ["k"], "c": ["k"], "d": ["k", "n"]}
    >>> asked = "SELECT 1 FROM a LEFT JOIN b USING (k), (FROM b UNION ALL FROM c) WHERE a.k > 0 AND EXISTS (FROM d WHERE n > 3)"
    >>> rowless(asked, columns, {"d": ["k", "n"]})
    {'any': ['a', {'all': ['b', 'c']}, ['d', 'n', '>', 3]]}
    >>> rowless("SELECT count(*) FROM a", columns, {})
    """
    return _written(_Query.of(sql, columns, told).rowless, columns)


def answerless(sql: str, columns: Mapping[str, Collection[str]], told: Mapping[str, Collection[str]]) -> Claim:
    """The same of a question: when it has no row, or NULL for `holds` in every row."""
    query = _Query.of(sql, columns, told)
    return _written(_any([query.rowless, query.null("holds")]), columns)


def as_bare(
    sql: str, columns: Mapping[str, Collection[str]], told: Mapping[str, Collection[str]], rowed: Collection[str]
) -> Claim:
    """When a query gives what it gives where no relation holds anything; `rowed` are the views that have a row even then.

    >>> columns = {"a": ["k"], "b": ["k"], "v": ["n"]}
    >>> as_bare("SELECT max(k) FROM a WHERE k > 3", columns, {"a": ["k"]}, {"v"})
    ['a', 'k', '>', 3]
    >>> as_bare("SELECT n, (SELECT count(*) FROM b) FROM v", columns, {}, {"v"})
    {'all': ['b', ['v']]}
    >>> as_bare("SELECT k FROM (SELECT 1) LEFT JOIN a ON a.k = 1 WHERE a.k > 0 OR a.k IS NULL", columns, {"a": ["k"]}, {"v"})
    'a'
    """
    return _written(_Query.of(sql, columns, told).as_bare(frozenset(rowed)), columns)


_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|\w+|\S")


def parts(
    sql: str, columns: Mapping[str, Collection[str]], told: Mapping[str, Collection[str]], rowed: Collection[str]
) -> Iterator[tuple[str, int, int, int, Claim]]:
    """The queries of a WITH clause: name, where that stands, where its text begins and ends, and what `as_bare` says of it.

    >>> list(parts("WITH x AS (SELECT max(k) AS k FROM a) SELECT k FROM x", {"a": ["k"]}, {}, ()))
    [('x', 5, 11, 36, 'a')]
    """
    query = _Query.of(sql, columns, told)
    tokens = [found for found in _TOKEN.finditer(sql) if not found[0].startswith("--")]
    nth = 2 if tokens[1:] and tokens[1][0].upper() == "RECURSIVE" else 1
    for name, inner in query.named.items():
        at = tokens[nth]
        assert at[0] == name, f"{at[0]} where {name} was to stand"
        nth += 1
        renamed = tokens[nth][0] == "("
        if renamed:
            nth = _closing(tokens, nth) + 1
        while tokens[nth][0] != "(":  # AS, MATERIALIZED
            nth += 1
        begin, nth = tokens[nth].end(), _closing(tokens, nth)
        claim = None if renamed else _written(inner.as_bare(frozenset(rowed)), columns)
        yield name, at.start(), begin, tokens[nth].start(), claim
        nth += 2  # the comma


def _closing(tokens: Sequence[re.Match[str]], opening: int) -> int:
    """Where the parenthesis ends that begins there."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place][0], 0)
        if not depth:
            return place
    raise ValueError("a parenthesis without an end")


class _Query:
    """A query within the names that it can read from."""

    def __init__(self, node: Node, known: Mapping[str, _Source]) -> None:
        self.named: dict[str, _Query] = {}
        for entry in node["cte_map"]["map"]:
            value = entry["value"]
            inner = value["query_node"] if "query_node" in value else value["query"]["node"]
            self.named[entry["key"]] = _Query(inner, known)
            known = {**known, entry["key"].lower(): _Source(query=self.named[entry["key"]])}
        self.node = node
        self.parts = (
            [_Query(part, known) for part in node.get("children") or (node["left"], node["right"])]
            if node["type"] == "SET_OPERATION_NODE"
            else [_Query(node["left"], known)]  # what goes on from the rows before needs a first one
            if node["type"] == "RECURSIVE_CTE_NODE"
            else []
        )
        self.scope = _Scope(node, known) if node["type"] == "SELECT_NODE" else None

    @staticmethod
    def of(sql: str, columns: Mapping[str, Collection[str]], told: Mapping[str, Collection[str]]) -> _Query:
        relations = {
            name: _Source(name, frozenset(of), told=frozenset(told.get(name, ()))) for name, of in columns.items()
        }
        # a WITH clause has no schema: a name with one is the relation, whatever else is called like it
        known = relations | {f".{name}": source for name, source in relations.items()}
        return _Query(syntax(sql)["statements"][0]["node"], known)

    @functools.cached_property
    def rowless(self) -> Claim:
        if self.scope is None:
            parts = [part.rowless for part in self.parts]
            how = self.node.get("setop_type")
            if self.node["type"] == "RECURSIVE_CTE_NODE" or how == "EXCEPT":
                return parts[0]
            return _all(parts) if how == "UNION" else _any(parts) if how == "INTERSECT" else False
        return _any([self._had, False if _is_one_row(self.node) else self.scope.rowless])

    @property
    def _had(self) -> Claim:
        """When HAVING lets no row pass; there a name is first that of a column of the SELECT, which is not followed."""
        having = self.node["having"]
        named = {item["alias"].lower() for item in self.node["select_list"]}
        called = {each["column_names"][0].lower() for each in nodes(having) if each.get("class") == "COLUMN_REF"}
        return self.scope.never(having) if self.scope and having and not named & called else False

    @functools.cache  # noqa: B019 - a query of a run of `generate.py`
    def as_bare(self, rowed: frozenset[str]) -> Claim:
        """When it gives what it gives where no relation holds anything."""
        if self.scope is None:
            every = [part.as_bare(rowed) for part in self.parts]
            if self.node["type"] == "RECURSIVE_CTE_NODE":  # goes on from the rows before, if there are any
                return _all([*every, self.parts[0].rowless]) if _bare(self.parts[0].rowless, rowed) else False
            return _all(every)
        scope, node = self.scope, self.node
        after = [node["select_list"], node["having"], node["qualify"], node["modifiers"]]
        # it has no row to work on either way: what is worked out of none is the same, but for what is asked beside
        none = _all([scope.rowless, *self._beside(after, rowed)]) if _bare(scope.rowless, rowed) else False
        if scope.strange:
            return none
        inside = [after, node["where_clause"], node["group_expressions"], scope.conditions]
        return _any([none, _all([*(source.as_bare(rowed) for source in scope.every), *self._beside(inside, rowed)])])

    def _beside(self, parts: Any, rowed: frozenset[str]) -> Iterator[Claim]:
        """The same of the queries inside expressions."""
        assert self.scope is not None
        for inner in nodes(parts, within=False):
            if inner.get("class") == "SUBQUERY":
                yield _Query(inner["subquery"]["node"], self.scope.known).as_bare(rowed)
                yield from self._beside(inner.get("child") or inner.get("children"), rowed)

    def item(self, name: str) -> Node | None:
        """The expression of a column, where it can be told."""
        if self.scope is None or any(node.get("class") == "STAR" and (node["replace_list"] or node["rename_list"] or node["columns"]) for node in self.node["select_list"]):  # fmt: skip
            return None
        for item in self.node["select_list"]:
            if item["alias"].lower() == name or (
                not item["alias"] and item.get("class") == "COLUMN_REF" and item["column_names"][-1].lower() == name
            ):
                return item
        if any(item.get("class") == "STAR" for item in self.node["select_list"]):
            return {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": [name]}
        return None

    def null(self, name: str | None) -> Claim:
        """When a column is NULL in every row; None is the only column."""
        if self.scope is None:
            return self._null_in_all(name) if self.node.get("setop_type") == "UNION" and name else False
        item = self._only if name is None else self.item(name)
        return self.scope.null(item) if item is not None else False

    def _null_in_all(self, name: str) -> Claim:
        """The same of a UNION, whose columns go by their place."""
        lists = [part.node.get("select_list") for part in self.parts]
        if not all(lists) or any(item.get("class") == "STAR" for items in lists for item in items):
            return False
        first = self.parts[0].item(name)
        place = next((place for place, item in enumerate(lists[0]) if item is first), None)
        if place is None:
            return False
        return _all([_any([part.rowless, part.scope.null(items[place])]) for part, items in zip(self.parts, lists, strict=True)])  # type: ignore[union-attr]  # fmt: skip

    @property
    def _only(self) -> Node | None:
        items = self.node["select_list"]
        return items[0] if len(items) == 1 and items[0].get("class") != "STAR" else None

    def never(self, name: str | None, test: Callable[[Node, _Scope], Claim]) -> Claim:
        """What `test` says of the expression of a column."""
        item = (self._only if name is None else self.item(name)) if self.scope is not None else None
        return test(item, self.scope) if item is not None and self.scope is not None else False


def _is_one_row(node: Node) -> bool:
    """Whether an aggregate over nothing may give a row."""
    if node["group_expressions"]:
        return len(node["group_sets"]) != 1 or not node["group_sets"][0]
    summed = [any(_is_aggregate(inner) for inner in nodes(item, within=False)) for item in node["select_list"]]
    if node["aggregate_handling"] == "FORCE_AGGREGATES":  # GROUP BY ALL groups by what is no aggregate
        return not any(
            not sums and any(inner.get("class") == "COLUMN_REF" for inner in nodes(item, within=False))
            for item, sums in zip(node["select_list"], summed, strict=True)
        )
    others = [node["having"], node["qualify"], node["modifiers"]]
    return bool(node["having"]) or any(summed) or any(map(_is_aggregate, nodes(others, within=False)))


def _is_aggregate(node: Node) -> bool:
    return node.get("class") == "FUNCTION" and node["function_name"].lower() in aggregates()


@dataclass(frozen=True)
class _Source:
    """What stands in a FROM: a relation of the bundle or a query; `padded` where an outer join may fill its columns with NULL,
    `told` are the columns of which it will be known what stands in them."""

    relation: str | None = None
    columns: frozenset[str] = frozenset()
    query: _Query | None = None
    padded: bool = False
    told: frozenset[str] = frozenset()

    @property
    def rowless(self) -> Claim:
        return self.relation or (self.query.rowless if self.query else False)

    def as_bare(self, rowed: frozenset[str]) -> Claim:
        if self.query:
            return self.query.as_bare(rowed)
        return [self.relation] if self.relation in rowed else self.relation


class _Scope:
    """The FROM and WHERE of one SELECT."""

    def __init__(self, node: Node, known: Mapping[str, _Source]) -> None:
        self.known = known
        self.sources: dict[str, _Source] = {}
        self.merged: set[str] = set()
        self.opaque = False  # something stands in the FROM whose columns nobody knows
        self.strange = False  # or of which nobody knows what it reads
        self.every: list[_Source] = []
        self.conditions: list[Any] = []
        self.rowless: Claim = False  # until it is known: an aggregate of the query around may stand in the WHERE
        rows = self._rows(node["from_table"], False)
        self.rowless = _any([rows, self.never(node["where_clause"]) if node["where_clause"] else False])

    def _rows(self, node: Node, padded: bool) -> Claim:
        """When a part of the FROM has no row; its names become known."""
        if node["type"] in ("BASE_TABLE", "SUBQUERY"):
            if node["type"] == "SUBQUERY":
                source: _Source | None = _Source(query=_Query(node["subquery"]["node"], self.known))
            else:
                source = self.known.get(("." if node["schema_name"] else "") + node["table_name"].lower())
            if source is None or node["column_name_alias"]:
                self.opaque = True
            if source is not None:
                self.every.append(source)
            if source is not None and not node["column_name_alias"]:
                name = (node["alias"] or node.get("table_name") or f"{len(self.sources)}").lower()
                self.sources[name] = replace(source, padded=padded)
            return source.rowless if source is not None else False
        if node["type"] != "JOIN":
            self.opaque = self.opaque or node["type"] != "EMPTY"
            self.strange = self.strange or node["type"] not in ("EMPTY", "TABLE_FUNCTION", "EXPRESSION_LIST")
            self.conditions.append({key: value for key, value in node.items() if key != "type"})
            return False
        self.conditions.append(node["condition"])
        kind = node["join_type"]
        left = self._rows(node["left"], padded or kind in ("RIGHT", "FULL") or node["ref_type"] == "POSITIONAL")
        right = self._rows(node["right"], padded or kind in ("LEFT", "FULL") or node["ref_type"] == "POSITIONAL")
        self.merged |= {name.lower() for name in node["using_columns"]}
        if node["ref_type"] == "POSITIONAL":
            return _all([left, right])
        if kind in ("INNER", "SEMI"):
            return _any([left, right, self.never(node["condition"]) if node["condition"] else False])
        return {"LEFT": left, "ANTI": left, "RIGHT": right, "FULL": _all([left, right])}.get(kind, False)

    def _found(self, node: Node) -> tuple[_Source, str] | None:
        """Where a column comes from; None where it cannot be told."""
        path = [part.lower() for part in node["column_names"]]
        if len(path) == 2 and path[0] in self.sources:
            return self.sources[path[0]], path[1]
        if len(path) != 1 or path[0] in self.merged:
            return None
        at = [source for source in self.sources.values() if path[0] in source.columns]
        if not at and len(self.sources) == 1 and not self.opaque:
            at = [source for source in self.sources.values() if source.query]
        return (at[0], path[0]) if len(at) == 1 else None

    def _column(self, node: Node, comparison: str, *value: Any) -> Claim:
        """In no row is this comparison of a column true."""
        at = self._found(node)
        if at is None:
            return False
        source, name = at
        if source.relation:
            return False if name not in source.columns else [source.relation, name, comparison, *value] if name in source.told else source.relation  # fmt: skip
        assert source.query is not None

        def of(item: Node, scope: _Scope) -> Claim:
            if item["class"] == "COLUMN_REF":
                return scope._column(item, comparison, *value)
            if comparison == "IS NULL":
                return False
            counted = scope.counts_none(item) if value and _fails_of_none(comparison, value[0]) else False
            return _any(
                [scope.null(item), counted, scope.never(item) if (comparison, *value) == ("=", True) else False]
            )

        return _any([source.query.rowless, source.query.never(name, of)])

    def never(self, node: Node) -> Claim:
        """When an expression is TRUE in no row."""
        kind, inner = node["class"], node.get("children", ())
        if kind == "CONSTANT":
            return node["literal"]["kind"] == "NULL_LITERAL" or node["literal"]["text"].lower() == "false"
        if kind == "CONJUNCTION":
            return (_any if node["type"] == "CONJUNCTION_AND" else _all)(map(self.never, inner))
        if kind == "CASE":
            return _all([self.never(node["else_expr"]), *(_any([self.never(each["when_expr"]), self.never(each["then_expr"])]) for each in node["case_checks"])])  # fmt: skip
        if kind == "COLUMN_REF":
            return self._column(node, "=", True)
        if kind == "SUBQUERY":
            query = _Query(node["subquery"]["node"], self.known)
            if node["subquery_type"] in ("EXISTS", "ANY"):
                return query.rowless
            if node["subquery_type"] == "SCALAR":
                return _any([query.rowless, query.never(None, lambda item, scope: scope.never(item))])
            return False
        if kind == "COMPARISON":
            return _any([self.null(node), self._compared(node, _COMPARED.get(node["type"])), self._counted(node)])
        if kind == "BETWEEN":
            low, high = _constant(node["lower"]), _constant(node["upper"])
            ends = [self._column(node["input"], how, end) for how, end in ((">=", low), ("<=", high)) if end is not None and node["input"]["class"] == "COLUMN_REF"]  # fmt: skip
            return _any([self.null(node), self.null(node["lower"]), self.null(node["upper"]), *ends])
        if node["type"] == "OPERATOR_NOT":
            return self.never_false(inner[0])
        if node["type"] == "OPERATOR_IS_NOT_NULL":
            return self.null(inner[0])
        if node["type"] == "OPERATOR_IS_NULL":
            return self.known_in_all(inner[0])
        if node["type"] == "OPERATOR_COALESCE":
            return _all(map(self.never, inner))
        if node["type"] == "COMPARE_IN":
            return _any([self.null(node), self._listed(node, "IN")])
        return self.null(node)

    def never_false(self, node: Node) -> Claim:
        """When an expression is FALSE in no row."""
        kind, inner = node["class"], node.get("children", ())
        if kind == "CONSTANT":
            return node["literal"]["kind"] == "NULL_LITERAL" or node["literal"]["text"].lower() == "true"
        if kind == "CONJUNCTION":
            return (_all if node["type"] == "CONJUNCTION_AND" else _any)(map(self.never_false, inner))
        if kind == "COLUMN_REF":
            return self._column(node, "=", False)
        if kind == "COMPARISON":
            return _any([self.null(node), self._compared(node, _OPPOSITE.get(_COMPARED.get(node["type"], "")))])
        if node["type"] == "OPERATOR_NOT":
            return self.never(inner[0])
        if node["type"] == "OPERATOR_IS_NULL":
            return self.null(inner[0])
        if node["type"] == "OPERATOR_IS_NOT_NULL":
            return self.known_in_all(inner[0])
        if node["type"] == "OPERATOR_COALESCE":
            first = _all([self.known_in_all(inner[0]), self.never_false(inner[0])])
            return _any([first, _all(map(self.never_false, inner))])
        if node["type"] == "COMPARE_IN":
            return _any([self.null(node), self._listed(node, "NOT IN")])
        return self.null(node) if kind in ("CAST", "FUNCTION") else False

    def known_in_all(self, node: Node) -> Claim:
        """When an expression is NULL in no row."""
        if node["class"] == "CONSTANT":
            return node["literal"]["kind"] != "NULL_LITERAL"
        at = self._found(node) if node["class"] == "COLUMN_REF" else None
        return False if at is None or not at[0].relation or at[0].padded else self._column(node, "IS NULL")

    def null(self, node: Node) -> Claim:
        """When an expression is NULL in every row."""
        kind, inner = node["class"], node.get("children", ())
        if kind == "CONSTANT":
            return node["literal"]["kind"] == "NULL_LITERAL"
        if kind == "COLUMN_REF":
            at = self._found(node)
            if at is None:
                return False
            return self._column(node, "IS NOT NULL") if at[0].relation else _any([at[0].query.rowless, at[0].query.null(at[1])])  # type: ignore[union-attr]  # fmt: skip
        if kind == "COMPARISON":
            return _any([self.null(node["left"]), self.null(node["right"])]) if node["type"] in _COMPARED else False
        if kind == "BETWEEN":
            return self.null(node["input"])
        if kind == "CAST":
            return self.null(node["child"])
        if kind == "CONJUNCTION":
            return _all(map(self.null, inner))
        if kind == "CASE":
            return _all([self.null(node["else_expr"]), *(_any([self.never(each["when_expr"]), self.null(each["then_expr"])]) for each in node["case_checks"])])  # fmt: skip
        if kind == "SUBQUERY" and node["subquery_type"] == "SCALAR":
            query = _Query(node["subquery"]["node"], self.known)
            return _any([query.rowless, query.null(None)])
        if kind == "FUNCTION":
            return self._of_function(node)
        if node["type"] in ("OPERATOR_NOT", "ARRAY_SLICE", "ARRAY_EXTRACT", "STRUCT_EXTRACT", "COMPARE_IN"):
            return self.null(inner[0])
        return _all(map(self.null, inner)) if node["type"] == "OPERATOR_COALESCE" else False

    def _of_function(self, node: Node) -> Claim:
        name, given = node["function_name"].lower(), _arguments(node)
        if name in _STRICT:
            return _any(map(self.null, given))
        if name not in _OF_NO_ROW:
            return False
        return _any([self.rowless, self._passed(node), self.null(given[0]) if name in _OF_NOTHING else False])

    def _passed(self, node: Node) -> Claim:
        return self.never(node["filter"]) if node["filter"] else False

    def _compared(self, node: Node, comparison: str | None) -> Claim:
        """A column compared with a constant."""
        if comparison is None:
            return False
        claims = []
        for one, other, how in ((node["left"], node["right"], comparison), (node["right"], node["left"], _TURNED[comparison])):  # fmt: skip
            value = _constant(other)
            if one["class"] == "COLUMN_REF" and value is not None:
                claims.append(self._column(one, how, value))
        return _any(claims)

    def _counted(self, node: Node) -> Claim:
        """A count compared with what no row gives."""
        fails = _fails_of_none(_COMPARED.get(node["type"], ""), _constant(node["right"]))
        return self.counts_none(node["left"]) if fails else False

    def counts_none(self, count: Node) -> Claim:
        """When a count is 0."""
        if count["class"] != "FUNCTION" or count["function_name"] not in ("count", "count_star"):
            return False
        return _any([self.rowless, self._passed(count), *map(self.null, _arguments(count)[:1])])

    def _listed(self, node: Node, how: str) -> Claim:
        first, *others = node["children"]
        values = [_constant(each) for each in others]
        if first["class"] == "FUNCTION" and first["function_name"] == "lower" and how == "IN":
            (first,), how = _arguments(first), "LOWER IN"
        return self._column(first, how, values) if first["class"] == "COLUMN_REF" and None not in values else False


def _fails_of_none(comparison: str, value: Any) -> bool:
    """Whether a count of 0 does not compare so with this."""
    if not isinstance(value, (int, float)):
        return False
    return {">": value >= 0, ">=": value > 0, "=": value > 0}.get(comparison, False)


def _arguments(node: Node) -> list[Node]:
    return [each.get("expression", each) for each in node.get("arguments") or node.get("children") or ()]


def _constant(node: Node) -> bool | int | float | str | None:
    """The value of a constant that compares in Python as in SQL."""
    if node["class"] != "CONSTANT":
        return None
    kind, text = node["literal"]["kind"], node["literal"]["text"]
    if kind == "BOOLEAN":
        return bool(text.lower() == "true")
    return {"INTEGER": int, "NUMERIC": float, "STRING": str}.get(kind, lambda _: None)(text)


def _any(parts: Iterable[Claim]) -> Claim:
    every = list(parts)
    return (
        True if any(part is True for part in every) else _joined("any", [part for part in every if part is not False])
    )


def _all(parts: Iterable[Claim]) -> Claim:
    every = list(parts)
    if any(part is False for part in every):
        return False
    return _joined("all", [part for part in every if part is not True]) or True


def _joined(how: str, parts: Sequence[Claim]) -> Claim:
    flat: list[Claim] = []
    for part in parts:
        inner = part[how] if isinstance(part, dict) and how in part else [part]
        flat += [each for each in inner if each not in flat]
    if how == "any":  # what follows from another part adds nothing
        for each in list(flat):
            others = [other for other in flat if other is not each]
            if any(_implies(each, other) for other in others):
                flat = others
    return False if not flat else flat[0] if len(flat) == 1 else {how: flat}


def _implies(one: Claim, other: Claim) -> bool:
    """Whether the other claim is so wherever this one is."""
    if one == other:
        return True
    if isinstance(other, dict):
        ((how, parts),) = other.items()
        return (all if how == "all" else any)(_implies(one, part) for part in parts)
    if isinstance(one, dict):
        ((how, parts),) = one.items()
        return (any if how == "all" else all)(_implies(part, other) for part in parts)
    if isinstance(other, str) or 1 in (len(other), isinstance(one, list) and len(one)):
        return False
    if isinstance(one, str):  # of a relation without rows whatever is said of its rows is so
        return bool(other[0] == one)
    return bool(one[2] == "IS NOT NULL" and other[:2] == one[:2] and other[2] != "IS NULL")


def _bare(claim: Claim, rowed: frozenset[str]) -> bool:
    """Whether a claim is so where no relation holds anything."""
    if isinstance(claim, bool):
        return claim
    if isinstance(claim, dict):
        ((how, parts),) = claim.items()
        return (all if how == "all" else any)(_bare(part, rowed) for part in parts)
    return (claim if isinstance(claim, str) else claim[0]) not in rowed


def _written(claim: Claim, relations: Iterable[str]) -> Claim:
    """As JSON; parts in the order of the relations, so that what is known at once is looked at first."""
    order = {name: place for place, name in enumerate(relations)}

    def sorted_(part: Claim) -> Claim:
        if not isinstance(part, dict):
            return part
        ((how, parts),) = part.items()
        return {how: sorted(map(sorted_, parts), key=lambda each: (last(each), json.dumps(each)))}

    def last(part: Claim) -> int:
        if isinstance(part, dict):
            return max(last(each) for each in next(iter(part.values())))
        return order[part if isinstance(part, str) else part[0]]

    return None if isinstance(claim, bool) else sorted_(claim)


@functools.cache
def names_of(sql: str) -> frozenset[str]:
    """Every name that stands where a query names what it reads, those of its own WITH clauses too."""
    return frozenset(
        (f"{node['schema_name']}." if node.get("schema_name") else "") + node["table_name"]
        for node in nodes(syntax(sql))
        if node.get("type") == "BASE_TABLE"
    )


def columns_of(sql: str, columns: Mapping[str, Collection[str]]) -> list[str] | None:
    """Those of the columns of these relations that a query names; None where it may take them all, or a whole row."""
    tree = nodes(syntax(sql))
    own = {column for each in columns.values() for column in each}
    tables = [node for node in tree if node.get("type") == "BASE_TABLE"]
    rows = {name for node in tables for name in (node["table_name"], node.get("alias"))} - own
    paths = [node["column_names"] for node in tree if node.get("class") == "COLUMN_REF"]
    joins = [node for node in tree if node.get("type") == "JOIN"]
    if (
        any(node.get("class") == "STAR" for node in tree)
        or any(len(path) == 1 and path[0] in rows for path in paths)
        or any(node["ref_type"] == "NATURAL" for node in joins)
    ):
        return None
    named = {part.lower() for path in paths for part in path} | {name.lower() for node in joins for name in node["using_columns"]}  # fmt: skip
    return sorted(named & own)
