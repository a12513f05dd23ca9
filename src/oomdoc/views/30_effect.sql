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
  SELECT source, experiment, attempt, quantity, CASE WHEN quantity = 'hit_tokens' THEN sum(value) ELSE max(value) END AS amount,
    min(line) AS line
  FROM trial_figure WHERE quantity IS NOT NULL GROUP BY source, experiment, attempt, quantity
), told AS (
  SELECT * FROM figure WHERE quantity NOT IN ('hit_tokens', 'asked_tokens', 'hit_rate')
  UNION ALL SELECT source, experiment, attempt, 'hit_share', amount, line FROM figure WHERE quantity = 'hit_rate'
  UNION ALL
  SELECT h.source, h.experiment, h.attempt, 'hit_share', h.amount / a.amount, h.line
  FROM figure h
  JOIN figure a USING (source, experiment, attempt)
  WHERE h.quantity = 'hit_tokens' AND a.quantity = 'asked_tokens' AND a.amount > 0
), pair AS (
  SELECT a.source, a.experiment, a.attempt AS one, b.attempt AS two, a.quantity, a.amount AS first_amount, b.amount AS second_amount, b.line
  FROM told a JOIN told b USING (source, experiment, quantity) WHERE a.attempt < b.attempt
), named AS (
  SELECT DISTINCT flag FROM trial
), differ AS (
  SELECT p.*, n.flag, x.value AS first_value, y.value AS second_value,
    coalesce(try_cast(x.value AS DOUBLE) > try_cast(y.value AS DOUBLE), false) AS falls,
         count(
           DISTINCT CASE WHEN n.flag IN ('tensor_parallel_size', 'pipeline_parallel_size', 'data_parallel_size') THEN 'layout'
             WHEN n.flag LIKE '%lora%' THEN 'lora' WHEN n.flag LIKE '%specul%' THEN 'speculative' ELSE n.flag END
         ) OVER (PARTITION BY p.source, p.experiment, p.one, p.two) AS differences
  FROM pair p CROSS JOIN named n
  LEFT JOIN trial x ON x.source = p.source AND x.experiment = p.experiment AND x.attempt = p.one AND x.flag = n.flag
  LEFT JOIN trial y ON y.source = p.source AND y.experiment = p.experiment AND y.attempt = p.two AND y.flag = n.flag
  WHERE lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))
)
SELECT DISTINCT flag, if(falls, second_value, first_value) AS from_value, if(falls, first_value, second_value) AS to_value, quantity,
       if(falls, second_amount, first_amount) AS from_amount, if(falls, first_amount, second_amount) AS to_amount,
         source || ':' || line AS ref
FROM differ WHERE differences = 1 AND flag NOT LIKE '@%'
