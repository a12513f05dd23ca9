-- says: what gains again and again and gives nothing back, among the quantities that ought to come back: a process on its device, what sleep leaves, KV blocks while nothing runs, a process's own memory, shared memory; one row, NULLs where nothing was read often enough
-- scope: bundle
-- gains: a series of five readings or more gained in several steps until its end and gave nothing back
-- kind: of it: gpu (a process on a device), asleep (what sleep leaves), kv (blocks in use with nothing running), host (a process's own memory, less what it has locked), shm (shared memory), floor (the least that a device holds while its memory comes and goes)
-- name: whose
-- first_bytes: its first reading; of kv NULL
-- last_bytes: its last reading; of kv NULL
-- first_share: of kv, the share of the pool in use with nothing running, at the first pause
-- last_share: the same at the last pause
-- samples: its readings
-- rises: readings that were higher than the one before
-- empty: no request is served while it is read: whatever is gained belongs to nobody
-- per_event_bytes: what it gained for each reading that rose (kv: NULL)
-- lives: how often it was started and gained, as far as restarts are told
-- locked: of host, the memory that the process has locked did not grow with it
-- within_cache: the gain is no more than a cache may hold that the settings declare
-- cache_bytes: what they declare together
-- ref: where its last reading stands
-- same_asleep: sleep leaves the same again and again, and nothing else gains
-- asleep_bytes: that
-- asleep_samples: how often
-- asleep_ref: the last time
-- level_name: a process on a device that holds the same over the second half of its recording
-- level_bytes: that
-- level_samples: its readings
-- level_ref: the last of them
-- returns: pauses without a request at which the pool was empty each time; NULL where it was not, or nobody looked
-- returns_ref: the last of them
WITH pause AS (
  -- statistics lines without a request between two with some are one pause: the least of each
  SELECT source, coalesce(engine, -1)::VARCHAR AS name, nap, min(kv_used) AS value, max(line) AS line FROM (
    SELECT source, engine, line, running, waiting, kv_used,
      count(CASE WHEN running > 0 THEN 1 END) OVER (PARTITION BY source, engine ORDER BY line ROWS UNBOUNDED PRECEDING) AS nap
    FROM engine_stat) f
  WHERE running = 0 AND coalesce(waiting, 0) = 0 AND kv_used IS NOT NULL
    -- blocks of prompts that the other side has no room for yet are that side's demand
    AND NOT EXISTS (FROM prefill_side p WHERE p.fetched_late AND p.source = f.source AND p.engine IS NOT DISTINCT FROM f.engine)
  GROUP BY ALL
), gauge AS (
  SELECT source, t, min(line) AS line, max(value) FILTER (name = 'vllm:num_requests_running') AS running,
    max(value) FILTER (name = 'vllm:num_requests_waiting') AS waiting,
         max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')) AS kv_used,
           sum(value) FILTER (name LIKE 'vllm:request_success%') AS done
  FROM metric
  WHERE t IS NOT NULL
    AND (
      name IN ('vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')
        OR name LIKE 'vllm:request_success%'
    ) AND labels IS DISTINCT FROM 'delta'
  GROUP BY source, t
), scraped AS (
  -- a scrape with nothing running is a pause of its own where requests were finished since the one before: whoever looks once a night sees no other scrape
  SELECT source, nap, min(kv_used) AS value, max(line) AS line, min(t) AS moment
  FROM (SELECT *, count(CASE WHEN running > 0 OR worked THEN 1 END) OVER (PARTITION BY source ORDER BY t ROWS UNBOUNDED PRECEDING) AS nap FROM (
    SELECT *, done > lag(done) OVER (PARTITION BY source ORDER BY t) AS worked
    FROM gauge
    WHERE kv_used BETWEEN 0 AND 1))
  WHERE running = 0 AND coalesce(waiting, 0) = 0 GROUP BY ALL
), locked AS (
  SELECT source, name, coalesce(t, elapsed_s, step, line) AS moment, bytes FROM process_memory WHERE resource = 'host-locked'
), reading AS (
  SELECT 'gpu' AS kind, source, coalesce(name, 'a process') || ' (pid ' || coalesce(pid::VARCHAR, '?') || ')' AS name,
    coalesce(device, '') AS part, used_bytes::DOUBLE AS value, t AS moment, line::DOUBLE AS place, line,
    NULL::DOUBLE AS fixed
  -- what another program gains beside the server is that program's
  FROM listed_process l WHERE used_bytes > 0 AND t IS NOT NULL AND pid IS NOT NULL AND NOT foreigner
    -- nor who came to the device of one that ended beside it
    AND NOT EXISTS (FROM joined_process j WHERE j.source = l.source AND j.pid = l.pid)
  UNION ALL
  SELECT 'asleep', source, 'the engine, asleep', coalesce(pid::VARCHAR, '') || ' ' || coalesce(rank::VARCHAR, ''), value, t, line, line,
    NULL
  FROM engine_figure
  WHERE name = 'asleep_used_bytes'
  UNION ALL SELECT 'kv', source, 'the KV pool', name, value, NULL, line, line, NULL FROM pause
  UNION ALL SELECT 'kv', source, 'the KV pool', 'gauge', value, moment, moment, line, NULL FROM scraped
  UNION ALL
  SELECT CASE p.resource WHEN 'shm' THEN 'shm' ELSE 'host' END, p.source, coalesce(p.name, ''), coalesce(p.variant, ''),
    p.bytes - coalesce(l.bytes, 0), coalesce(p.t, p.elapsed_s), coalesce(p.t, p.elapsed_s, p.step, p.line), p.line, l.bytes
  FROM process_memory p
  LEFT JOIN locked l ON l.source = p.source AND l.name IS NOT DISTINCT FROM p.name AND l.moment = coalesce(p.t, p.elapsed_s, p.step, p.line)
  WHERE p.resource IN ('host', 'shm') AND p.bytes > 0 AND coalesce(p.t, p.elapsed_s, p.step) IS NOT NULL AND p.state IS NULL
  UNION ALL
  SELECT 'asleep', source, coalesce(name, 'the engine') || ', asleep', coalesce(variant, ''), bytes, coalesce(t, elapsed_s),
    coalesce(t, elapsed_s, step, line), line, NULL
  FROM process_memory
  WHERE coalesce(resource, 'gpu') = 'gpu' AND bytes > 0 AND regexp_matches(state, '(?i)\b(asleep|sleep\w*|slept)\b')
    AND NOT regexp_matches(state, '(?i)\bbefore\b')
  UNION ALL
  SELECT 'floor', source, gpu || ', at its lowest,', series::VARCHAR, low, part / 6.0 * seconds, part, last_line, NULL
  FROM device_part
  WHERE series IN (SELECT series FROM device_part GROUP BY series HAVING bool_and(high - low >= $wave_share * high))
), fallen AS (
  SELECT *, value < $new_life * lag(value) OVER (PARTITION BY kind, source, name, part ORDER BY place, line) AS fell FROM reading
), lived AS (
  -- what was started again begins anew; where nobody tells of a restart, a fall is a fall
  SELECT * EXCLUDE (lap),
    CASE WHEN kind IN ('host', 'gpu')
      AND EXISTS (
        FROM container c
        WHERE (c.restarts > 0 OR c.last_reason = 'OOMKilled')
          AND list_has_any(
            regexp_extract_all(lower(f.name), '[a-z]{3,}'), regexp_extract_all(lower(coalesce(c.pod, c.name, '')), '[a-z]{3,}')
          )
      ) THEN lap ELSE 0 END AS life
  FROM (
    SELECT *,
      count(CASE WHEN fell THEN 1 END) OVER (PARTITION BY kind, source, name, part ORDER BY place, line ROWS UNBOUNDED PRECEDING) AS lap
    FROM fallen
  ) f
), stepped AS (
  SELECT *, value - lag(value) OVER w AS rise, max(value) OVER (w ROWS UNBOUNDED PRECEDING) - value AS below, row_number() OVER w AS i, count(*) OVER p AS n,
    lead(moment) OVER w - moment AS lasts, abs(value - median(value) OVER p) <= $rest_band * (max(value) OVER p - min(value) OVER p) AS rests
  FROM lived
  WINDOW w AS (PARTITION BY kind, source, name, part, life ORDER BY place, line), p AS (PARTITION BY kind, source, name, part, life)
), shape AS (
  SELECT kind, source, name, part, life, any_value(n) AS n, arg_min(value, i) AS first_value, arg_max(value, i) AS last_value,
    max(value) AS high, min(value) AS low,
         count(*) FILTER (rise > 0) AS rises, coalesce(sum(rise) FILTER (rise > 0), 0) AS risen,
           -- below its highest so far, and not the sum of all falls: that grows with every reading of one that is not quiet
           max(below) AS given_back, max(rise) AS jump,
         coalesce(sum(rise) FILTER (i > (n + 1) / 2.0), 0) AS late, max(value) FILTER (i > n / 2.0) AS late_high,
           min(value) FILTER (i > n / 2.0) AS late_low, max(moment) - min(moment) AS seconds, max(fixed) - min(fixed) AS locked_rise,
           -- the share of the time that it spends at one level
           sum(lasts) FILTER (rests) / nullif(sum(lasts), 0) AS rested,
           count(fixed) AS locks, arg_max(source || ':' || line, i) AS ref
  FROM stepped
  GROUP BY kind, source, name, part, life
  HAVING any_value(n) + bool_or(kind = 'kv' AND i = 1 AND value >= $ratchet_share)::INT >= $trend_points
), judged AS (
  -- a pool is empty when the engine starts: what is in use at the first pause is the first gain
  SELECT *, last_value - first_value AS gain,
         rises + (kind = 'kv' AND first_value >= $ratchet_share)::INT >= $ratchet_rises AND given_back <= $ratchet_fallen * (last_value - first_value)
           AND jump <= $ratchet_jump * (last_value - first_value) AND late >= $ratchet_late * (last_value - first_value)
           AND last_value - first_value >= CASE kind WHEN 'kv' THEN $ratchet_share ELSE greatest($trend_bytes, $level_share * first_value)
             END AND coalesce(seconds, $trend_s) >= $trend_s
           -- what it gains in a start and in an end, with one level all the time between, is no gain again and again
           AND NOT coalesce(kind IN ('gpu', 'host', 'shm') AND rested >= $rest_share, false) AS gains,
         kind = 'gpu' AND late_high - late_low <= greatest($level_share * high, $level_bytes) AS level,
           kind = 'kv' AND high <= $ratchet_share AS returns
  FROM shape
), best AS (
  SELECT count(*) AS series, bool_or(gains) AS gains,
    arg_max(
      struct_pack(kind, name, n, first_value, last_value, rises, risen, gain, locked_rise, locks, lives, ref), gain
    ) FILTER (gains) AS b
  FROM (SELECT *, count(CASE WHEN gains THEN 1 END) OVER (PARTITION BY kind, source, name, part) AS lives FROM judged)
), calm AS (
  SELECT arg_max(struct_pack(name, late_high, n, ref), n) FILTER (level) AS l, max(n) FILTER (returns) AS pauses,
    min(ref) FILTER (returns) AS returns_ref
  FROM judged
), residue AS (
  SELECT arg_max(struct_pack(middle, n, ref), n) AS r
  FROM (
    SELECT (high + low) / 2 AS middle, n, ref
    FROM judged
    WHERE kind = 'asleep' AND high - low <= greatest($level_share * high, $level_bytes)
  )
), cache AS (
  SELECT sum(gib) * 1073741824 AS bytes FROM (
    -- each API server and each engine keeps its own copies of the inputs, as `host_claim` counts them
    SELECT max(try_cast(regexp_extract(value, '^[\d.]+') AS DOUBLE)) * CASE WHEN lower(flag) <> 'mm_processor_cache_gb' THEN 1
        ELSE coalesce((SELECT max(try_cast(value AS BIGINT)) FROM engine_flag WHERE flag = 'api_server_count'), 1)
          + coalesce((SELECT max(try_cast(value AS BIGINT)) FROM engine_flag WHERE flag = 'data_parallel_size'), 1) END AS gib
    FROM engine_flag
    WHERE lower(flag) IN ('mm_processor_cache_gb', 'kv_offloading_size', 'max_local_cpu_size', 'lmcache_max_local_cpu_size', 'swap_space')
    GROUP BY lower(flag))
)
SELECT CASE WHEN series > 0 THEN coalesce(best.gains, false) END AS gains, b.kind,
  CASE WHEN gains THEN coalesce(nullif(b.name, ''), 'the server') END AS name,
  CASE WHEN b.kind <> 'kv' THEN b.first_value END::BIGINT AS first_bytes,
    CASE WHEN b.kind <> 'kv' THEN b.last_value END::BIGINT AS last_bytes,
  CASE WHEN b.kind = 'kv' THEN b.first_value END AS first_share, CASE WHEN b.kind = 'kv' THEN b.last_value END AS last_share,
    b.n AS samples, b.rises, b.kind IN ('asleep', 'kv') AS empty, b.lives,
  CASE WHEN b.kind <> 'kv' THEN b.risen / b.rises END::BIGINT AS per_event_bytes,
    b.locked_rise <= $level_share * b.gain AS locked,
  CASE WHEN b.kind = 'host' AND b.locks = 0 THEN b.gain <= cache.bytes END AS within_cache,
    CASE WHEN b.kind = 'host' THEN cache.bytes END::BIGINT AS cache_bytes, b.ref,
  CASE WHEN r.n > 0 THEN NOT coalesce(best.gains, false) END AS same_asleep, r.middle::BIGINT AS asleep_bytes, r.n AS asleep_samples,
    r.ref AS asleep_ref,
  l.name AS level_name, l.late_high::BIGINT AS level_bytes, l.n AS level_samples, l.ref AS level_ref,
    CASE WHEN NOT coalesce(best.gains, false) THEN calm.pauses END AS returns, calm.returns_ref
FROM best, residue, calm, cache
