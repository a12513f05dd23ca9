"""The words of a source: which of a known vocabulary stand in its beginning and its end.

What a bundle talks about is one weak witness of what happened (`judge.wording`). Only the first and the last `PART_BYTES` of a
source are looked at: a start and an end say what there is to say, and the middle of a long log repeats itself.
"""

from __future__ import annotations

import string

from oomdoc.regexes import regex

PART_BYTES = 16 << 10
"""Of the beginning and of the end of a source: with 4 KiB first runs are ranked nearly as well, with 30 KiB no better."""

# letters in lower case; a hyphen joins as an underscore does (`--max-model-len` and `max_model_len` are one word); digits are kept apart, as 0
_STANDS_FOR = {
    **{letter: letter.lower() for letter in string.ascii_letters}, **dict.fromkeys(string.digits, "0"), **dict.fromkeys("_-", "_"),
}  # fmt: skip
_LETTERS = bytes(ord(_STANDS_FOR.get(chr(byte), " ")) for byte in range(256))
# What users ask is none of the server's words: a line's rest behind `prompt: '`, `"Prompt": "`, `"content": "`. Each begins with a literal, by
# which the search skips: ten times as fast as one expression for all.
_ASKED = tuple(regex(rb"%s['\"]?\s{0,2}[:=]\s{0,2}[\['\"{].*" % key) for key in (b"rompt", b"ontent", b"essages"))


def words_in(data: bytes) -> set[str]:
    """The words of a text, in lower case: runs of letters and of what joins them.

    What has a digit is no word: most are names, numbers and pieces of ids. A request's text is left out.

    >>> sorted(words_in(b"--max-model-len 8192: exit code 137, OOMKilled, pod chat-7f9c-x"))
    ['code', 'exit', 'max_model_len', 'oomkilled', 'pod']
    >>> sorted(words_in(b"Received request a: prompt: 'CUDA out of memory', params: SamplingParams"))
    ['received', 'request']
    """
    for asked in _ASKED:
        data = asked.sub(b" ", data)
    found = {word.strip(b"_") for word in set(data.translate(_LETTERS).split())}
    return {word.decode("ascii") for word in found if len(word) > 1 and b"0" not in word}


def beginning_of(data: bytes) -> set[str]:
    """The words of a source's beginning, of its first chunk."""
    return words_in(data[:PART_BYTES])


def end_of(data: bytes) -> set[str]:
    """The words of a source's end, of its last bytes."""
    return words_in(data[-PART_BYTES:])
