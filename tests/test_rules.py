"""The rule files: their own tests, the set as a whole against the catalogue, and what a broken file says and spoils."""

from __future__ import annotations

import json
import re
import shutil
import string
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grids import WHOLE
from oomdoc.diagnose import Options, analyze
from oomdoc.errors import RuleError
from oomdoc.evidence import database
from oomdoc.evidence.store import Store
from oomdoc.judge import rule_tests
from oomdoc.judge.rules import CATEGORIES, Rule, load_rules, read_rule, rules_folder, rules_version
from oomdoc.judge.weigh import answer, diagnose, weigh
from oomdoc.solve.guard import spelled
from together import Together, queries

RULES, FAULTS = load_rules()
BY_ID = {rule.id: rule for rule in RULES}
ONE_IN = 16
"""Of so many tests of rules one is asked alone as well."""

CATALOGUE: Mapping[str, tuple[str, frozenset[str]]] = MappingProxyType(
    # cause: (category, its sub-reasons); ids are a public contract (docs/method.md)
    {
        "weights-exceed-gpu": ("weights", frozenset({"unquantised-load", "wide-dtype"})),
        "kv-pool-below-max-model-len": ("kv-cache", frozenset({"cold-compile", "co-start-race"})),
        "kv-demand-exceeds-pool": ("kv-cache", frozenset()),
        "prefix-cache-thrash": ("kv-cache", frozenset()),
        "memory-utilization-edge": ("parameters", frozenset({"cold-compile", "pinned-kv-bytes"})),
        "memory-utilization-too-low": ("parameters", frozenset()),
        "prefill-activation-spike": (
            "parameters",
            frozenset({"pinned-kv-bytes", "prompt-logprobs", "long-prefill", "multimodal-encoder"}),
        ),
        "max-num-seqs-too-high": ("parameters", frozenset()),
        "cuda-graph-overhead": ("parameters", frozenset()),
        "feature-overhead": ("parameters", frozenset()),
        "tp-undersharded": ("parallelism", frozenset()),
        "tp-overhead": ("parallelism", frozenset({"mla-replicated", "kv-heads-replicated"})),
        "rank-imbalance": ("parallelism", frozenset()),
        "gpu-shared": (
            "scheduling",
            frozenset({"co-start-race", "release-race", "zombie-worker", "duplicate-engine"}),
        ),
        "mig-slice-too-small": ("scheduling", frozenset()),
        "probe-restart-loop": ("scheduling", frozenset()),
        "autoscaling-blind": ("scheduling", frozenset()),
        "allocator-fragmentation": ("allocator", frozenset()),
        "memory-leak": ("allocator", frozenset()),
        "host-memory-exhausted": ("host", frozenset()),
        "shm-exhausted": ("host", frozenset()),
        "not-memory": (
            "none",
            frozenset({"driver-or-hardware", "bad-argument", "missing-file", "network-or-nccl", "client"}),
        ),
        "healthy": ("none", frozenset()),
    }
)

RIVALS: Mapping[str, str] = MappingProxyType(
    # cause: the cause it is most often confused with, which one of its near misses must show
    {
        "weights-exceed-gpu": "kv-pool-below-max-model-len",
        "kv-pool-below-max-model-len": "weights-exceed-gpu",
        "kv-demand-exceeds-pool": "not-memory",
        "prefix-cache-thrash": "healthy",
        "memory-utilization-edge": "prefill-activation-spike",
        "memory-utilization-too-low": "weights-exceed-gpu",
        "prefill-activation-spike": "memory-utilization-edge",
        "max-num-seqs-too-high": "cuda-graph-overhead",
        "cuda-graph-overhead": "memory-utilization-edge",
        "feature-overhead": "memory-utilization-edge",
        "tp-undersharded": "weights-exceed-gpu",
        "tp-overhead": "kv-pool-below-max-model-len",
        "rank-imbalance": "gpu-shared",
        "gpu-shared": "memory-utilization-edge",
        "mig-slice-too-small": "weights-exceed-gpu",
        "probe-restart-loop": "host-memory-exhausted",
        "autoscaling-blind": "kv-demand-exceeds-pool",
        "allocator-fragmentation": "memory-utilization-edge",
        "memory-leak": "plateau",
        "host-memory-exhausted": "probe-restart-loop",
        "shm-exhausted": "hang",
        "not-memory": "host-memory-exhausted",
        "healthy": "kv-demand-exceeds-pool",
    }
)

ENGINE_FLAGS = frozenset(
    # vLLM's engine arguments that advice may set (EngineArgs of the releases 0.1.7 to 0.33.0)
    {
        "block_size", "cpu_offload_gb", "cudagraph_capture_sizes", "data_parallel_size", "decode_context_parallel_size",
        "download_dir", "dtype", "enable_chunked_prefill", "enable_expert_parallel", "enable_prefix_caching", "enforce_eager",
        "gpu_memory_utilization", "kv_cache_dtype", "kv_cache_memory_bytes", "kv_offloading_size", "limit_mm_per_prompt", "max_logprobs",
        "mm_processor_cache_gb", "mm_processor_kwargs", "max_lora_rank", "max_loras", "max_model_len", "max_num_batched_tokens", "max_num_seqs",
        "num_gpu_blocks_override", "pipeline_parallel_size", "quantization", "swap_space", "tensor_parallel_size",
        "VLLM_CPU_KVCACHE_SPACE",  # the environment variable that sizes the pool of the CPU backend
    }
)  # fmt: skip
OTHER_FLAGS = frozenset({"shm-size", "ipc", "query-compute-apps", "format"})  # docker, nvidia-smi
FIXED_TEXTS = frozenset({("kv_cache_dtype", "fp8"), ("dtype", "auto")})  # flags that take words, and the words

_WANTED = frozenset({"holds", "fails", "unknown", "probability"})


# ---- the tests that rule files carry


@pytest.fixture(scope="module")
def used() -> Iterator[Store]:
    """One store for all cases: each empties it first."""
    with Store() as opened:
        yield opened


def _name(rule: Rule, test: Mapping[str, Any]) -> str:
    return f"{rule.id}: {test['name']}"


@pytest.mark.long
def test_rule_file_tests(used: Store) -> None:
    """All tests of all rules at once (`together`); one that fails so is asked again by itself, for a fault is one of the machine.

    In one part: each part would plan every view once more.
    """
    tests = [(rule, test) for rule in RULES for test in rule.tests]
    desk = Together(tests, ONE_IN)
    faults = {}
    for number, (rule, test) in enumerate(tests):
        chosen = any(desk.has_choice(number, sql) for sql in queries(rule))
        if chosen or rule_tests.faults_of(rule, test, partial(desk.ask, number)):
            faults[_name(rule, test)] = rule_tests.run_one(rule, test, used)
    assert not {name: fault for name, fault in faults.items() if fault}
    for number, told in desk.alone.items():  # whatever a test expects: asked together a rule says what it says alone
        ask = partial(desk.ask, number)
        assert diagnose(weigh(tests[number][0], ask), ask) == told, _name(*tests[number])


@pytest.mark.skipif(not WHOLE, reason="`make whole` asks each alone; together they are asked above")
@pytest.mark.parametrize("rule", RULES if WHOLE else RULES[:1], ids=lambda rule: rule.id)
def test_a_rule_file_test_alone(rule: Rule, used: Store) -> None:
    faults = {test["name"]: rule_tests.run_one(rule, test, used) for test in rule.tests}
    assert not {name: fault for name, fault in faults.items() if fault}


def test_a_store_that_was_emptied_knows_nothing_of_before(used: Store) -> None:
    """Whatever was asked of it before: all it holds is what a new one holds."""

    def contents(held: Store) -> dict[str, Any]:
        held.finish()
        held.focus(None)
        names = held.rows_of("SELECT table_schema AS s, table_name AS t FROM information_schema.tables ORDER BY ALL")
        return {f"{row['s']}.{row['t']}": held.rows_of(f'FROM {row["s"]}."{row["t"]}"') for row in names}

    for rule in RULES[:3]:
        rule_tests.run_one(rule, rule.tests[0], used)
    used.empty()
    used.derived.plainly = True
    with Store() as fresh:
        fresh.derived.plainly = True
        assert contents(used) == contents(fresh)
    used.derived.plainly = False


def test_run_reports_each_case_with_what_is_wrong() -> None:
    rule = BY_ID["shm-exhausted"]
    right = rule.tests[-1]
    wrong = {
        "name": "all of it wrong",
        "given": {},
        "expect": {
            "holds": ["no-word-of-it"], "probability": [0.9, 1.0], "reason": "client", "action": {"id": "more-shm"},
        },
    }  # fmt: skip
    told = rule_tests.run([_with(rule, tests=(right, wrong))])
    assert [(name, passed) for _, name, passed, _ in told] == [(right["name"], True), ("all of it wrong", False)]
    assert told[1][3] == (
        f"no-word-of-it should be true and is unknown; probability {rule.prior:.3f} is not within 0.9 to 1.0; reason None is not client; "
        "action more-shm was not given"
    )


def _with(rule: Rule, **fields: Any) -> Rule:
    import dataclasses

    return dataclasses.replace(rule, **fields)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_shows_itself_and_its_closest_rival(rule: Rule) -> None:
    names = [str(test["name"]) for test in rule.tests]
    assert len(set(names)) == len(names)
    positive, missed = [], []
    for test in rule.tests:
        expect = test["expect"]
        assert "probability" in expect and _WANTED - {"probability"} & set(expect), (
            f"{test['name']}: expects too little"
        )
        low, high = expect["probability"]
        assert 0 <= low < high <= 1
        match = re.match(r"near miss, ([\w-]+)", str(test["name"]))
        if match is None:
            positive.append(low)
            continue
        assert high <= 0.2, (
            f"{test['name']}: a near miss is a miss"
        )  # `not-memory` alone is the cause of 0.157 of all bundles
        missed.append(match[1])
    assert max(positive) >= 0.5, "no test shows the cause"
    assert RIVALS[rule.id] in missed
    assert set(missed) <= {*CATALOGUE, "plateau", "hang"}


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if any(action.changes for action in rule.actions)], ids=lambda rule: rule.id
)
def test_every_number_of_advice_is_expected_by_a_test(rule: Rule) -> None:
    expected = [test["expect"]["action"] for test in rule.tests if "action" in test["expect"]]
    for action in rule.actions:
        for flag in action.changes:
            assert any(wanted["id"] == action.id and flag in wanted for wanted in expected), (
                f"{action.id} sets {flag} untested"
            )


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.reasons], ids=lambda rule: rule.id)
def test_every_reason_is_expected_by_a_test(rule: Rule) -> None:
    assert {reason.id for reason in rule.reasons} == {
        test["expect"]["reason"] for test in rule.tests if test["expect"].get("reason")
    }


# ---- the set


def test_all_files_are_read() -> None:
    assert FAULTS == []
    assert {str(path.relative_to(rules_folder())) for path in rules_folder().glob("**/*.toml")} == {
        f"{rule.category}/{rule.id}.toml" for rule in RULES
    }


def test_catalogue_and_files_agree_both_ways() -> None:
    assert {rule.id: rule.category for rule in RULES} == {cause: category for cause, (category, _) in CATALOGUE.items()}
    assert {rule.category for rule in RULES} == set(CATEGORIES)
    told = {(rule.id, reason.id) for rule in RULES for reason in rule.reasons}
    assert told == {(cause, reason) for cause, (_, reasons) in CATALOGUE.items() for reason in reasons}


def test_priors_are_shares_of_one_set_of_cases() -> None:
    assert 0.8 <= sum(rule.prior for rule in RULES) <= 1.5  # causes are judged one by one, two can be true


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_numbers_references_and_words(rule: Rule) -> None:
    assert 0 < rule.prior < 1
    for item in rule.evidence:
        assert 0 < item.p_cause < 1 and 0 < item.p_other < 1
        # what first runs contradict weighs nothing until more are counted; nobody judges that something says nothing
        judged = item.judged or (item.p_cause, item.p_other)
        assert judged[0] != judged[1], f"{item.id} says nothing"
        assert item.p_cause != item.p_other or item.counted, f"{item.id} says nothing, and was not counted"
        assert item.says.strip()
    groups = [item.group for item in rule.evidence if item.group]
    assert all(groups.count(group) > 1 for group in groups), "a group of one groups nothing"
    assert any(item.p_cause > item.p_other for item in rule.evidence)
    assert any(item.p_cause < item.p_other for item in rule.evidence), "nothing could ever speak against it"
    for action in rule.actions:
        assert action.do and action.why and action.cost and action.verify, f"{action.id} lacks a sentence"
    assert rule.actions and rule.references
    for reference in rule.references:
        assert re.fullmatch(r"https://\S+", reference["url"])
        assert len(reference["backs"]) > 15, "a reference says what it backs"
    for text in (rule.title, rule.summary):
        assert text == text.strip() and "{" not in text
    ids = [item.id for item in (*rule.evidence, *rule.actions, *rule.reasons)]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ids)
    assert len({action.id for action in rule.actions}) == len(rule.actions)


@pytest.fixture(scope="module")
def empty() -> Iterator[Store]:
    """Tables and views without a row."""
    with Store() as held:
        held.finish()
        held.focus(None)
        yield held


def _columns(held: Store, sql: str) -> dict[str, str]:
    """Column names and types that a query gives."""
    return {row["column_name"]: row["column_type"] for row in held.rows_of(f"DESCRIBE {sql}")}


def _fields(template: str) -> set[str]:
    fields = set()
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is not None:
            assert name.isidentifier() and conversion is None and "{" not in (spec or ""), (
                f"odd placeholder in {template!r}"
            )
            fields.add(name)
    return fields


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_placeholder_is_a_column(rule: Rule, empty: Store) -> None:
    for item in rule.evidence:
        assert _fields(item.says) | _fields(item.unless) <= set(_columns(empty, item.sql)), item.id
    for reason in rule.reasons:
        assert _fields(reason.says) <= set(_columns(empty, reason.sql)), reason.id
    for action in rule.actions:
        columns = set(_columns(empty, action.sql))
        for text in (action.do, action.why, action.cost, action.verify):
            assert _fields(text) <= columns, action.id


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_queries_give_holds_and_plain_numbers(rule: Rule, empty: Store) -> None:
    for item in (*rule.evidence, *rule.reasons, *rule.actions):
        columns = _columns(empty, item.sql)
        assert columns["holds"] == "BOOLEAN", item.id
        exact = {name: kind for name, kind in columns.items() if kind.startswith("DECIMAL")}
        assert not exact, f"{item.id}: {exact} is neither printed as bytes nor carried by JSON; cast it"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_advice_sets_real_flags_to_columns_or_fixed_values(rule: Rule, empty: Store) -> None:
    for action in rule.actions:
        columns = _columns(empty, action.sql)
        for flag, value in action.changes.items():
            assert flag in ENGINE_FLAGS
            assert spelled(flag) in action.do, f"{action.id} sets {flag} and does not say so"
            if isinstance(value, str):
                assert value in columns or (flag, value) in FIXED_TEXTS, f"{action.id}: {value} is no column"
                assert columns.get(value) != "VARCHAR"
        for text in (action.do, action.why, action.cost, action.verify):
            for named in re.findall(r"`?--([a-z][a-z-]+)", text):
                assert named.replace("-", "_") in ENGINE_FLAGS or named in OTHER_FLAGS, f"{action.id} names --{named}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_empty_tables_tell_nothing(rule: Rule, empty: Store) -> None:
    for item in rule.evidence:
        assert answer(empty.ask, item.sql).holds is None, f"{item.id} answers about a log that nobody sent"
    for reason in rule.reasons:
        assert not answer(empty.ask, reason.sql).holds, reason.id


def test_rules_version_is_stable_and_follows_the_texts(tmp_path: Path) -> None:
    version = rules_version(RULES)
    assert re.fullmatch(r"[0-9a-f]{12}", version)
    assert rules_version(load_rules()[0]) == version
    shutil.copytree(rules_folder(), tmp_path / "rules")
    changed, faults = load_rules(tmp_path / "rules")
    assert faults == []
    assert [rule.id for rule in changed] == sorted(BY_ID)
    assert rules_version(changed) == version, "where the files lie does not matter"
    path = tmp_path / "rules" / "host" / "shm-exhausted.toml"
    path.write_text(re.sub(r"(?m)^prior   = .*$", "prior   = 0.5", path.read_text(encoding="utf-8")), encoding="utf-8")
    assert rules_version(load_rules(tmp_path / "rules")[0]) != version


# ---- broken files

RULE = """\
id      = "my-cause"
title   = "A title"
summary = "A summary."
prior   = 0.1

[[evidence]]
id      = "seen"
says    = "seen {n} times"
sql     = "SELECT count(*) > 0 AS holds, count(*) AS n FROM oom"
p_cause = 0.9
p_other = 0.1

[[test]]
name = "one"
given.oom          = [{ requested_bytes = 5 }]
expect.holds       = ["seen"]
expect.probability = [0.4, 0.6]
"""


def _write(folder: Path, text: str, category: str = "host", name: str = "my-cause") -> Path:
    path = folder / category / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _change(before: str, after: str) -> str:
    assert before in RULE
    return RULE.replace(before, after, 1)


BROKEN: Mapping[str, tuple[str, int, str]] = MappingProxyType(
    # what is wrong: the file, the line that is named, what is said
    {
        "not TOML": (_change('title   = "A title"', "title   = A title"), 2, "not TOML: Invalid value (at line 2, column 11). Mend the syntax"),
        "unknown key of a rule": (_change("prior   = 0.1", "prior   = 0.1\nsumary  = 'x'"), 5, "rule has no key 'sumary'. Did you mean 'summary'?"),
        "unknown key of evidence": (_change("p_other = 0.1", "p_other = 0.1\ngroupe  = 'x'"), 12, "evidence seen has no key 'groupe'. Did you mean 'group'?"),
        "unknown key of an expectation": (_change("expect.probability", "expect.propability"), 17, "expect of test 'one' has no key 'propability'. Did you mean 'probability'?"),
        "id is not the file's name": (_change('"my-cause"', '"your-cause"'), 1, 'id = "your-cause" but the file is my-cause.toml. Give both the same name'),
        "prior is a percentage": (_change("prior   = 0.1", "prior   = 12"), 4, "prior = 12 is not between 0 and 1"),
        "certainty": (_change("p_cause = 0.9", "p_cause = 1.0"), 7, "p_cause of seen = 1.0 is not between 0 and 1"),
        "a word for a probability": (_change("p_other = 0.1", "p_other = 'rare'"), 7, "p_other of seen = rare is not between 0 and 1"),
        "a title is missing": (_change('title   = "A title"\n', ""), 1, "rule my-cause lacks 'title'"),
        "a query is missing": (_change("sql     =", "# sql     ="), 7, "evidence seen lacks 'sql'"),
        "no evidence": (RULE.split("[[evidence]]")[0], 1, "a rule without evidence says nothing. Add an [[evidence]] table"),
        "one id twice": (RULE + '[[evidence]]\nid = "seen"\nsays = "s"\nsql = "SELECT true AS holds"\np_cause = 0.5\np_other = 0.2\n', 7, "evidence id seen is used twice"),
        "a test of evidence that is not there": (_change('["seen"]', '["sean"]'), 16, "test 'one' speaks of evidence 'sean' that the rule does not have. Did you mean 'seen'?"),
        "a test of a table that is not there": (_change("given.oom", "given.ooms"), 15, "test 'one' fills an unknown table 'ooms'. Did you mean 'oom'?"),
        "a test of a column that is not there": (_change("requested_bytes", "requested"), 15, "test 'one': table oom has no column 'requested'. Did you mean 'requested_bytes'?"),
        "an action that says nothing": (RULE + '[[action]]\nid = "act"\n', 18, "action act lacks 'do'"),
        "an action for no known time": (RULE + '[[action]]\nid = "act"\ndo = "x"\nwhen = "soon"\n', 21, "action 'act': when = 'soon'. Use one of now, after-load-test"),
        "a reference that backs nothing": (RULE + '[[reference]]\nurl = "https://x.example"\n', 18, "reference lacks 'backs'"),
        "a threshold without a reason": (RULE + '[[threshold]]\nname = "most"\nvalue = 3\nunit = "bundles"\nsource = "counted"\n', 18, "threshold 'most' lacks its why. A threshold has name, value, unit, why, source"),
        "a threshold that is no number": (RULE + '[[threshold]]\nname = "most"\nvalue = true\nunit = "bundles"\nwhy = "so"\nsource = "counted"\n', 20, "value of threshold most is not a number"),
        "a threshold that nobody declares": (_change("count(*) > 0", "count(*) > $pool_pined"), 7, "seen: no threshold is called 'pool_pined'. Did you mean $pool_pinned?"),
        "a test that expects nothing": (RULE + '[[test]]\nname = "two"\n', 13, "test lacks 'expect'"),
    }
)  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_says_where_and_what_to_do(what: str, tmp_path: Path) -> None:
    text, line, says = BROKEN[what]
    path = _write(tmp_path, text)
    with pytest.raises(RuleError) as told:
        read_rule(path)
    assert str(told.value) == f"{path}:{line}: {says}"


def test_a_query_gets_the_value_of_the_threshold_it_names(tmp_path: Path) -> None:
    own = '[[threshold]]\nname = "often"\nvalue = 3\nunit = "times"\nwhy = "twice is chance"\nsource = "judged"\n\n[[evidence]]'
    rule = read_rule(_write(tmp_path, _change("count(*) > 0", "count(*) >= $often").replace("[[evidence]]", own, 1)))
    assert rule.evidence[0].sql == "SELECT count(*) >= 3 AS holds, count(*) AS n FROM oom"
    assert rule.thresholds["often"].why == "twice is chance"


def test_a_wrong_folder(tmp_path: Path) -> None:
    path = _write(tmp_path, RULE, category="memory")
    with pytest.raises(RuleError) as told:
        read_rule(path)
    assert str(told.value) == f"{path}:1: folder memory is no category. Use one of {', '.join(CATEGORIES)}"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = _write(tmp_path, RULE)
    path.write_bytes(b"\xff\xfe\x00broken")
    with pytest.raises(RuleError, match=r"my-cause\.toml: cannot be read"):
        read_rule(path)


def test_the_sound_file_is_read_and_passes(tmp_path: Path) -> None:
    rule = read_rule(_write(tmp_path, RULE))
    assert (rule.id, rule.category, rule.prior) == ("my-cause", "host", 0.1)
    assert rule_tests.run([rule])[0][2]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        RuleError, match=r"there is no rule folder .*Name a folder with <category>/<cause-id>\.toml files"
    ):
        load_rules(tmp_path / "none")


def test_the_other_rules_go_on(tmp_path: Path) -> None:
    broken = _write(tmp_path, "id = [", name="broken")
    _write(tmp_path, RULE)
    _write(
        tmp_path,
        re.sub(
            r"(?m)^prior .*",
            "prior = 0.5",
            (rules_folder() / "host" / "shm-exhausted.toml").read_text(encoding="utf-8"),
        ),
        name="shm-exhausted",
    )
    rules, faults = load_rules(tmp_path)
    assert {rule.id for rule in rules} == {*BY_ID, "my-cause"}
    assert next(rule for rule in rules if rule.id == "shm-exhausted").prior == 0.5, (
        "one's own rule replaces the shipped one"
    )
    assert len(faults) == 1 and faults[0].startswith(f"{broken}:1: not TOML")


# ---- queries that fail, or try to do more than ask

HOSTILE: Mapping[str, tuple[str, str]] = MappingProxyType(
    # what it tries: the query, what the report says
    {
        "a column that is not there": ("SELECT no_such_column AS holds FROM oom", "no_such_column"),
        "a type that does not fit": ("SELECT 'not a number'::INT > 0 AS holds", "Conversion Error"),
        "broken SQL": ("SELEKT true AS holds", "syntax error"),
        "two statements": ("SELECT true AS holds; DROP TABLE oom", "exactly one SELECT is allowed"),
        "no statement": ("-- nothing", "exactly one SELECT is allowed"),
        "a deletion": ("DELETE FROM oom", "exactly one SELECT is allowed"),
        "a setting": ("SET enable_external_access = true", "exactly one SELECT is allowed"),
        "a copy to a file": ("COPY (SELECT 1) TO 'HERE/leak.csv'", "exactly one SELECT is allowed"),
        "a database": ("ATTACH 'HERE/leak.duckdb'", "exactly one SELECT is allowed"),
        "an extension": ("INSTALL httpfs", "exactly one SELECT is allowed"),
        "a file as text": ("SELECT count(*) > 0 AS holds FROM read_text('/etc/passwd')", "may not call read_text"),
        "a file as a table": ("SELECT count(*) > 0 AS holds FROM '/etc/passwd'", "passwd"),
        "a file as bytes": ("SELECT count(*) > 0 AS holds FROM read_blob('/etc/hosts')", "may not call read_blob"),
        "a listing": ("SELECT count(*) > 0 AS holds FROM glob('/etc/*')", "may not call glob"),
        "a variable of the program": ("SELECT count(*) > 0 AS holds FROM rules", "rules"),
    }
)  # fmt: skip


def _hostile_rule(sql: str) -> str:
    return _change("SELECT count(*) > 0 AS holds, count(*) AS n FROM oom", sql)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A short server log that ends in an allocator message."""
    path = tmp_path / "bundle" / "vllm.log"
    path.parent.mkdir()
    path.write_text(
        "INFO 11-20 20:14:01 [api_server.py:10] vLLM API server version 0.10.2\n"
        "INFO 11-20 20:14:05 [gpu_model_runner.py:20] Starting to load model /models/x-70B-Instruct...\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 160.00 MiB. GPU 0 has a total capacity of 79.25 GiB of which "
        "100.00 MiB is free. Process 7 has 79.10 GiB memory in use. Of the allocated memory 78.10 GiB is allocated by PyTorch, and "
        "1.00 MiB is reserved by PyTorch but unallocated.\n",
        encoding="utf-8",
    )
    return path.parent


def _report(bundle: Path, rules: Path) -> dict[str, Any]:
    with analyze(bundle, Options(rules=rules)) as analysis:
        return analysis.report.to_dict()


def test_hostile_queries_are_unknown_and_warned_of_and_the_others_go_on(log: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    for number, (sql, _) in enumerate(HOSTILE.values()):
        _write(
            rules,
            _hostile_rule(sql.replace("HERE", str(tmp_path))).replace("my-cause", f"hostile-{number}"),
            name=f"hostile-{number}",
        )
    plain = _report(log, tmp_path / "bundle")  # a folder without rules adds none
    told = _report(log, rules)
    by_cause = {diagnosis["cause"]: diagnosis for diagnosis in told["diagnoses"]}
    for number, (what, (_, says)) in enumerate(HOSTILE.items()):
        assert by_cause[f"hostile-{number}"]["unknown"] == ["seen"], what
        assert by_cause[f"hostile-{number}"]["probability"] == pytest.approx(0.1), what
        where = f"{rules / 'host' / f'hostile-{number}.toml'}:7 seen: the query failed and counts as unknown: "
        assert any(warning.startswith(where) and says in warning for warning in told["warnings"]), (
            what,
            told["warnings"],
        )
    assert len([warning for warning in told["warnings"] if "counts as unknown" in warning]) == len(HOSTILE)
    assert not list(tmp_path.glob("leak*"))
    ours = [diagnosis for diagnosis in told["diagnoses"] if not diagnosis["cause"].startswith("hostile")]
    # a rival more takes its share, and no more
    assert all(more["probability"] <= less["probability"] for more, less in zip(ours, plain["diagnoses"], strict=True))
    assert [{**diagnosis, "rank": 0, "probability": 0} for diagnosis in ours] == [
        {**diagnosis, "rank": 0, "probability": 0} for diagnosis in plain["diagnoses"]
    ]
    assert ours[0]["cause"] == "weights-exceed-gpu"
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize("what", ["a column that is not there", "two statements", "a file as text"])
def test_rules_test_tells_of_a_query_that_fails(what: str, tmp_path: Path) -> None:
    rule = read_rule(_write(tmp_path, _hostile_rule(HOSTILE[what][0])))
    ((_, name, passed, detail),) = rule_tests.run([rule])
    assert (name, passed) == ("one", False)
    assert detail.startswith("a query failed: ") and HOSTILE[what][1] in detail


RUNAWAY = "SELECT sum(a.range * b.range % 7) > 0 AS holds FROM range(10000000) a, range(10000000) b"


def test_a_runaway_join_is_interrupted(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _short(monkeypatch, 0.3)
    _write(tmp_path / "rules", _hostile_rule(RUNAWAY))
    began = time.process_time()  # of CPU: another program's work is not this one's
    told = _report(log, tmp_path / "rules")
    assert time.process_time() - began < 60
    assert next(diagnosis for diagnosis in told["diagnoses"] if diagnosis["cause"] == "my-cause")["unknown"] == ["seen"]
    assert [warning for warning in told["warnings"] if "my-cause.toml:7 seen: " in warning and "Interrupted" in warning]
    assert told["diagnoses"][0]["cause"] == "weights-exceed-gpu", "what is asked afterwards is not interrupted"


def _short(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the watchdog bark after `seconds` where a query may take the usual time."""
    begin = database.Watchdog.begin

    def soon(watchdog: Any, allowed: float) -> None:
        begin(watchdog, seconds if allowed == database.QUERY_SECONDS else allowed)

    monkeypatch.setattr(database.Watchdog, "begin", soon)


def test_a_broken_file_is_a_warning_of_the_report(log: Path, tmp_path: Path) -> None:
    path = _write(tmp_path / "rules", _change("prior   = 0.1", "prior   = 3"))
    told = _report(log, tmp_path / "rules")
    assert f"rule left out: {path}:4: prior = 3 is not between 0 and 1" in told["warnings"]
    assert told["diagnoses"][0]["cause"] == "weights-exceed-gpu"


# ---- any file whatever


@settings(max_examples=60, deadline=None)
@given(line=st.integers(0, len(RULE.splitlines()) - 1), text=st.text(max_size=40))
def test_any_line_may_be_garbage(line: int, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = RULE.splitlines()
    lines[line] = text
    path = tmp_path_factory.getbasetemp() / "garbage" / "host" / "my-cause.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    try:
        read_rule(path)
    except RuleError as told:
        assert str(told).startswith(str(path))


WRONG_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "one table where a list is due": _change("[[evidence]]", "[evidence]"),
        "a word where tables are due": RULE.split("[[evidence]]")[0] + 'evidence = "x"\n',
        "a number for a query": _change('"SELECT count(*) > 0 AS holds, count(*) AS n FROM oom"', "3"),
        "a number for a sentence": _change('"seen {n} times"', "3"),
        "a list for a group": _change("p_other = 0.1", "p_other = 0.1\ngroup   = [1]"),
        "a list of changes": RULE + '[[action]]\nid = "act"\ndo = "d"\nchanges = ["max_num_seqs"]\n',
        "a word for given rows": _change("given.oom          = [{ requested_bytes = 5 }]", 'given = "x"'),
        "a probability that is no interval": _change("[0.4, 0.6]", "0.5"),
        "an expected action without its id": _change(
            "expect.holds       =", "expect.action = { seqs = 3 }\nexpect.holds       ="
        ),
        "a placeholder that is not closed": _change("{n} times", "{n times"),
        "a placeholder that looks inside": _change("{n} times", "{n.real} times"),
    }
)


@pytest.mark.parametrize("what", WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_refused(what: str, tmp_path: Path) -> None:
    path = _write(tmp_path, WRONG_TYPES[what])
    with pytest.raises(RuleError) as told:
        read_rule(path)
    assert str(told.value).startswith(f"{path}:")
