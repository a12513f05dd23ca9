"""How often a verdict was right on bundles that nobody here had seen before: the figures, and what is said of them.

Each round is a set of public reports, written again and labelled before any run, and run once (docs/method.md). The only place of
these figures: the page of the method and every report read them from here.
"""

from __future__ import annotations

from dataclasses import dataclass

SURE_FROM = 0.9
"""Where the two ranges meet whose verdicts are counted apart: more of them would count too few each."""


@dataclass(frozen=True)
class Round:
    """One first run: how many bundles, how many a fair expert would judge so, the label itself, the label in the first three.

    `sure` counts the verdicts stated at `SURE_FROM` or more, `sure_right` those of them that were fair.
    """

    name: str
    state: str
    bundles: int
    fair: int
    label: int
    first_three: int
    brier: float
    ece: float
    sure: int
    sure_right: int


ROUNDS = (
    Round("r1", "with lives, outcomes and owners of events", 42, 29, 23, 34, 0.096, 0.101, 26, 24),
    Round("r2", "and with documents known as such", 42, 31, 28, 35, 0.112, 0.099, 24, 23),
    Round("r3", "and with tables known by a vocabulary", 42, 34, 25, 36, 0.135, 0.156, 32, 28),
    Round("r4", "and with thin excerpts no longer called bare of a server", 42, 32, 23, 38, 0.125, 0.146, 25, 23),
    Round(
        "r5",
        "after the misses of r1 to r4 were mended, people's own tables aside",
        42,
        34,
        26,
        37,
        0.107,
        0.131,
        28,
        26,
    ),
    Round("r6", "and with those tables, trends and experiments", 42, 28, 19, 35, 0.120, 0.135, 24, 22),
    Round(
        "r7", "and with scalers as quantities and sources of other programs apart", 42, 30, 23, 34, 0.095, 0.106, 28, 26
    ),
    Round("r8", "and with other engines' words, after the misses of r7", 42, 26, 21, 31, 0.192, 0.200, 17, 15),
    Round("r9", "four fifths about vLLM itself, after the misses of r8", 42, 29, 20, 35, 0.099, 0.064, 20, 20),
    Round("r10", "the same, after half of the misses of r9 were corrected", 42, 31, 21, 37, 0.120, 0.099, 23, 21),
    Round(
        "r11",
        "after passages, users' complaints and what 48 invented twins had shown, shares of causes counted anew",
        45,
        36,
        28,
        39,
        0.130,
        0.113,
        27,
        26,
    ),
    Round("r12", "and seven of the nine misses of r11 corrected", 42, 32, 23, 38, 0.113, 0.083, 25, 24),
    Round(
        "r13",
        "after features against the budget, shares over time and growth behind a start",
        42,
        34,
        27,
        40,
        0.124,
        0.122,
        24,
        23,
    ),
    Round("r14", "and what 96 more invented twins and r13 had shown", 44, 35, 24, 39, 0.126, 0.105, 28, 27),
    Round("r15", "the same state as r14", 46, 38, 29, 40, 0.089, 0.095, 28, 28),
    Round(
        "r16",
        "after the misses of r14 and r15 were corrected; one bundle ended in an error",
        42,
        29,
        25,
        34,
        0.142,
        0.156,
        26,
        22,
    ),
    Round(
        "r17",
        "after what r16 had left unread was read, before the twins of that time",
        42,
        31,
        23,
        36,
        0.073,
        0.111,
        23,
        22,
    ),
    Round(
        "r18",
        "after the misses of r17 and of 96 more invented twins were corrected",
        42,
        25,
        20,
        36,
        0.224,
        0.215,
        20,
        18,
    ),
    Round("r19", "plain reports, the state after r18", 42, 37, 31, 41, 0.089, 0.086, 32, 31),
    Round("r20", "plain reports, after the five misses of r19 were corrected", 42, 42, 38, 42, 0.033, 0.084, 33, 33),
    Round(
        "r21",
        "plain reports, after the newer views lost guards that no row reached",
        42,
        41,
        36,
        42,
        0.028,
        0.084,
        32,
        32,
    ),
    Round("r22", "plain reports, the state after the one miss of r21", 42, 40, 37, 41, 0.022, 0.056, 31, 31),
    Round("r23", "plain reports, after the two misses of r22 were corrected", 42, 35, 33, 40, 0.128, 0.103, 33, 29),
    Round("r24", "plain reports, after the seven misses of r23 were corrected", 42, 38, 35, 40, 0.056, 0.061, 33, 32),
    Round("r25", "plain reports, after two misses of r23 and r24 were corrected", 42, 38, 35, 40, 0.080, 0.053, 34, 32),
    Round("r26", "plain reports, after the four misses of r25 were corrected", 42, 32, 31, 39, 0.125, 0.132, 30, 28),
    Round("r27", "plain reports, after the ten misses of r26 were corrected", 42, 35, 35, 39, 0.110, 0.088, 31, 28),
    Round(
        "r28",
        "plain reports, after five of the seven misses of r27 were corrected",
        42,
        36,
        33,
        41,
        0.106,
        0.098,
        35,
        32,
    ),
    Round("r29", "plain reports, after the six misses of r28 were corrected", 42, 35, 32, 39, 0.115, 0.096, 32, 30),
    Round(
        "r30",
        "plain reports, after six of the seven misses of r29 were corrected",
        42,
        34,
        32,
        40,
        0.110,
        0.111,
        33,
        31,
    ),
    Round(
        "r32", "half a round, after three misses of r29 and r30 were worked on", 21, 18, 18, 20, 0.092, 0.127, 16, 14
    ),
    Round("r33", "half a round, after the misses of r32 were corrected", 21, 17, 17, 19, 0.138, 0.143, 16, 14),
    Round("p1, caches", "the same; reports about prefix caches alone", 19, 10, 9, 14, 0.403, 0.461, 10, 6),
    Round(
        "p1, fears",
        "after three misses of r33 and p1 were worked on; reports of servers that somebody feared for, one more about a cache",
        21,
        17,
        14,
        21,
        0.160,
        0.151,
        12,
        10,
    ),
    Round(
        "r34",
        "plain reports, after load tests were read and held against the pool",
        42,
        35,
        32,
        40,
        0.087,
        0.121,
        31,
        31,
    ),
    Round(
        "r35",
        "plain reports, after six of the seven misses of r34 were corrected",
        42,
        36,
        31,
        40,
        0.102,
        0.117,
        34,
        31,
    ),
    Round(
        "r36", "plain reports, after five of the six misses of r35 were corrected", 42, 39, 35, 41, 0.063, 0.074, 32, 31
    ),
    Round(
        "r37", "plain reports, after one of the three misses of r36 was corrected", 42, 39, 38, 41, 0.097, 0.076, 30, 29
    ),
    Round("r38", "plain reports; of the misses of r37 none was corrected", 42, 35, 33, 41, 0.140, 0.127, 33, 30),
    Round("r39", "plain reports, after the seven misses of r38 were corrected", 42, 37, 30, 40, 0.092, 0.084, 37, 34),
    Round("r40", "plain reports, after the five misses of r39 were corrected", 42, 28, 25, 35, 0.193, 0.207, 30, 25),
    Round(
        "r41",
        "plain reports, after thirteen of the fourteen misses of r40 were corrected",
        42,
        38,
        36,
        41,
        0.075,
        0.075,
        32,
        30,
    ),
    Round("r42", "plain reports, after the four misses of r41 were corrected", 42, 36, 32, 41, 0.110, 0.112, 31, 30),
    Round(
        "r43", "plain reports, after five of the six misses of r42 were corrected", 42, 36, 31, 39, 0.113, 0.123, 27, 25
    ),
    Round(
        "p2",
        "after the six misses of r43 were corrected; reports about caches and queues alone",
        20,
        12,
        10,
        15,
        0.308,
        0.307,
        11,
        7,
    ),
    Round(
        "r44",
        "plain reports, after the misses of r43 and eight of 14 missed twins were corrected",
        42,
        32,
        27,
        39,
        0.163,
        0.169,
        30,
        26,
    ),
    Round(
        "r45",
        "plain reports, after the misses of p2 and eight of the ten of r44 were corrected",
        42,
        30,
        30,
        39,
        0.180,
        0.188,
        32,
        27,
    ),
    Round(
        "r46",
        "plain reports, after seven of the twelve misses of r45 were corrected and evidence was counted on first runs",
        42,
        34,
        30,
        37,
        0.111,
        0.164,
        26,
        26,
    ),
    Round(
        "r47", "the same, after eleven of the twelve misses of r46 were corrected", 42, 39, 36, 41, 0.030, 0.073, 32, 32
    ),
    Round("r48", "the same, after the three misses of r47 were corrected", 42, 38, 38, 42, 0.077, 0.074, 32, 31),
    Round("r49", "the same, after the four misses of r48 were corrected", 42, 36, 35, 39, 0.073, 0.059, 34, 32),
    Round("r50", "the same, after five of the six misses of r49 were corrected", 42, 38, 31, 38, 0.105, 0.114, 36, 33),
    Round("r51", "the same, after two of the four misses of r50 were corrected", 42, 37, 33, 40, 0.058, 0.068, 36, 34),
    Round(
        "r52",
        "the same, after all of w6 and seven of w7 were corrected, shares held to 0.95",
        42,
        38,
        37,
        40,
        0.098,
        0.068,
        32,
        30,
    ),
    Round(
        "r53",
        "the same, after three misses of r52 and seven of w8 were corrected",
        42,
        37,
        35,
        39,
        0.063,
        0.022,
        30,
        29,
    ),
    Round("r54", "the same, after the five misses of r53 were corrected", 42, 36, 31, 38, 0.097, 0.074, 30, 28),
    Round(
        "r55",
        "the same, after five of the six misses of r54 and all eight of w9 were corrected",
        42,
        39,
        36,
        40,
        0.068,
        0.056,
        37,
        34,
    ),
    Round("r56", "the state of r55", 42, 34, 32, 39, 0.131, 0.124, 32, 30),
    Round(
        "r57",
        "the same, after three misses of r55 and r56 and ten of w10 were corrected",
        42,
        38,
        36,
        41,
        0.052,
        0.048,
        34,
        33,
    ),
    Round("r58", "the state of r57", 42, 36, 30, 40, 0.060, 0.030, 31, 30),
    Round("r59", "the same, with the words of the bundle heard", 42, 40, 40, 42, 0.069, 0.046, 39, 37),
    Round("r60", "the state of r59", 42, 38, 36, 42, 0.052, 0.036, 40, 38),
    Round("r61", "the same; a person's words apart from a program's", 42, 39, 38, 42, 0.068, 0.046, 37, 35),
    Round("r62", "the state of r61", 42, 39, 37, 42, 0.057, 0.034, 35, 34),
    Round(
        "r63",
        "the same; words learnt again on all before it, those of others not heard",
        42,
        35,
        32,
        39,
        0.143,
        0.142,
        38,
        33,
    ),
    Round("r64", "the state of r63", 42, 39, 35, 42, 0.036, 0.032, 37, 36),
    Round(
        "r65",
        "the same, after four of the ten misses of r63 and r64 and all ten of w13 were corrected",
        42,
        37,
        33,
        41,
        0.084,
        0.068,
        37,
        35,
    ),
    Round("r66", "the same, words learnt again on all before it", 42, 37, 35, 41, 0.076, 0.077, 35, 34),
    Round(
        "r67",
        "the same, after two of the five misses of r66 and five of the seven of w15 were corrected",
        42,
        34,
        33,
        40,
        0.161,
        0.177,
        34,
        30,
    ),
    Round(
        "r68",
        "the same, after four of the eight misses of r67 and three of the eight of w16 were corrected",
        42,
        37,
        33,
        39,
        0.099,
        0.100,
        34,
        32,
    ),
    Round("r69", "the same, after the misses of w16, w17 and r67 were worked on", 42, 34, 32, 38, 0.082, 0.081, 30, 29),
    Round(
        "r70",
        "a third of a round, after seven of the eight misses of r69 and all eleven of w18 were corrected, shares held to 0.89",
        14,
        12,
        12,
        13,
        0.105,
        0.110,
        10,
        10,
    ),
    Round(
        "r71",
        "with fitted weights, after eight misses of w19 and w20 and three of w21 were corrected",
        42,
        37,
        31,
        41,
        0.102,
        0.126,
        31,
        28,
    ),
)


def like(probability: float) -> tuple[int, int]:
    """Of the verdicts in the range of this probability: how many were right, and how many there were.

    >>> like(0.99), like(0.6)
    ((2000, 2140), (440, 799))
    """
    sure, right = sum(each.sure for each in ROUNDS), sum(each.sure_right for each in ROUNDS)
    if probability >= SURE_FROM:
        return right, sure
    return sum(each.fair for each in ROUNDS) - right, sum(each.bundles for each in ROUNDS) - sure
