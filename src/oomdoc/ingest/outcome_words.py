"""What became of a try, in one cell or at the end of a sentence: it works, or it fails."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.words import word_set
from oomdoc.regexes import regex

GOOD = regex(
    r"(?i)(?<!not )(?<!never )\b(?:works?|worked|working|starts?(?: fine| up)?$|starts\b|started(?: fine)?|comes? up|came up|serves|served|fine|ok(?:ay)?|pass(?:es|ed)?|"
    r"funcionou|funciona|arrancou|arranc[ao]|gestartet|läuft|fonctionne|démarre|d[ée]marr[ée]|działa|parte|funziona|"
    r"succe\w+|fix(?:es|ed) it|cures?|solve[sd]|(?:no|without) (?:oom|crash|error|leak)\w*|loads\b|loaded|runs?(?: fine| ok| well| through)?\b(?! out)|ran\b(?! out)|stable|healthy|good|boots?|stays)\b|✓|✔|✅"
)
BAD = regex(
    r"(?i)\b(?:(?:cuda |hip )?oom(?:s|ed|ing|'d|[-_ ]?kill\w*)?\b|out of (?:device |gpu |host )?(?:memory|ram|vram)|out of shared memory|crash\w*|die[sd]?|dead|fail\w*|error\w*|killed|hang\w*|hung|abort\w*|segfault\w*|sigkill|sigbus|evicted|refused|fault\w*|"
    r"gone\b|gave up|reject(?:s|ed)?|turned away|recusad[oa]|falh(?:a|ou|ado)\w*|rechazad[oa]|fall[aoó]\w*\b|verweigert|abgelehnt|abgebrochen|abgestürzt|fehlgeschlagen|refus[ée]e?\b|échou\w*|échec|rifiutat[oa]|fallit[oa]|odrzucon\w+|odmow\w+|awari\w+|"
    r"does not (?:start|work|help|fit)|doesn'?t|not (?:start|work|ok|enough)\w*|never (?:starts|comes up)|stuck|timeout\w*|timed out|wedged|no (?:change|difference)|same error|restart(?:s|ed|ing)?|no room|no (?:available |free |more )?(?:memory|blocks|space)\b(?! (?:growth|increase|pressure|problem|issue)))|\bOutOfMemory\w*|\b[A-Z]\w+Error\b|✗|✘|❌"
)
_FIRST = regex(r"[,;(]|\s[-–—]\s")
_TRUE = word_set("true yes y 1 serving up ready running alive answers answered sim sí si ja oui tak")
_FALSE = frozenset(
    ("false", "no", "n", "0", "down", "exited", "gone", "no answer", "unanswered", "não", "nao", "nein", "non", "nie")
)
"""What a whole cell says; in a sentence `serving` is a time and no outcome."""


def outcome_of(text: str, boolean: bool = False) -> bool | None:
    """Whether a text says that it worked; None where it says neither. `boolean`: yes and no are answers too.

    >>> outcome_of("ok"), outcome_of("HIP out of memory in lm-eval"), outcome_of("no OOM"), outcome_of("71.2")
    (True, False, True, None)
    >>> outcome_of("sim, 41 s", True), outcome_of("recusado ao fim de 38 s", True), outcome_of("yes", False)
    (True, False, None)
    >>> outcome_of("No available memory for the cache blocks"), outcome_of("torch.OutOfMemoryError in profile run"), outcome_of("no memory growth in 8 h")
    (False, False, None)
    """
    plain = text.strip()
    first = _FIRST.split(plain.lower(), maxsplit=1)[0]  # `yes, 41 s`
    if boolean and first in _TRUE | _FALSE:
        return first in _TRUE
    good, bad = GOOD.search(plain), BAD.search(plain)
    if good and (bad is None or good.start() <= bad.start()):
        return True
    return False if bad else None
