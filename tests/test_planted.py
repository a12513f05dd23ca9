"""Planted values: none that SECURITY.md promises survives, and hardly any other; what is no text is left out; what is known stays."""

from __future__ import annotations

import io
import os
import pickle
import re
import sqlite3
import struct
from collections import Counter
from pathlib import Path

import pytest

import planted
from oomdoc import cli
from oomdoc.intake.bundle import open_bundle
from oomdoc.redact.forms import form_of
from oomdoc.redact.refuse import ENTROPY_BITS, HEX_ENTROPY_BITS
from oomdoc.redact.run import Redaction, common_words, redact, redact_stream
from oomdoc.redact.text import Redactor
from oomdoc.redact.vocabulary import is_known

ROOT = Path(__file__).parents[1]
EVERY = 1 if os.environ.get("OOMDOC_PLANTED") == "all" else 61
"""Of some 110,000 cells each 61st, a prime so that kinds, notations and envelopes mix; `OOMDOC_PLANTED=all` takes three minutes."""
MOST_NOT_PROMISED = 0.02  # of the values in notations that nothing promises
SECRET = "Umbra-77-Kestrel"
PROMPT = "the heron counts nineteen lanterns"


def redacted(data: bytes) -> bytes:
    stream = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    return b"".join(redact_stream(stream, Redactor(planted.Pseudonyms(planted.KEY), common_words()), lambda why: None))


def test_the_grid_is_as_large_as_it_says() -> None:
    assert len(planted.KINDS) >= 60 and len(planted.NOTATIONS) >= 100 and len(planted.ENVELOPES) >= 11
    taken = list(planted.cells(61))
    assert {cell.notation.name for cell in planted.cells(7)} == {notation.name for notation in planted.NOTATIONS}
    assert {cell.kind for cell in taken} == set(planted.KINDS)
    assert {cell.envelope for cell in taken} == set(planted.ENVELOPES)
    assert all(any(form in planted.written(cell).decode("latin-1") for form in planted.fragments(cell.value)) for cell in taken if cell.envelope == "none" and cell.value.isascii())  # fmt: skip


def test_what_is_promised_does_not_survive_and_what_is_not_hardly_does() -> None:
    """Values of known words, which only structure gives away, in half of their cells: refusing alone would hide a broken field."""
    asked: Counter[bool] = Counter()
    left: dict[bool, list[planted.Cell]] = {True: [], False: []}
    for cell in (*planted.cells(EVERY), *planted.cells(2, kinds=planted.COMMON)):
        asked[cell.notation.promised] += 1
        if planted.survives(cell):
            left[cell.notation.promised].append(cell)
    told = ", ".join(
        f"{'promised' if promised else 'not promised'}: {len(left[promised])} of {asked[promised]} survive"
        for promised in (True, False)
    )
    print(told)
    assert [(cell.kind, cell.notation.name, cell.envelope, cell.value) for cell in left[True]] == [], told
    assert len(left[False]) <= MOST_NOT_PROMISED * asked[False], left[False][:10]
    assert asked[True] > 1000 and asked[False] > 100


def test_the_promise_in_the_security_policy_is_what_is_tested() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert planted.promise() in text, "paste what `python tests/planted.py --promise` prints"


def test_a_leak_would_be_seen() -> None:
    """The search finds what is there: the same cells, not redacted."""
    for cell in planted.cells(997):
        text = planted.written(cell).decode(planted._ENCODINGS.get(cell.envelope, "utf-8"), "replace")
        assert any(form.lower() in text.lower() for form in planted.fragments(cell.value)), cell


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: " + "[[[[" * 50_000 + "\nc: 1\n",
        "a: " + "{a: " * 60_000 + "\nb: 1\nc: 1\n",
        "a: &a [1]\n" + "b: *a\n" * 20_000,
        "".join(" " * depth + "b:\n" for depth in range(800)),
    ],
)
def test_a_document_without_end_ends(text: str) -> None:
    assert redacted(text.encode()).count(b"\n") == text.count("\n")


# ---- binaries and encodings


def _sqlite(folder: Path) -> bytes:
    with sqlite3.connect(folder / "x.db") as database:
        database.execute("CREATE TABLE request (prompt TEXT)")
        database.execute("INSERT INTO request VALUES (?)", (PROMPT,))
    return (folder / "x.db").read_bytes()


BINARIES = {
    "journal": b"LPKSHHRH" + bytes(200) + PROMPT.encode(),
    "core": b"\x7fELF\x02\x01\x01" + bytes(9) + PROMPT.encode() + b"\0" + b"HF_TOKEN=" + SECRET.encode() + b"\0",
    "parquet": b"PAR1" + PROMPT.encode() + b"\0" * 3 + b"PAR1",
    "safetensors": struct.pack("<Q", 60) + b'{"__metadata__": {"prompt": "' + PROMPT.encode() + b'"}}' + bytes(8),
    "numpy": b"\x93NUMPY\x01\0" + PROMPT.encode(),
    "pickle": pickle.dumps({"prompt": PROMPT, "key": SECRET}, protocol=4),
    "avro": b"Obj\x01" + PROMPT.encode(),
    "redis": b"REDIS0009\xfa\x09" + PROMPT.encode(),
    "capture": b"\xd4\xc3\xb2\xa1\x02\0\x04\0" + PROMPT.encode(),
    "debian": b"!<arch>\n" + PROMPT.encode(),
    "records": b"".join(struct.pack("<I", len(PROMPT)) + PROMPT.encode() + b"\0\x01\x02" for _ in range(9)),
}


def test_binaries_are_left_out_and_listed(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    files = {**BINARIES, "sqlite": _sqlite(tmp_path)}
    for name, data in files.items():
        (bundle / f"{name}.bin").write_bytes(data)
    (bundle / "vllm.log").write_text("INFO 11-20 20:04:40 [api_server.py:1289] vLLM API server version 0.11.0\n")
    (bundle / "environ").write_bytes(f"HF_TOKEN={SECRET}\0PORT=80\0".encode())
    told = redact(bundle, tmp_path / "copy")
    assert len([path for path, why in told.left_out if "left out by the redaction" in why]) == len(files)
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "environ",
        "oomdoc-redaction.json",
        "vllm.log",
    ]
    assert SECRET.encode() not in (tmp_path / "copy" / "environ").read_bytes()


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_text_of_any_encoding_is_redacted_and_keeps_it(encoding: str) -> None:
    text = f"time,prompt,api_key\n1795205101,{PROMPT},{SECRET}\nINFO 11-20 20:04:40 [x.py:1] vLLM API server version 0.11.0\n"
    data = text.encode(encoding)
    assert form_of(data).refused is None
    made = redacted(data)
    assert made[:2] == data[:2]
    told = made.decode(encoding)
    assert SECRET not in told and "heron" not in told and "vLLM API server version 0.11.0" in told


def test_bytes_of_a_code_page_are_letters() -> None:
    for encoding in ("gb18030", "shift-jis", "cp1251", "euc-kr"):
        text = {
            "gb18030": "我的病历在哪里",
            "shift-jis": "私の病歴はどこ",
            "cp1251": "где моя история болезни",
            "euc-kr": "내기록은어디에",
        }[encoding]
        assert text.encode(encoding) not in redacted(b"INFO x " + text.encode(encoding) + b" y\n")


# ---- the copy itself


def test_members_of_a_copy_are_their_owners_only(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "b" / "deep" / "vllm.log").write_text("INFO x\n")
    before = os.umask(0)
    try:
        redact(tmp_path / "b", tmp_path / "copy", Redaction())
        redact(tmp_path / "b" / "deep" / "vllm.log", tmp_path / "one.log", Redaction())
    finally:
        os.umask(before)
    modes = {
        path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777 for path in (tmp_path / "copy").rglob("*")
    }
    assert set(modes.values()) == {0o600, 0o700} and modes["copy/deep"] == 0o700
    assert (tmp_path / "one.log").stat().st_mode & 0o777 == 0o600


def test_names_in_paths_go(tmp_path: Path) -> None:
    paths = (
        "must-gather/namespaces/umbraglass-chat/pods/umbraglass-vllm-0/current.log",
        "nodes/brack-n17/dmesg.txt",
        "brack-n17.ferrous.internal.log",
    )
    for path in paths:
        (tmp_path / "b" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "b" / path).write_text("INFO x\n")
    redact(tmp_path / "b", tmp_path / "copy")
    made = " ".join(member.path for member in open_bundle([tmp_path / "copy"]).members())
    assert not re.search("umbraglass|brack|ferrous", made)
    assert "must-gather/namespaces/tenant-" in made and "/current.log" in made and "nodes/host-" in made


def test_token_ids_are_text_by_another_name() -> None:
    for line in (
        "prompt token ids: [128000, 791, 39960, 12].",
        "input_ids=tensor([[128000, 791, 39960, 12]], device='cuda:0')",
        '{"output_token_ids": [5, 77771]}',
    ):
        assert not re.search(r"128000|39960|77771", redacted(line.encode()).decode())


def test_a_redacted_report_of_any_form_holds_nothing_planted(tmp_path: Path) -> None:
    lines = max(
        (ROOT / "sample_logs" / "kv-pool-default-length").rglob("*.log"), key=lambda path: path.stat().st_size
    ).read_text()
    bundle = tmp_path / "brack-n17-umbraglass"
    bundle.mkdir()
    (bundle / "brack-n17.log").write_text(
        lines.replace("model='", f"api_key=['one', '{SECRET}'], model='/home/zofiaquill/models/")
        + f"ValueError: {SECRET} of umbraglass: {PROMPT}\n"
    )
    forms = [tmp_path / name for name in ("r.txt", "r.json", "r.md", "r.html")]
    assert (
        cli.run(["analyze", str(bundle), "--redact", "-q", *(word for form in forms for word in ("-o", str(form)))])
        == 0
    )
    for form in forms:
        told = form.read_text(encoding="utf-8")
        assert len(told) > 500
        assert not re.search(f"{SECRET}|umbraglass|brack-n17|zofiaquill|heron", told), form.name


# ---- what is known


def test_the_limits_of_entropy_are_those_of_the_scanner() -> None:
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString, HexHighEntropyString

    assert Base64HighEntropyString().entropy_limit == ENTROPY_BITS
    assert HexHighEntropyString().entropy_limit == HEX_ENTROPY_BITS


def test_an_engines_own_words_stay() -> None:
    """Of the words of our samples, which are invented but for their names, nearly all pass: a copy is still there to be read."""
    words: Counter[bool] = Counter()
    for path in sorted((ROOT / "sample_logs").rglob("*.log")):
        words.update(
            is_known(word) for word in re.findall(r"[A-Za-z]{3,}", path.read_text(encoding="utf-8", errors="replace"))
        )
    assert words[True] > 100_000 and words[False] < 0.02 * words.total()
