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
-- climbing: a long timed series rose in each of its last four fifths, or a process in each of three or more listings; no plateau
-- plateau: a timed series rose and then stayed
-- grows_said: a text states that memory grows and does not come back
-- said_ref: where
-- restart_cures: a text states that a restart brings it back
WITH point AS (
  SELECT *, source || ':' || line AS ref, lower(regexp_extract(coalesce(state, ''), '[A-Za-z]+')) AS stem FROM process_memory WHERE bytes > 0
), same AS (
  SELECT source, name, resource, stem, count(*) AS n, arg_min(bytes, line) AS first_bytes, arg_max(bytes, line) AS last_bytes, arg_max(ref, line) AS ref
  FROM point WHERE stem <> '' GROUP BY ALL HAVING count(*) >= 2
), grown AS (
  SELECT count(*) AS n, bool_or(last_bytes > 1.3 * first_bytes AND last_bytes - first_bytes > 268435456) AS stepped, arg_max(resource, last_bytes - first_bytes) AS resource, arg_max(name, last_bytes - first_bytes) AS name,
         arg_max(first_bytes, last_bytes - first_bytes) AS first_bytes, arg_max(last_bytes, last_bytes - first_bytes) AS last_bytes, arg_max(ref, last_bytes - first_bytes) AS ref FROM same
), timed AS (
  SELECT source, name, resource, bytes, ref, ntile(5) OVER w AS part, count(*) OVER (PARTITION BY source, name) AS n, max(t) OVER (PARTITION BY source, name) - min(t) OVER (PARTITION BY source, name) AS seconds, line
  FROM point WHERE t IS NOT NULL WINDOW w AS (PARTITION BY source, name ORDER BY t, line)
), part AS (
  SELECT source, name, resource, part, min(bytes) AS low, max(ref) AS ref FROM timed WHERE n >= 20 AND seconds >= 900 GROUP BY ALL
  UNION ALL
  SELECT d.source, 'GPU ' || d.gpu, 'gpu', p.part, p.low, d.source || ':' || p.line FROM device_series d JOIN (
    SELECT d.series, least(5, 1 + floor((g.t - d.from_t) / d.seconds * 5))::INTEGER AS part, min(g.used_bytes) AS low, max(g.line) AS line
    FROM gpu_sample g JOIN device_series d ON d.source = g.source AND d.gpu IS NOT DISTINCT FROM g.gpu WHERE d.timed >= 20 AND d.seconds >= 900 GROUP BY d.series, part) p USING (series)
), climb AS (
  SELECT source, name, resource, -- the least of each fifth lies above that of the fifth before, beyond the noise: collectors and caches move by some tens of MiB
         bool_and(low > before + 67108864) FILTER (part >= 3) AND max(low) - min(low) > greatest(1073741824, 0.02 * max(low)) AS climbing, min(low) AS first_bytes, max(low) AS last_bytes, arg_max(ref, part) AS ref,
         arg_max(low, part) < 1.03 * (max(low) FILTER (part = 4)) AND max(low) > 1.1 * min(low) AS plateau
  FROM (SELECT *, lag(low) OVER (PARTITION BY source, name ORDER BY part) AS before FROM part) GROUP BY ALL
), listing AS (
  -- the same process in several listings of one text (`ps` taken again and again), in the order of the text
  SELECT source, name, resource, bytes, line, ref, lag(bytes) OVER (PARTITION BY source, name ORDER BY line) AS before
  FROM point WHERE t IS NULL AND state IS NULL AND name LIKE '%(pid %'
), listed AS (
  SELECT source, name, resource, coalesce(bool_and(bytes > before * 1.03) AND max(bytes) > 1.2 * min(bytes), false) AS climbing, min(bytes) AS first_bytes, max(bytes) AS last_bytes, arg_max(ref, line) AS ref, false AS plateau
  FROM listing GROUP BY source, name, resource HAVING count(*) >= 3
), climbs AS (
  SELECT count(*) AS n, bool_or(climbing AND last_bytes - first_bytes > 268435456) AS climbing, bool_or(plateau) AS plateau, arg_max(resource, last_bytes) FILTER (climbing) AS resource,
         arg_max(name, last_bytes) FILTER (climbing) AS name, arg_max(first_bytes, last_bytes) FILTER (climbing) AS first_bytes, arg_max(last_bytes, last_bytes) FILTER (climbing) AS last_bytes, arg_max(ref, last_bytes) FILTER (climbing) AS ref FROM (FROM climb UNION ALL BY NAME FROM listed)
), said AS (
  SELECT bool_or(topic = 'grows') AS grows, bool_or(topic = 'restart-cures') AS cures, min(source || ':' || line) FILTER (topic IN ('grows', 'restart-cures')) AS ref FROM note
)
SELECT grown.n + climbs.n AS series, CASE WHEN grown.n > 0 THEN grown.stepped END AS stepped, coalesce(grown.resource, climbs.resource) AS resource, coalesce(grown.name, climbs.name) AS name,
  coalesce(grown.first_bytes, climbs.first_bytes) AS first_bytes, coalesce(grown.last_bytes, climbs.last_bytes) AS last_bytes, coalesce(grown.last_bytes - grown.first_bytes, climbs.last_bytes - climbs.first_bytes) AS growth_bytes,
  coalesce(grown.ref, climbs.ref) AS ref, CASE WHEN climbs.n > 0 THEN coalesce(climbs.climbing, false) END AS climbing, CASE WHEN climbs.n > 0 THEN coalesce(climbs.plateau, false) END AS plateau, coalesce(said.grows, false) AS grows_said, said.ref AS said_ref,
  coalesce(said.cures, false) AS restart_cures
FROM grown, climbs, said
