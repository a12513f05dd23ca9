-- says: one row per two starts or tries of one table that differ in the sequences at once, with the peak of activations of each
-- scope: bundle
-- few: max_num_seqs of the one
-- many: max_num_seqs of the other, more
-- low: bytes of the peak with few
-- high: bytes of the peak with many
-- ref: where the larger one stands
WITH tried AS (
  SELECT t.source, t.experiment, t.attempt, min(t.line) AS line,
    max(try_cast(replace(t.value, ',', '') AS BIGINT)) FILTER (t.flag = 'max_num_seqs') AS seqs,
         coalesce(
           string_agg(
             DISTINCT t.flag || '=' || t.value, ' ' ORDER BY t.flag || '=' || t.value
           ) FILTER (t.flag <> 'max_num_seqs' AND t.flag NOT LIKE '@%'), ''
         ) AS others
  FROM trial t WHERE t.attempt IS NOT NULL GROUP BY ALL
), peak AS (
  SELECT source || '/' || experiment || ' ' || others AS place, seqs, x.bytes, source || ':' || line AS ref
  FROM tried
  JOIN (
    SELECT source, experiment, attempt, max(value) AS bytes FROM trial_figure WHERE quantity = 'activation_bytes' GROUP BY ALL
  ) x USING (source, experiment, attempt)
  UNION ALL
  SELECT 'logs ' || g.model || ' ' || coalesce(g.step, ''), g.seqs, x.bytes, s.source || ':' || x.line
  FROM engine_start s
  JOIN (
    SELECT s.start_id, max(f.value) AS bytes, min(f.line) AS line
    FROM engine_start s
    JOIN engine_figure f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line
    WHERE f.name = 'activation_bytes'
    GROUP BY ALL
  ) x USING (start_id)
  JOIN (SELECT s.start_id, arg_max(f.value, f.line) FILTER (f.flag = 'model') AS model, arg_max(f.value, f.line) FILTER (f.flag = 'max_num_batched_tokens') AS step, max(try_cast(f.value AS BIGINT)) FILTER (f.flag = 'max_num_seqs') AS seqs
        FROM engine_start s
        JOIN engine_flag f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line
        GROUP BY ALL) g USING (start_id)
)
SELECT a.seqs AS few, b.seqs AS many, a.bytes AS low, b.bytes AS high, b.ref
FROM peak a
JOIN peak b USING (place)
WHERE b.seqs > a.seqs AND a.bytes > 0
