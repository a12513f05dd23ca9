"""When something was so: the columns of time that every table may have."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

QUANTITIES = (
    Quantity(
        "time",
        "metric",
        "t",
        "moment",
        strong="time, @time, time utc, start time, arrival time, sample time, scrape time, event time, first seen, time iso, time ms, query time, collected time, report time, log time, capture time, captured at, started at, logged at, received at, requested at, observed time, unix time, sample ts, ts utc, time local, time iso 8601",
        weak="start, begin, arrived, arrival, sent, submitted, t, at, when, epoch, unix, clock, created, day, date time, start ts, recorded at, sampled at, observed at, collected at",
        exact="timestamp, ts, time, datetime, date, @timestamp, created_at, start_time, lastTimestamp, firstTimestamp, eventTime, unix_time, unixtime, epoch_s, epoch_ms, time_utc, utc",
        low=6.3e8,
        high=7.3e9,
    ),
    Quantity(
        "elapsed",
        "metric",
        "+elapsed",
        "number",
        weak="minute, minutes, hour, hours, elapsed min, elapsed hours, elapsed minute, elapsed hour, t s, t sec, t min, t h, t minutes, time s, time min, time h, since start, since start s, rel s, rel min, second, seconds, sec, uptime s, uptime min, uptime h",
        high=1e9,
    ),
)
