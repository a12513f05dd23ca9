"""The words of a source: which of a known vocabulary stand in its beginning and its end.

What a bundle talks about is one weak witness of what happened (`judge.wording`). Only the first and the last `PART_BYTES` of a
source are looked at: a start and an end say what there is to say, and the middle of a long log repeats itself.
"""

from __future__ import annotations

from oomdoc.regexes import regex

PART_BYTES = 16 << 10
"""Of the beginning and of the end of a source: with 4 KiB first runs are ranked nearly as well, with 30 KiB no better."""

# letters in lower case; a hyphen joins as an underscore does (`--max-model-len` and `max_model_len` are one word); digits stay, as 0; all else
# parts
_LETTERS = bytes(
    byte + 32
    if 65 <= byte <= 90
    else byte
    if 97 <= byte <= 122 or byte == 95
    else 95
    if byte == 45
    else 48
    if 48 <= byte <= 57
    else 32
    for byte in range(256)
)


# what users ask is none of the server's words: a line's rest behind `prompt: '`, `"prompt": "`, `"content": "`
_ASKED = regex(rb"(?i)(?:prompt|content|messages)['\"]?\s{0,2}[:=]\s{0,2}[\['\"{].*")


def words_in(data: bytes) -> set[str]:
    """The words of a text, in lower case: runs of letters and of what joins them.

    What has a digit is no word: most are names, numbers and pieces of ids. A request's text is left out.

    >>> sorted(words_in(b"--max-model-len 8192: exit code 137, OOMKilled, pod chat-7f9c-x"))
    ['code', 'exit', 'max_model_len', 'oomkilled', 'pod']
    >>> sorted(words_in(b"Received request a: prompt: 'CUDA out of memory', params: SamplingParams"))
    ['received', 'request']
    """
    found = {word.strip(b"_") for word in set(_ASKED.sub(b" ", data).translate(_LETTERS).split())}
    return {word.decode("ascii") for word in found if len(word) > 1 and b"0" not in word}


def beginning_of(data: bytes) -> set[str]:
    """The words of a source's beginning, of its first chunk."""
    return words_in(data[:PART_BYTES])


def end_of(data: bytes) -> set[str]:
    """The words of a source's end, of its last bytes."""
    return words_in(data[-PART_BYTES:])
