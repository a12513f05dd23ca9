"""Nightly sweeps: every bundle of a fleet through the same diagnosis, into one dataset that answers what is new.

`run.sweep` is the wiring: `sources` (what is there) -> `plan` (what has to be read) -> `engines` (one bundle after the
other, in processes of their own, or on Ray) -> `dataset` (Parquet, committed as a whole) -> `trends` (the morning report).
What one bundle gives is made by `work`, which knows nothing of the fleet. pyarrow comes with the extra `oomdoc[sweep]`.
"""
