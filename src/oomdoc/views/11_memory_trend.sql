-- says: whether memory climbs and does not come back; one row, NULLs where no series is there
-- scope: bundle
-- series: series with at least two comparable points
-- stepped: the same state held much more memory later (ratio 1.3 and 256 MiB)
-- resource: host or gpu, of the series that grew most
-- name: its name
-- first_bytes: first comparable point
-- last_bytes: last comparable point
-- growth_bytes: last - first
-- ref: where the last point stands
-- climbing: a series of five or more points rises beyond its noise until its end, or a process in each of three or more listings
-- plateau: a series rose and then stayed, and none climbs
-- alike: series that climb, such as the ranks of one server: one fact
-- samples: points of the series that climbs most, those of a start left out
-- hours: from its first point to its last
-- variant: what distinguishes it from others of its table
-- control: a variant of the same table that does not climb
-- control_first_bytes: its first point
-- control_last_bytes: its last point
-- idle_samples: points of the climbing series with no load since the one before
-- idle_kept: over them nothing was given back
-- per_request_bytes: growth for each request done in the meantime
-- flat: the measured series stay where they are, none climbs
-- flat_name: the longest of them
-- flat_samples: its points
-- flat_bytes: what it holds
-- flat_spread_bytes: between its 5th and 95th percentile
-- flat_loaded: it is known that there was load
-- flat_ref: where its last point stands
-- asleep_kept: the part of its memory that a sleeping server kept (the largest)
-- asleep_bytes: what it kept
-- asleep_name: which server, process or release
-- asleep_control: another that gave back nearly all
-- asleep_ref: where
-- grows_said: a text states that memory grows and does not come back, and no flat series refutes it
-- said_ref: where
-- restart_cures: a text states that a restart brings it back, and no series of the host that stays flat refutes it
WITH swapped AS (
  -- pages that went out to swap are held as before: what a program holds is what is resident and what is swapped
  SELECT source, line, any_value(name) AS name, any_value(bytes) AS bytes
  FROM process_memory
  WHERE resource = 'swap' AND source IN (SELECT source FROM process_memory WHERE resource = 'swap' AND bytes > 0)
  GROUP BY ALL HAVING count(*) = 1
), raw AS (
  SELECT p.source, concat_ws(' + ', coalesce(p.name, ''), s.name) AS name, coalesce(p.resource, '') AS resource, coalesce(p.variant, '') AS variant,
    lower(regexp_extract(coalesce(p.state, ''), '[A-Za-z]+')) AS stem, p.state, p.bytes + coalesce(s.bytes, 0) AS bytes, p.t, p.elapsed_s, p.step, p.running, p.requests, p.line,
         p.source || ':' || p.line AS ref
  FROM process_memory p LEFT JOIN swapped s ON p.resource = 'host' AND s.source = p.source AND s.line = p.line
  WHERE p.bytes > 0 AND (p.resource IS NULL OR p.resource IN ('host', 'gpu'))
    -- a working set counts files that were read lately: beside what is resident it tells nothing more
    AND NOT (regexp_matches(lower(coalesce(p.name, '')), 'working.?set')
      AND p.source IN (SELECT source FROM process_memory WHERE resource = 'host' AND regexp_matches(lower(coalesce(name, '')), 'rss|anon')))
  UNION ALL
  -- of its containers, as an exporter names them: what is resident, or with the files that are not given up at once where that alone is told
  SELECT m.source, concat_ws('/', nullif(regexp_extract(m.labels, '\bpod="([^"]+)"', 1), ''), regexp_extract(m.labels, '\bcontainer="([^"]+)"', 1)), 'host', '', '', NULL,
    m.value::BIGINT, m.t, NULL, NULL, NULL, NULL, m.line, m.source || ':' || m.line
  FROM metric m
  WHERE m.name IN ('container_memory_rss', 'container_memory_working_set_bytes') AND m.t IS NOT NULL AND m.value > 0 AND m.labels LIKE '%container="%'
    AND m.labels NOT LIKE '%container=""%' AND m.labels NOT LIKE '%container="POD"%'
    AND (m.name = 'container_memory_rss' OR NOT EXISTS (FROM metric r WHERE r.name = 'container_memory_rss'))
), same AS (
  SELECT source, name, resource, variant, stem, count(*) AS n, arg_min(bytes, line) AS first_bytes, arg_max(bytes, line) AS last_bytes,
    arg_max(ref, line) AS ref
  FROM raw WHERE stem <> '' AND t IS NULL AND elapsed_s IS NULL GROUP BY ALL HAVING count(*) >= 2
), grown AS (
  SELECT count(*) AS n, bool_or(last_bytes > $state_stepped * first_bytes AND last_bytes - first_bytes > $state_stepped_bytes) AS stepped,
    nullif(arg_max(resource, last_bytes - first_bytes), '') AS resource, nullif(arg_max(name, last_bytes - first_bytes), '') AS name,
         arg_max(first_bytes, last_bytes - first_bytes) AS first_bytes, arg_max(last_bytes, last_bytes - first_bytes) AS last_bytes,
           arg_max(ref, last_bytes - first_bytes) AS ref
         FROM same
), ordered AS (
  -- what a start does (loading, profiling, capture, the moment before) is no part of a trend; states that come again are compared with themselves
  SELECT * EXCLUDE (alike), CASE WHEN t IS NULL AND elapsed_s IS NULL AND step IS NULL THEN stem ELSE '' END AS kind,
    coalesce(t, elapsed_s) AS moment
  FROM (SELECT *, count(*) OVER (PARTITION BY source, name, resource, variant, state) AS alike FROM raw)
  WHERE NOT regexp_matches(
    coalesce(state, ''), '(?i)\b(load(ing)?|boot(ing)?|start(ing|up)?|init\w*|profil\w*|captur\w*|warm\w*|before|empty|compil\w*)\b'
  )
    -- what follows a start is none of it, nor is the load of requests
    OR regexp_matches(state, '(?i)\bafter\b|\b(during|under|at|full|high|peak) load\b')
    -- a phase with so many samples is one of the traffic: a model is loaded in fewer
    OR (lower(trim(state)) = 'load' AND coalesce(t, elapsed_s) IS NOT NULL AND alike >= $device_samples)
), renewed AS (
  -- between these moments a server was started again: it says so, or a process of one name has another number
  SELECT t AS from_t, t AS to_t FROM engine_start WHERE t IS NOT NULL
  UNION ALL
  SELECT last_t, t FROM (
    SELECT t, pid, lag(t) OVER w AS last_t, lag(pid) OVER w AS last_pid, count(*) OVER (PARTITION BY source, name, t) AS alike
    FROM gpu_process
    WHERE t IS NOT NULL AND pid IS NOT NULL
    WINDOW w AS (PARTITION BY source, name ORDER BY t)
  ) WHERE pid <> last_pid AND alike = 1
), stepping AS (
  SELECT *, lag(bytes) OVER w AS bytes_before, lag(moment) OVER w AS moment_before
  FROM ordered
  WINDOW w AS (PARTITION BY source, name, resource, variant, kind ORDER BY moment, step, line)
), fallen AS (
  SELECT * EXCLUDE (bytes_before, moment_before), bytes < $new_life * bytes_before
    OR (bytes_before - bytes >= $state_stepped_bytes AND EXISTS (FROM renewed r WHERE r.from_t <= moment AND r.to_t >= moment_before)) AS fell
  FROM stepping
), lapped AS (
  -- a container that was started again begins anew: each of its lives is a series of its own, not one that gives back
  SELECT * REPLACE (
    CASE WHEN EXISTS (
      FROM container c
      WHERE (c.restarts > 0 OR c.last_reason = 'OOMKilled')
        AND (f.name = '' OR coalesce(c.pod, c.name) IS NULL OR f.name IN (c.pod, c.name))
    ) OR EXISTS (FROM renewed)
    THEN kind || '#' || lap ELSE kind END AS kind)
  FROM (
    SELECT *,
      count(CASE WHEN fell THEN 1 END) OVER (
        PARTITION BY source, name, resource, variant, kind ORDER BY moment, step, line ROWS UNBOUNDED PRECEDING
      ) AS lap
    FROM fallen
  ) f
), placed AS (
  SELECT *, ntile(60) OVER w AS bin, requests - lag(requests) OVER w AS more, lag(running) OVER w AS ran
  FROM lapped WINDOW w AS (PARTITION BY source, name, resource, variant, kind ORDER BY moment, step, line)
), load AS (
  -- requests that never fall are a counter
  SELECT *, coalesce(bool_and(more >= 0) OVER (PARTITION BY source, name, resource, variant, kind), true) AS counted,
    max(requests) OVER (PARTITION BY source, name, resource, variant, kind) AS most
  FROM placed
), filled AS (
  -- the last sample at which a device held less than half of its peak: a start, or the end of the server before; or a start that its log tells, which
  -- samples of an hour do not see
  SELECT series, max(t) AS t FROM (
    SELECT d.series, g.t FROM gpu_sample g JOIN device_series d ON d.source = g.source AND d.gpu IS NOT DISTINCT FROM g.gpu
    WHERE g.used_bytes < $filled_share * d.peak_bytes AND g.t < d.from_t + d.seconds / 2
    UNION ALL
    SELECT d.series, s.t FROM engine_start s JOIN device_series d ON s.t BETWEEN d.from_t AND d.from_t + d.seconds / 2
  ) GROUP BY series
), last_held AS (
  -- the last sample at which it held as much: what is held behind the end of a server is none of its
  SELECT d.series, max(g.t) AS t FROM gpu_sample g JOIN device_series d ON d.source = g.source AND d.gpu IS NOT DISTINCT FROM g.gpu
  WHERE g.used_bytes >= $filled_share * d.peak_bytes GROUP BY d.series
), ended AS (
  -- nor is what the next life holds after a failure in the later half of a recording
  SELECT d.series, min(i.t) AS t FROM device_series d
  JOIN (
    SELECT t FROM incident WHERE gravity >= 20
    UNION ALL
    SELECT ended_t FROM container WHERE serves IS DISTINCT FROM false AND restarts > 0
  ) i ON i.t BETWEEN d.from_t + d.seconds / 2 AND d.from_t + d.seconds
  GROUP BY d.series
), served AS (
  SELECT d.series, d.source, d.gpu, coalesce(f.t + $filled_s, d.from_t) AS from_t,
    least(e.t, x.t, d.from_t + d.seconds) - coalesce(f.t + $filled_s, d.from_t) AS seconds
  FROM device_series d
  LEFT JOIN last_held e USING (series)
  LEFT JOIN filled f USING (series)
  LEFT JOIN ended x USING (series)
  WHERE d.timed >= $device_samples AND d.series NOT IN (SELECT series FROM others_card)
), binned AS (
  SELECT source, name, resource, variant, kind, bin, median(bytes) AS y, median(moment) AS moment, max(line) AS line,
    arg_max(ref, line) AS ref, max(requests) AS requests, bool_and(counted) AS counted,
         -- no load since the sample before: of counters their rise, of gauges what ran when the interval began
         bool_and(
           CASE WHEN more IS NOT NULL THEN CASE WHEN counted THEN more = 0 ELSE requests <= $idle_requests * most END
             WHEN ran IS NOT NULL THEN ran = 0 END
         ) AS idle
  FROM load GROUP BY ALL
  UNION ALL
  -- of devices the least in each fortieth of the recording: a step's activations come and go. What fills the device at a start is none of it
  SELECT s.source, concat_ws(' ', 'GPU', s.gpu), 'gpu', '', '', p.bin, p.low, s.from_t + s.seconds * (p.bin - 1) / 39, p.line, s.source || ':' || p.line,
    NULL, true, NULL
  FROM served s
  JOIN (
    SELECT s.series, least(40, 1 + floor((g.t - s.from_t) / s.seconds * 40))::INTEGER AS bin, min(g.used_bytes) AS low, max(g.line) AS line
    FROM gpu_sample g
    JOIN served s ON s.source = g.source AND s.gpu IS NOT DISTINCT FROM g.gpu
    WHERE g.t BETWEEN s.from_t AND s.from_t + s.seconds AND g.used_bytes > 0
    GROUP BY s.series, bin) p USING (series)
), curve AS (
  SELECT *, row_number() OVER w AS i, y - lag(y) OVER w AS rise, lead(y) OVER w - 2 * y + lag(y) OVER w AS bend,
         count(*) OVER (PARTITION BY source, name, resource, variant, kind) AS n, greatest(1, n // 10) AS tenth
  FROM binned WINDOW w AS (PARTITION BY source, name, resource, variant, kind ORDER BY bin)
), worked AS (
  -- what is held behind the last load shows whether it is given back, and not whether it grows
  SELECT *,
    coalesce(max(CASE WHEN NOT coalesce(idle, false) THEN i END) OVER (PARTITION BY source, name, resource, variant, kind), n) AS till
  FROM curve
), beside AS (
  -- what another program gained on a device while it was listed: all that it holds where it came later than the list began
  SELECT device, max(CASE WHEN first_t > since THEN most ELSE most - first_bytes END) AS gain FROM (
    SELECT device, max(used_bytes) AS most, arg_min(used_bytes, t) AS first_bytes, min(t) AS first_t, any_value(since) AS since
    FROM listed_process JOIN (SELECT source, min(t) AS since FROM listed_process GROUP BY source) USING (source)
    WHERE foreigner AND t IS NOT NULL AND used_bytes > 0 GROUP BY source, device, pid)
  GROUP BY device
), shape AS (
  -- a tenth of the points at the beginning, at the end and in the middle; fewer points, or over less time, have no shape
  SELECT source, name, resource, variant, kind, any_value(n) AS n, median(y) FILTER (i <= tenth) AS first_y,
    median(y) FILTER (i > till - tenth AND i <= till) AS last_y,
         median(y) FILTER (abs(2 * i - till - 1) <= tenth) AS mid_y, max(y) FILTER (i <= till) AS high, min(y) AS low,
           max(rise) FILTER (i <= till) AS jump, median(abs(bend)) / 1.65 AS noise, median(y) AS middle,
         quantile_cont(y, 0.95) - quantile_cont(y, 0.05) AS spread,
         max(y) FILTER (2 * i > n) - min(y) FILTER (2 * i > n) AS late_spread,
           coalesce(bool_or(idle) FILTER (2 * i > n), false) AS late_idle, max(moment) - min(moment) AS seconds,
           count(*) FILTER (idle) AS idles, coalesce(sum(rise) FILTER (idle), 0) AS idle_rise,
         coalesce(sum(rise) FILTER (NOT coalesce(idle, false)), 0) AS busy_rise, bool_or(idle = false) AS loaded, arg_max(ref, i) AS ref,
           max(requests) - min(requests) AS done, bool_and(counted) AS counted
  -- of a device, and where the requests are counted, less time will do, where the growth is as steady as a clock (below)
  FROM worked
  WHERE n >= $trend_points
  GROUP BY ALL
  HAVING coalesce(max(moment) - min(moment), $trend_s) >= CASE WHEN name LIKE 'GPU%' AND n >= $device_samples THEN $steady_s
    WHEN n >= $counted_points AND bool_and(counted) AND max(requests) - min(requests) >= $counted_requests THEN $steady_s ELSE $trend_s END
), concord AS (
  -- Kendall's concordance of size with order, over the points that had load: one of noise alone lies near 0, and 2 deviations are 1 in 40
  SELECT a.source, a.name, a.resource, a.variant, a.kind, sum(CASE WHEN b.y > a.y THEN 1 WHEN b.y < a.y THEN -1 ELSE 0 END) AS s,
    count(*) AS pairs, (1 + sqrt(1 + 8 * count(*))) / 2 AS n
  FROM curve a
  JOIN curve b ON a.source = b.source AND a.name = b.name AND a.resource = b.resource AND a.variant = b.variant AND a.kind = b.kind
    AND a.i < b.i
  WHERE NOT coalesce(a.idle, false) AND NOT coalesce(b.idle, false) GROUP BY ALL
), judged AS (
  SELECT s.*, last_y - first_y AS growth,
         -- rising with the order, beyond the noise, in the second half too, in no single step, until the end
         coalesce(c.s >= $trend_concord * c.pairs AND (c.s - 1) >= $trend_deviations * sqrt(c.n * (c.n - 1) * (2 * c.n + 5) / 18) AND last_y - first_y > greatest($trend_bytes, $level_share * last_y, $trend_noise * noise)
           AND last_y - mid_y >= $trend_late * (last_y - first_y) AND jump <= $trend_jump * (last_y - first_y)
             AND last_y >= high - $trend_kept * (last_y - first_y)
           AND (
             coalesce(seconds, $trend_s) >= $trend_s OR c.s >= $steady_concord * c.pairs
               AND last_y - mid_y >= $steady_late * (last_y - first_y)
           )
           -- by an address or a uuid a list does not say which of the numbered devices it is
           AND NOT EXISTS (FROM beside o WHERE s.name LIKE 'GPU%' AND o.gain >= $gain_of_others * (last_y - first_y)
             AND (s.name = 'GPU ' || o.device OR NOT regexp_matches(coalesce(o.device, ''), '^\d+$'))), false) AS climbs,
         spread <= greatest($level_share * middle, $level_bytes) AND coalesce(seconds, $trend_s) >= $trend_s AS stays,
         coalesce(seconds, $trend_s) >= $trend_s
           AND (last_y > $settled_rise * first_y AND last_y - mid_y < $settled_late * (last_y - first_y)
             -- what falls by most of what was gained has begun anew
             AND high - last_y < $settled_late * (last_y - first_y)
           -- or it rose at first, and stays level through the second half under load
           OR s.n >= $counted_points AND NOT late_idle AND last_y - first_y > greatest($level_share * middle, $level_bytes)
             AND late_spread <= greatest($level_share * middle, $level_bytes)) AS settles
  FROM shape s LEFT JOIN concord c USING (source, name, resource, variant, kind)
), tops AS (
  SELECT count(*) AS n, count(*) FILTER (climbs) AS alike,
         arg_max(
           struct_pack(source, name, resource, variant, kind, n, first_y, last_y, ref, seconds, idles, idle_rise, busy_rise, done, counted),
           growth
         ) FILTER (climbs) AS best,
         bool_or(settles) AS settles
  FROM judged
), control AS (
  SELECT arg_min(struct_pack(variant, first_y, last_y), growth) AS c FROM judged j, (SELECT best FROM tops)
  WHERE NOT j.climbs AND j.source = best.source AND j.resource = best.resource AND j.variant <> best.variant AND j.variant <> ''
    AND best.variant <> '' AND j.growth <= $control_growth * (best.last_y - best.first_y)
), staged AS (
  -- three states or more after the start, work among them, and always the same
  SELECT source, name, resource, variant, count(*) AS n, median(bytes) AS middle, max(bytes) - min(bytes) AS spread, true AS loaded,
    arg_max(ref, line) AS ref
  FROM ordered WHERE kind <> '' GROUP BY ALL
  HAVING count(DISTINCT state) >= $level_states AND max(bytes) - min(bytes) <= greatest($level_share * median(bytes), $level_bytes)
    AND bool_or(regexp_matches(state, '(?i)\b(during|requests?|load|busy|traffic|round|hours?|day|night|run|burst|wave|test)\b'))
), level AS (
  SELECT count(*) AS n, first(struct_pack(name, resource, n, middle, spread, loaded, ref) ORDER BY n DESC, name, ref) AS f,
    bool_or(resource <> 'gpu') AS of_host
  FROM (
    SELECT name, resource, n, middle, spread, loaded, ref
    FROM judged
    WHERE stays OR settles
    UNION ALL
    SELECT name, resource, n, middle, spread, loaded, ref
    FROM staged
  )
), listing AS (
  -- the same process in several listings of one text (`ps` taken again and again), in the order of the text
  SELECT source, name, resource, bytes, line, ref, lag(bytes) OVER (PARTITION BY source, name ORDER BY line) AS before
  FROM raw WHERE t IS NULL AND elapsed_s IS NULL AND step IS NULL AND state IS NULL AND name LIKE '%(pid %'
), listed AS (
  SELECT source, name, resource,
    coalesce(bool_and(bytes > before * $listing_step) AND max(bytes) > $listing_growth * min(bytes), false)
      AND max(bytes) - min(bytes) > $state_stepped_bytes AS climbing, min(bytes) AS first_bytes, max(bytes) AS last_bytes,
    arg_max(ref, line) AS ref
  FROM listing GROUP BY source, name, resource HAVING count(*) >= $listings
), lists AS (
  SELECT count(*) AS n, bool_or(climbing) AS climbing,
    arg_max(struct_pack(name, resource, first_bytes, last_bytes, ref), last_bytes) FILTER (climbing) AS grower
  FROM listed
), doze AS (
  -- before it sleeps, and when it is awake again, a server does not sleep
  SELECT source, name, variant, bytes, ref, nullif(concat_ws(' ', nullif(name, ''), nullif(variant, '')), '') AS who,
         regexp_matches(state, '(?i)\b(a?sleep\w*|slept)\b')
           AND NOT regexp_matches(state, '(?i)\b(before|awake|wak(e|ing)|woke\w*)\b') AS sleeps,
         regexp_matches(state, '(?i)\b(awake|idle|before|serving|loaded|up|running)\b') AS works
  FROM raw WHERE resource <> 'host'
), nap AS (
  SELECT who, max(bytes) FILTER (works AND NOT sleeps) AS awake, min(bytes) FILTER (sleeps) AS asleep, asleep / awake AS kept,
    arg_min(ref, bytes) FILTER (sleeps) AS ref
  FROM doze GROUP BY source, name, variant, who HAVING awake > $awake_bytes
), naps AS (
  SELECT max(kept) AS kept, arg_max(asleep, kept) AS bytes, arg_max(coalesce(who, 'the server'), kept) AS who, arg_max(ref, kept) AS ref,
         arg_min(coalesce(who, 'another'), kept) FILTER (kept < $asleep_little) AS control
  FROM nap
), said AS (
  SELECT bool_or(topic = 'grows') AS grows, bool_or(topic = 'restart-cures') AS cures,
    min(source || ':' || line) FILTER (topic IN ('grows', 'restart-cures')) AS ref,
         bool_or(topic = 'grows' AND regexp_matches(text, '(?i)\b(rss|ram|host|cpu|pss|uss|container|pod)\b')) AS of_host
  FROM note
  WHERE topic IN ('grows', 'restart-cures')
), all_of AS (
  SELECT tops.n + lists.n > 0 OR (SELECT count(*) FROM staged) > 0 AS measured, alike > 0 OR coalesce(lists.climbing, false) AS climbing,
    NOT (alike > 0 OR coalesce(lists.climbing, false) OR coalesce(grown.stepped, false)) AND level.n > 0
      -- one that stays says nothing of one that is higher in the end, whatever the way there
      AND NOT EXISTS (
        FROM judged j
        WHERE NOT j.stays AND NOT j.settles AND coalesce(j.seconds, $trend_s) >= $trend_s
          AND j.last_y - j.first_y > greatest($trend_bytes, $level_share * j.last_y)
      ) AS flat
  FROM tops, lists, grown, level
)
SELECT grown.n + tops.n + lists.n AS series, CASE WHEN grown.n > 0 THEN coalesce(grown.stepped, false) END AS stepped,
  CASE WHEN alike > 0 THEN nullif(best.resource, '') WHEN lists.climbing THEN lists.grower.resource ELSE grown.resource END AS resource,
    CASE WHEN alike > 0 THEN nullif(best.name, '') WHEN lists.climbing THEN lists.grower.name ELSE grown.name END AS name,
  CASE WHEN alike > 0 THEN best.first_y WHEN lists.climbing THEN lists.grower.first_bytes ELSE grown.first_bytes END::BIGINT AS first_bytes,
    CASE WHEN alike > 0 THEN best.last_y WHEN lists.climbing THEN lists.grower.last_bytes ELSE grown.last_bytes END::BIGINT AS last_bytes,
  CASE WHEN alike > 0 THEN best.last_y - best.first_y WHEN lists.climbing THEN lists.grower.last_bytes - lists.grower.first_bytes
    ELSE grown.last_bytes - grown.first_bytes END::BIGINT AS growth_bytes,
    CASE WHEN alike > 0 THEN best.ref WHEN lists.climbing THEN lists.grower.ref ELSE grown.ref END AS ref,
  CASE WHEN measured THEN all_of.climbing END AS climbing,
    CASE WHEN measured THEN coalesce(tops.settles, false) AND NOT all_of.climbing END AS plateau,
  CASE WHEN alike > 0 THEN alike END AS alike, best.n AS samples, best.seconds / 3600 AS hours, nullif(best.variant, '') AS variant,
    control.c.variant AS control, control.c.first_y::BIGINT AS control_first_bytes, control.c.last_y::BIGINT AS control_last_bytes,
  best.idles AS idle_samples,
    CASE WHEN best.idles >= $idle_points THEN best.idle_rise > -$idle_given_back * best.busy_rise END AS idle_kept,
  CASE WHEN best.counted AND best.done > 0 THEN (best.last_y - best.first_y) / best.done END AS per_request_bytes,
  CASE WHEN measured THEN flat END AS flat, CASE WHEN flat THEN nullif(f.name, '') END AS flat_name,
    CASE WHEN flat THEN f.n END AS flat_samples, CASE WHEN flat THEN f.middle::BIGINT END AS flat_bytes,
    CASE WHEN flat THEN f.spread::BIGINT END AS flat_spread_bytes,
  CASE WHEN flat THEN f.loaded END AS flat_loaded, CASE WHEN flat THEN f.ref END AS flat_ref,
  naps.kept AS asleep_kept, naps.bytes AS asleep_bytes, naps.who AS asleep_name, naps.control AS asleep_control, naps.ref AS asleep_ref,
  coalesce(said.grows, false) AND NOT (coalesce(flat, false) AND CASE WHEN said.of_host THEN level.of_host ELSE true END) AS grows_said,
    said.ref AS said_ref,
  coalesce(said.cures, false) AND NOT (coalesce(flat, false) AND level.of_host) AS restart_cures
FROM grown, tops, control, level, lists, naps, said, all_of
