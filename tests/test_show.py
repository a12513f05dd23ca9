"""The lines behind a reference: exact, streamed, capped, and helpful when the place does not exist."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pytest

from oomdoc import cli
from oomdoc.assemble import show
from oomdoc.assemble.show import MASK, MOST_LINES, excerpts, lines, mask, parse_ref
from oomdoc.errors import BundleError, UsageError


class Member(NamedTuple):
    """The shape of `oomdoc.intake.members.Member`."""

    path: str
    stream: BinaryIO
    size: int | None


class Counting(io.BytesIO):
    """Counts what was read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        Counting.taken += len(data)
        return data


@dataclass
class Intake:
    """A bundle in memory."""

    files: dict[str, bytes] = field(default_factory=dict)

    def members(self) -> Iterator[Member]:
        for path, data in self.files.items():
            yield Member(path, Counting(data), len(data))


@pytest.fixture
def intake(monkeypatch: pytest.MonkeyPatch) -> Intake:
    held = Intake({"pods/a/vllm.log": b"".join(b"line %d\n" % number for number in range(1, 101))})
    monkeypatch.setattr("oomdoc.intake.bundle.open_bundle", lambda paths, *_, **__: held, raising=False)
    Counting.taken = 0
    return held


def test_lines_around(intake: Intake) -> None:
    excerpt = lines(["x"], "pods/a/vllm.log:50", 2)
    assert excerpt.lines == tuple((number, f"line {number}") for number in range(48, 53))
    assert (excerpt.path, excerpt.first, excerpt.last) == ("pods/a/vllm.log", 50, 50)


@pytest.mark.parametrize(
    ("ref", "context", "first", "last"), [("1", 3, 1, 4), ("100", 3, 97, 100), ("2-5", 1, 1, 6), ("99-200", 0, 99, 100)]
)
def test_edges(ref: str, context: int, first: int, last: int, intake: Intake) -> None:
    excerpt = lines(["x"], f"pods/a/vllm.log:{ref}", context)
    assert [number for number, _ in excerpt.lines] == list(range(first, last + 1))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 8, 64, 1 << 20])
@pytest.mark.parametrize(
    "data", [b"", b"a", b"a\n", b"a\nb", b"\n\n\n", b"a\r\nbb\r\n\r\nccc", b"x" * 20 + b"\n" + b"y" * 20]
)
def test_every_line_of_every_cut_is_what_a_plain_split_gives(
    data: bytes, block: int, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "BLOCK_BYTES", block)
    intake.files = {"f": data}
    plain = data.decode().split("\n")
    if plain[-1] == "":
        plain.pop()
    for number, text in enumerate(plain, 1):
        assert lines(["x"], f"f:{number}", 0).lines == ((number, text.rstrip("\r")),)
        around = lines(["x"], f"f:{number}", 1).lines
        assert [at for at, _ in around] == [at for at in (number - 1, number, number + 1) if 1 <= at <= len(plain)]
    with pytest.raises(UsageError, match=f"f has {len(plain)} line"):
        lines(["x"], f"f:{len(plain) + 1}", 3)


def test_a_path_may_leave_out_its_first_folders(intake: Intake) -> None:
    assert lines(["x"], "vllm.log:3", 0).path == "pods/a/vllm.log"
    intake.files["pods/b/vllm.log"] = b"other\n"
    with pytest.raises(
        UsageError, match=r"several sources end with 'vllm.log'. Name one in full: 'pods/a/vllm.log', 'pods/b"
    ):
        lines(["x"], "vllm.log:1", 0)
    assert lines(["x"], "b/vllm.log:1", 0).lines == ((1, "other"),)
    intake.files["vllm.log"] = b"exact\n"
    assert lines(["x"], "vllm.log:1", 0).lines == ((1, "exact"),)


def test_unknown_source_names_the_nearest(intake: Intake) -> None:
    intake.files["events.txt"] = b"e\n"
    with pytest.raises(
        UsageError, match=r"no source 'pods/a/vlm.log' in this bundle. The nearest are 'pods/a/vllm.log'"
    ):
        lines(["x"], "pods/a/vlm.log:1", 0)
    with pytest.raises(UsageError, match=r"It holds 'pods/a/vllm.log', 'events.txt'"):
        lines(["x"], "0000:1", 0)
    intake.files = {}
    with pytest.raises(BundleError, match="nothing readable in x"):
        lines(["x"], "a:1", 0)


def test_past_the_end(intake: Intake) -> None:
    with pytest.raises(UsageError, match=r"pods/a/vllm.log has 100 lines, there is no line 812"):
        lines(["x"], "vllm.log:812", 3)


@pytest.mark.parametrize("ref", ["", "vllm.log", "vllm.log:", ":3", "a:0", "a:9-3", "a:-1", "a:1.5"])
def test_what_is_no_place(ref: str) -> None:
    with pytest.raises(UsageError, match="Write path:line"):
        parse_ref(ref)


def test_a_long_line_costs_little_and_says_what_is_left_out(intake: Intake) -> None:
    intake.files = {"f": b"x" * (20 << 20) + b"\nshort\n"}
    (number, text), _ = lines(["x"], "f:1", 1).lines
    assert number == 1
    assert text.startswith("x" * 8000 + " … (")
    assert text.endswith(f"{(20 << 20) - 8000:,} more bytes)")
    assert len(lines(["x"], "f:2", 1).lines[0][1]) < 500  # context is cut sooner


def test_reading_stops_after_the_last_line_wanted(intake: Intake) -> None:
    intake.files = {"f": b"line\n" * (4 << 20)}
    lines(["x"], "f:10", 3)
    assert Counting.taken <= show.BLOCK_BYTES


def test_the_command_marks_the_line_and_makes_controls_visible(
    intake: Intake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    intake.files = {"a.log": b"one\n\x1b[31mtwo\x1b[0m\x07\ttab\r\nth\xffree\n"}
    assert cli.run(["show", "x", "a.log:2", "-C", "1"]) == 0
    assert capsys.readouterr().out == "a.log\n  1  one\n> 2  two␇    tab\n  3  th�ree\n"
    assert cli.run(["show", "x", "a.log:2", "-C", "0", "--color", "always"]) == 0
    assert "\x1b[1mtwo" in capsys.readouterr().out
    assert cli.run(["show", "x", "b.log:2"]) == 2
    assert capsys.readouterr().err.startswith("oomdoc: no source 'b.log' in this bundle. The nearest are 'a.log'")


def test_a_real_file(tmp_path: Path) -> None:
    bundle: Any = pytest.importorskip("oomdoc.intake.bundle")
    if not hasattr(bundle, "open_bundle"):
        pytest.skip("the intake is not written yet")
    (tmp_path / "vllm.log").write_text("one\ntwo\nthree\n")
    assert lines([tmp_path / "vllm.log"], "vllm.log:2", 0).lines == ((2, "two"),)
    assert lines([tmp_path], "vllm.log:2", 0).lines == ((2, "two"),)


# --- lines that travel with a report


@pytest.mark.parametrize("order", [("all.log", "all.log[1]"), ("all.log[1]", "all.log")])
def test_a_file_goes_before_a_part_of_another(order: tuple[str, str], intake: Intake) -> None:
    texts = {"all.log": b"of all\n", "all.log[1]": b"of the file\n"}
    intake.files = {name: texts[name] for name in order}
    assert lines(["x"], "all.log[1]:1").lines == ((1, "of the file"),)
    assert lines(["x"], "all.log[llm-2]:1").lines == ((1, "of all"),)
    told = excerpts(["x"], ["all.log[1]:1", "all.log[llm-2]:1", "all.log:1"])
    assert {ref: found.lines for ref, found in told.items()} == {
        "all.log[1]:1": ((1, "of the file"),),
        "all.log[llm-2]:1": ((1, "of all"),),
        "all.log:1": ((1, "of all"),),
    }


def test_many_references_in_one_pass(intake: Intake) -> None:
    intake.files["b.log"] = b"only\n"
    refs = [
        "pods/a/vllm.log:50",
        "pods/a/vllm.log:52",
        "pods/a/vllm.log:3-4",
        "b.log:1",
        "pods/a/vllm.log:900",
        "gone.log:1",
        "b.log",
    ]
    found = excerpts(["x"], refs, 1)
    assert {ref: [line for line, _ in entry.lines] for ref, entry in found.items()} == {
        "pods/a/vllm.log:50": [49, 50, 51], "pods/a/vllm.log:52": [51, 52, 53], "pods/a/vllm.log:3-4": [2, 3, 4, 5], "b.log:1": [1],
    }  # fmt: skip
    assert found["pods/a/vllm.log:52"].lines[1] == (52, "line 52")


def test_excerpts_agree_with_single_references(intake: Intake) -> None:
    refs = [f"pods/a/vllm.log:{line}" for line in (1, 2, 7, 40, 41, 99, 100)]
    found = excerpts(["x"], refs, 3)
    assert {ref: entry.lines for ref, entry in found.items()} == {ref: lines(["x"], ref, 3).lines for ref in refs}


def test_a_long_reference_is_cut(intake: Intake) -> None:
    (entry,) = excerpts(["x"], ["pods/a/vllm.log:10-90"], 2).values()
    assert (entry.first, entry.last) == (10, 90)
    assert len(entry.lines) == MOST_LINES + 2


def test_nothing_cited_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oomdoc.intake.bundle.open_bundle", lambda *_, **__: pytest.fail("opened"))
    assert excerpts(["x"], ["a whole file.txt"]) == {}


def test_secrets_do_not_travel(intake: Intake) -> None:
    intake.files["run.sh"] = b"vllm serve m --api-key s3cr3t-value --max-model-len 8192\n"
    (entry,) = excerpts(["x"], ["run.sh:1"]).values()
    assert entry.lines == ((1, f"vllm serve m --api-key {MASK} --max-model-len 8192"),)


@pytest.mark.parametrize(
    "text",
    [
        "--api-key=abcd1234", "HF_TOKEN=abcdefgh", "'hf_token': 'hf_ABCDEFGHIJKLMN'", "Authorization: Bearer eyJhbGci.eyJz.c2ln", "password: hunter22",
        "using sk-proj-0123456789abcdef now", "AWS AKIAIOSFODNN7EXAMPLE", "client_secret = 'abcdef'",
    ],
)  # fmt: skip
def test_what_is_masked(text: str) -> None:
    assert MASK in mask(text)
    assert not any(part in mask(text) for part in ("abcd", "ABCDEF", "eyJ", "hunter22", "01234", "IOSFO"))


@pytest.mark.parametrize(
    "text",
    [
        "Avg prompt throughput: 12.0 tokens/s", "max_tokens=16, prompt_tokens: 4096", "first_token=0.31 s", "eos_token=None", "time per output token: 21.5",
        "token generation is slow", "tokenizer='Qwen/Qwen3'", "api_key=None",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text
