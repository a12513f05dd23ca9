-- says: hit rates of the prefix cache by who asks, from a table with a column for that; no row where none names callers
-- scope: bundle
-- source: the table
-- experiment: number of the table within its source
-- attempt: row of the table
-- caller: who asks: a tenant, a team, a route
-- rate: share of the looked-up tokens that was found; NULL = the row does not say
-- tokens: length of a prompt; NULL = the row does not say
-- line: where
SELECT t.source, t.experiment, t.attempt, t.caller, max(f.value) FILTER (f.quantity = 'hit_rate') AS rate,
  max(f.value) FILTER (f.quantity = 'asked_tokens') AS tokens, min(f.line) AS line
FROM (
  SELECT source, experiment, attempt,
    regexp_extract(
      any_value(text), '(?i)(?:^|, )(?:tenants?|customers?|clients?|users?|teams?|apps?|applications?|agents?|services?|routes?|callers?|workloads?)(?:_(?:name|id))?=([^,=]*[A-Za-z][^,=]*)', 1
    ) AS caller
  FROM trial
  GROUP BY source, experiment, attempt
) t
JOIN trial_figure f USING (source, experiment, attempt)
WHERE t.caller <> '' GROUP BY ALL
