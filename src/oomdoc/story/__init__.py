"""The first screen as data: what ran out, why in this bundle's own numbers, who, how sure, what to change, and all of it in five lines.

Built out of a finished report and a few facts of the store (`facts`), so that every form of a report and the JSON say the same. It
weighs nothing and decides nothing. `told` gives the report with its story; without facts it says less, never something else.
"""

from __future__ import annotations

import dataclasses

from oomdoc.model import Report, Story
from oomdoc.story.brief import brief
from oomdoc.story.chain import chain
from oomdoc.story.facts import Facts
from oomdoc.story.impact import cost, who
from oomdoc.story.patches import patches
from oomdoc.story.place import change, ran_out, replay, title, when, where
from oomdoc.story.seen import Seen
from oomdoc.story.sure import keeps, steps, track_record


def told(report: Report, facts: Facts | None = None) -> Report:
    """The report with its story."""
    seen = Seen(report, facts or Facts())
    story = Story(
        title=title(seen), ran_out=ran_out(seen), where=where(seen), when=when(seen), chain=chain(seen), who=who(seen), cost=cost(seen),
        steps=steps(seen), record=track_record(seen), change=change(seen), patches=patches(seen), keeps=keeps(seen), brief=(), host=seen.facts.host, replay=replay(seen),
    )  # fmt: skip
    return dataclasses.replace(report, story=dataclasses.replace(story, brief=brief(report, story)))


__all__ = ["Facts", "told"]
