-- says: one row per setting and figure of an experiment: two tries that differ in nothing but the setting, and what each gave
-- scope: bundle
-- flag: the setting
-- from_value: its value in the one try, the smaller where both are numbers
-- to_value: its value in the other
-- quantity: kv_tokens, kv_bytes, kv_blocks, hit_share (hits of what was looked up), preemptions, ttft_s, host_bytes, gpu_bytes
-- from_amount: the figure of the one try
-- to_amount: that of the other
-- ref: where the other stands
WITH figure AS (
  SELECT source, experiment, attempt, quantity, CASE WHEN quantity = 'hit_tokens' THEN sum(value) ELSE max(value) END AS amount, min(line) AS line
  FROM trial_figure WHERE quantity IS NOT NULL GROUP BY source, experiment, attempt, quantity
), told AS (
  SELECT * FROM figure WHERE quantity NOT IN ('hit_tokens', 'asked_tokens', 'hit_rate')
  UNION ALL SELECT source, experiment, attempt, 'hit_share', amount, line FROM figure WHERE quantity = 'hit_rate'
  UNION ALL SELECT h.source, h.experiment, h.attempt, 'hit_share', h.amount / a.amount, h.line FROM figure h JOIN figure a USING (source, experiment, attempt) WHERE h.quantity = 'hit_tokens' AND a.quantity = 'asked_tokens' AND a.amount > 0
), pair AS (
  SELECT a.source, a.experiment, a.attempt AS one, b.attempt AS two, b.line FROM (SELECT DISTINCT source, experiment, attempt, line FROM told) a JOIN (SELECT DISTINCT source, experiment, attempt, line FROM told) b
    ON a.source = b.source AND a.experiment = b.experiment AND a.attempt < b.attempt
), named AS (
  SELECT DISTINCT source, experiment, flag FROM trial WHERE attempt IS NOT NULL
), differ AS (
  SELECT p.source, p.experiment, p.one, p.two, p.line, n.flag, x.value AS first_value, y.value AS second_value, try_cast(x.value AS DOUBLE) AS v, try_cast(y.value AS DOUBLE) AS w,
         count(DISTINCT CASE WHEN n.flag IN ('tensor_parallel_size', 'pipeline_parallel_size', 'data_parallel_size') THEN 'layout' WHEN n.flag LIKE '%lora%' THEN 'lora' WHEN n.flag LIKE '%specul%' THEN 'speculative' ELSE n.flag END) OVER (PARTITION BY p.source, p.experiment, p.one, p.two) AS differences
  FROM pair p JOIN named n ON n.source = p.source AND n.experiment = p.experiment
  LEFT JOIN trial x ON x.source = p.source AND x.experiment = p.experiment AND x.attempt = p.one AND x.flag = n.flag
  LEFT JOIN trial y ON y.source = p.source AND y.experiment = p.experiment AND y.attempt = p.two AND y.flag = n.flag
  WHERE lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))
)
SELECT DISTINCT flag, CASE WHEN v > w THEN second_value ELSE first_value END AS from_value, CASE WHEN v > w THEN first_value ELSE second_value END AS to_value, a.quantity,
       CASE WHEN v > w THEN b.amount ELSE a.amount END AS from_amount, CASE WHEN v > w THEN a.amount ELSE b.amount END AS to_amount, d.source || ':' || d.line AS ref
FROM differ d JOIN told a ON a.source = d.source AND a.experiment = d.experiment AND a.attempt = d.one JOIN told b ON b.source = d.source AND b.experiment = d.experiment AND b.attempt = d.two AND b.quantity = a.quantity
WHERE differences = 1 AND flag NOT LIKE '@%'
