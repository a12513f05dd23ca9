"""What people say of an incident: acknowledged, gone, or known again; kept in the store's own record, by fingerprint."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from oomdoc.errors import UsageError
from oomdoc.sweep import places
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.locks import locked
from oomdoc.sweep.places import Access
from oomdoc.sweep.trends import questions

STATES = ("acknowledged", "gone", "known")
"""`known` takes the word back: it is what an incident is that was seen before and of which nobody said anything."""


def mark(store: str, fingerprint: str, state: str, note: str, access: Access, night: str | None = None) -> str:
    """Keep a state for the fingerprint that begins so; the whole fingerprint. UsageError where none or several do."""
    if state not in STATES:
        raise UsageError(f"the state {state} is unknown", f"Choose {', '.join(STATES)}")
    place = places.place(store, access)
    with locked(place) as still:
        dataset = Dataset(place, still=still).load()
        if dataset.manifest.empty:
            raise UsageError(f"{store} holds no night yet", "Sweep first: oomdoc sweep PATH --store DIR")
        with questions(dataset) as ask:
            known = [
                str(row["fingerprint"]) for row in ask.rows_of("SELECT DISTINCT fingerprint FROM incident ORDER BY 1")
            ]
        found = [each for each in known if each.startswith(fingerprint)]
        if len(found) != 1:
            what = "no incident has" if not found else f"{len(found)} incidents have"
            raise UsageError(f"{what} a fingerprint that begins with {fingerprint}", "The morning report shows them")
        when = night or dt.datetime.now(dt.UTC).date().isoformat()
        others = tuple(entry for entry in dataset.manifest.states if entry["fingerprint"] != found[0])
        said = () if state == "known" else ({"fingerprint": found[0], "state": state, "note": note, "night": when},)
        dataset.mend(replace(dataset.manifest, states=(*others, *said)))
    return found[0]
