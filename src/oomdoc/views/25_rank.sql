-- says: how the ranks of the engine in focus differ; no row where fewer than two ranks are told apart
-- scope: incident
-- ranks: ranks with a figure
-- kv_min_bytes: smallest room for KV: the budget, or where an engine tells what it took of it, that and what is left beside it
-- kv_max_bytes: largest of the same
-- kv_ref: where the smallest stands
-- kv_spread_bytes: largest - smallest
-- weights_spread: (largest - smallest) / largest weights
-- free_spread_bytes: difference of free memory at start
-- uneven: the difference matters: over 1 GiB and 15 % of the largest budget
-- pids: worker processes seen
WITH figure AS (
  -- ranks of one engine are named alike: `Worker_TP3`, `EngineCore_DP1`, `RayWorkerWrapper`. A process that is named `EngineCore` and no more has its engine to itself
  SELECT *, coalesce(process, '') || '/' || coalesce(pid, 0) AS who,
         CASE WHEN regexp_matches(process, '^EngineCore(_0)?$') THEN 'engine ' || source || coalesce(pid, 0)
           WHEN process IS NULL OR regexp_matches(process, '(?i)worker')
             AND NOT regexp_matches(process, '_(TP|PP|DP|EP|PCP|DCP)\d') THEN 'worker'
              ELSE regexp_replace(process, '\d+', '', 'g') END AS team
  FROM seen.engine_figure WHERE name IN ('kv_available_bytes', 'weights_bytes', 'free_bytes')
), seated AS (
  -- a rank that loads anew under another pid, or tells other figures in another log, is a rank of another engine: their figures are not put together
  SELECT *, coalesce(process, '') || '/' || coalesce(rank, -1) AS seat,
    rank IS NOT NULL OR coalesce(regexp_matches(process, '\d$'), false) AS numbered
  FROM figure
), life AS (
  SELECT team, seat, source, pid, row_number() OVER (PARTITION BY team, seat, source ORDER BY min(line)) AS number
  FROM seated
  WHERE numbered
  GROUP BY team, seat, source, pid
), apart AS (
  SELECT DISTINCT team FROM seated a WHERE numbered AND EXISTS (
    FROM seated b
    WHERE b.seat = a.seat AND b.source <> a.source
      AND (b.pid <> a.pid OR (b.name = a.name AND abs(b.value - a.value) > $other_figure * abs(a.value))))
), anew AS (
  SELECT DISTINCT team, source FROM seated a WHERE numbered AND EXISTS (
    FROM seated b
    WHERE b.seat = a.seat AND b.source = a.source AND b.pid <> a.pid AND b.name = a.name AND a.name <> 'free_bytes'
      AND abs(b.value - a.value) > $other_figure * abs(a.value))
), named AS (
  SELECT s.*,
    s.team || coalesce(' ' || d.team || ' ' || s.source, '') || CASE WHEN n.team IS NOT NULL THEN coalesce(' ' || l.number, '') ELSE ''
      END AS crew
  FROM seated s
  LEFT JOIN apart d USING (team)
  LEFT JOIN anew n ON n.team = s.team AND n.source = s.source
  LEFT JOIN life l ON l.seat = s.seat AND l.source = s.source AND l.pid IS NOT DISTINCT FROM s.pid
), team AS (
  -- two engines in one bundle are not compared: the team of the incident's own log, then the largest
  SELECT crew FROM named GROUP BY crew
  ORDER BY bool_or(
    source IN (SELECT s.source FROM focus f JOIN incident i ON i.incident = f.incident JOIN engine_start s ON s.start_id = i.start_id)
  ) DESC, count(DISTINCT who) DESC, crew
  LIMIT 1
), own AS (
  SELECT named.* FROM named JOIN team USING (crew)
), left_beside AS (
  -- all ranks take a pool of as many tokens: what the smallest left the others unused is told behind it
  SELECT f.source, f.process, min(f.value) AS value
  FROM seen.engine_figure f
  JOIN seen.milestone m ON m.source = f.source AND m.line = f.line AND m.name = 'kv-sized'
  WHERE f.name = 'free_now_bytes'
  GROUP BY ALL
), kv AS (
  SELECT o.who || '/' || coalesce(o.rank, -1) AS who, min(o.value + coalesce(l.value, 0)) AS value, min(o.source || ':' || o.line) AS ref
  FROM own o
  LEFT JOIN left_beside l ON l.source = o.source AND l.process = o.process
  WHERE o.name = 'kv_available_bytes'
  GROUP BY 1
), weights AS (
  -- a rank that loads twice before its room is counted holds both: the model, and a draft that stands on this rank alone
  SELECT o.who || '/' || coalesce(o.rank, -1) AS who,
    CASE WHEN bool_and(o.line < k.first_line) THEN sum(DISTINCT o.value) ELSE max(o.value) END AS value
  FROM own o
  LEFT JOIN (SELECT who, rank, source, min(line) AS first_line FROM own WHERE name = 'kv_available_bytes' GROUP BY ALL) k ON k.who = o.who
    AND k.rank IS NOT DISTINCT FROM o.rank AND k.source = o.source
  WHERE o.name = 'weights_bytes' GROUP BY 1
), free AS (
  SELECT who, min(value) AS value FROM own WHERE name = 'free_bytes' GROUP BY 1
), folded AS (
  SELECT (SELECT count(*) FROM kv) AS ranks, (SELECT min(value) FROM kv) AS kv_min, (SELECT max(value) FROM kv) AS kv_max,
    (SELECT min_by(ref, value) FROM kv) AS kv_ref,
    (SELECT (max(value) - min(value)) / nullif(max(value), 0) FROM weights) AS weights_spread,
      (SELECT max(value) - min(value) FROM free) AS free_spread, (SELECT count(*) FROM weights) AS weight_ranks
)
SELECT greatest(ranks, weight_ranks) AS ranks, kv_min::BIGINT AS kv_min_bytes, kv_max::BIGINT AS kv_max_bytes, kv_ref,
  (kv_max - kv_min)::BIGINT AS kv_spread_bytes, weights_spread, free_spread::BIGINT AS free_spread_bytes,
  CASE WHEN ranks >= 2 THEN kv_max - kv_min > $uneven_bytes AND kv_max - kv_min > $uneven_share * abs(kv_max) END AS uneven,
    greatest(ranks, weight_ranks) AS pids
FROM folded WHERE ranks >= 2 OR weight_ranks >= 2
