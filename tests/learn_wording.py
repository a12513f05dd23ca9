"""`make wording`: learns which words go with which cause from the labelled rounds, and writes `src/oomdoc/judge/wording.json`.

A word is taken where twelve bundles of ten rounds have it (a name of one writer is no word of the trade), and no more than six in ten (`the`).
Of those the `WORDS` are kept whose presence differs most between causes (chi square). The regression is scikit-learn's.

With `--left-out` nothing is written: every round of first runs is ranked by rules counted, and words learnt, on the other rounds, and the
figures are printed with the words and without them (docs/method.md).
"""

from __future__ import annotations

import argparse
import calendar
import json
import math
import random
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import noise_beside
import shapes
from oomdoc import ingest
from oomdoc.evidence.words import PART_BYTES, beginning_of, end_of
from oomdoc.intake.bundle import open_bundle
from oomdoc.intake.scan import Chunk, chunks
from oomdoc.intake.unwrap import unwrap
from oomdoc.judge.fitted import Fitted
from oomdoc.judge.rules import load_rules
from oomdoc.judge.wording import SAID, Model, heard
from oomdoc.sweep import counting

ROOT = Path(__file__).parents[1]
ROUNDS = ROOT / "tests" / "rounds"
OWN = (ROOT / "tests" / "cases", ROOT / "sample_logs")
PLACE = ROOT / "src" / "oomdoc" / "judge" / "wording.json"

WORDS = 4000
"""As many: learnt from 5,049 bundles, 6,000 rank what they had not heard no better, 2,600 rank four bundles of 322 fewer right."""
FEWEST_BUNDLES, FEWEST_ROUNDS, MOST_SHARE = 12, 10, 0.6
NAMES = frozenset(
    name.lower()
    for names in (
        calendar.day_name,
        calendar.day_abbr,
        calendar.month_name,
        calendar.month_abbr,
        ("helpdesk", "facebook", "root", "ubuntu", "home"),
        ("internal", "private", "local", "lan", "corp", "intra", "com", "org", "net"),
    )
    for name in names
) - {"may"}
"""When, for whom and in whose network it was: no matter of what happened, and what a redacted copy has other words for."""
LONGEST = 35
"""Letters of a word; what is longer is a key or a path."""
LOOSE = 1 / 100
"""The inverse of the regression's penalty, `C`: the more bundles there are to learn from, the less a penalty is needed (1/180 and 1/80 are within 0.01)."""
FOLDS = 6


@dataclass(frozen=True)
class Told:
    """A labelled bundle and the words in it, and those of innocent evidence that may stand beside it."""

    name: str
    round: str
    cause: str
    words: Set[str]
    beside: Set[str] = frozenset()


def words_of(folder: Path) -> set[str]:
    """The words of a bundle, as an analysis hears them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    intake = open_bundle([path for path in files if path.name != "case.toml" and not path.name.startswith("truth.")])
    found: set[str] = set()
    for member in intake.members():
        found |= _of(member.path, unwrap(chunks(member.stream), lambda why: None))
    return found


def _of(path: str, pieces: Iterable[Chunk]) -> set[str]:
    kind, words, end = "", set(), b""
    for chunk in pieces:
        if not kind:
            kind = ingest.recognise(ingest.make_head(path, chunk.data))[1]
            words = beginning_of(chunk.data)
        end = (end + chunk.data)[-PART_BYTES:]
    return heard(kind, words | end_of(end))


def words_beside(folder: Path) -> set[str]:
    """The words of innocent evidence that is laid beside a bundle: what stands beside any cause says nothing of one."""
    files = shapes.files_of(folder)
    noisy, _ = noise_beside.with_noise(files, f"{folder.name}/words")
    found: set[str] = set()
    for path, data in noisy.items():
        if files.get(path) != data:
            found |= _of(path, [Chunk(data, 1, True)])
    return found


def read(folders: Sequence[Path]) -> list[Told]:
    """Every labelled bundle below the folders."""
    told = []
    for folder in counting.find_cases(folders):
        cause = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))["cause"]
        told.append(Told(folder.name, folder.parent.name, cause, words_of(folder), words_beside(folder)))
    return told


def vocabulary(told: Sequence[Told]) -> dict[str, float]:
    """The words that are kept, each with how rare it is."""
    having: Counter[str] = Counter()
    rounds: dict[str, set[str]] = defaultdict(set)
    by_cause: dict[str, Counter[str]] = defaultdict(Counter)
    causes = Counter(each.cause for each in told)
    for each in told:
        for word in each.words:
            if len(word) <= LONGEST and word.removeprefix(SAID) not in NAMES:
                having[word] += 1
                rounds[word].add(each.round)
                by_cause[each.cause][word] += 1
    usable = [
        word
        for word, times in having.items()
        if times >= FEWEST_BUNDLES and len(rounds[word]) >= FEWEST_ROUNDS and times <= MOST_SHARE * len(told)
    ]

    def differs(word: str) -> float:
        share = having[word] / len(told)
        return sum((by_cause[cause][word] - of * share) ** 2 / (of * share) for cause, of in causes.items())

    usable.sort(key=lambda word: (-differs(word), word))
    return {word: round(math.log((1 + len(told)) / (1 + having[word])) + 1, 3) for word in sorted(usable[:WORDS])}


def learn(told: Sequence[Told]) -> Model:
    """The model of these bundles, each once as it is and once with innocent evidence beside it."""
    rare, bundles = vocabulary(told), len(told)
    told = [*told, *(replace(each, words=each.words | each.beside) for each in told if each.beside)]
    column = {word: at for at, word in enumerate(rare)}
    ends, columns, values = [0], [], []
    for each in told:
        known = sorted(word for word in each.words if word in column)
        columns += [column[word] for word in known]
        values += [rare[word] for word in known]
        ends.append(len(columns))
    made = LogisticRegression(C=LOOSE, max_iter=300).fit(
        csr_matrix((values, columns, ends), shape=(len(told), len(rare))), [each.cause for each in told]
    )
    causes = [str(cause) for cause in made.classes_]
    counted = Counter(each.cause for each in told)
    usual = [round(math.log(counted[cause] / len(told)), 3) for cause in causes]
    weights = np.rint(made.coef_ * np.array(list(rare.values())) * 100).astype(int)
    bias = [round(float(each), 3) for each in made.intercept_]
    return Model(
        bundles,
        causes,
        bias,
        usual,
        {word: [int(each) for each in weights[:, at]] for word, at in column.items()},
    )


def write(model: Model, path: Path) -> None:
    """One word a line, so that a change can be read."""
    head = {"bundles": model.bundles, "causes": model.causes, "bias": model.bias, "usual": model.usual}
    lines = [json.dumps([word, *weights], separators=(",", ":")) for word, weights in model.words.items()]
    text = json.dumps(head)[:-1] + ', "words": [\n' + ",\n".join(lines) + "\n]}\n"
    path.write_text(text, encoding="utf-8")


def left_out(told: Sequence[Told], rounds: Path) -> None:
    """Print what first runs, left out by rounds, are worth with the words and without."""
    rules = load_rules()[0]
    cases = counting.recorded([rounds], rules)
    words = {(each.round, each.name): each.words for each in told}
    names = sorted({case.round for case in cases})
    random.Random(0).shuffle(names)
    said: dict[tuple[str, str], Mapping[str, float]] = {}
    for at in range(FOLDS):
        fold = set(names[at::FOLDS])
        model = learn([each for each in told if each.round not in fold])
        for case in cases:
            if case.round in fold:
                heard = model.weigh(words[case.round, case.name])
                said[case.round, case.name] = {cause: each.weight for cause, each in heard.items()}
    with_words = [replace(case, wording=said[case.round, case.name]) for case in cases]
    without = [replace(case, wording={}) for case in cases]
    groups: dict[str, list[int]] = defaultdict(list)
    for at, case in enumerate(cases):
        groups["all"].append(at)
        groups["whole nodes" if case.round.startswith("w") else "reports"].append(at)
    for title, these in (("with words", with_words), ("without", without)):
        ranked = counting.left_out(these, rules)
        for group, places in groups.items():
            some = [these[at] for at in places]
            tell(f"{title}, {group}", some, rules, [ranked[at] for at in places])


def tell(title: str, cases: Sequence[counting.Case], rules: Any, rankings: Any, fitted: Fitted | None = None) -> None:
    """Print what rankings are worth, in a line."""
    made = counting.figures(cases, rules, rankings, fitted)
    sure = [
        ranked[0][1] in (case.cause, *case.also)
        for case, ranked in zip(cases, rankings, strict=True)
        if counting.chances(ranked, rules, fitted)[0] >= 0.9
    ]
    print(
        f"{title}: {made.bundles} bundles, fair {made.fair:.3f}, label {made.strict:.3f}, first three {made.top3:.3f}, "
        f"Brier {made.brier:.3f}, ECE {made.ece:.3f}, right at 0.9 or more {sum(sure)} of {len(sure)}"
    )


def main() -> None:
    """Learn and write, or print what it is worth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROUNDS, *OWN], help="folders of labelled bundles")
    parser.add_argument("--left-out", action="store_true", help="print figures instead of writing")
    asked = parser.parse_args()
    told = read(asked.folders)
    print(f"{len(told)} labelled bundles", file=sys.stderr)
    if asked.left_out:
        left_out(told, asked.folders[0])
    else:
        write(learn(told), PLACE)


if __name__ == "__main__":
    main()
