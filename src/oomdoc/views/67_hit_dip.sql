-- says: a time in the middle of a sheet of looked-up and found tokens in which more was asked for and far less was found than before and after it; no row where no sheet has one
-- scope: incident
-- rows: rows of that time
-- before_rows: rows before it
-- after_rows: rows after it
-- asked_tokens: looked up in a row of that time, median
-- found_tokens: found in a row of that time, median
-- usual_asked_tokens: looked up in a row outside it, median
-- usual_found_tokens: found in a row outside it, median
-- pool_tokens: what the pool stores; NULL = not told
-- turned_over: a row of that time computed more than the pool stores, so that nothing in it outlives a row unused; NULL = the pool is not told
-- ref: where it begins
WITH counted AS (
  SELECT source, experiment, attempt, min(line) AS line, max(value) FILTER (quantity = 'asked_tokens') AS asked,
    max(value) FILTER (quantity = 'hit_tokens') AS found
  FROM trial_figure
  WHERE NOT regexp_matches(name, 'block|page')
  GROUP BY ALL
  HAVING found BETWEEN 0 AND asked
), usual AS (
  SELECT source, experiment, quantile_cont(found, 0.75) AS found FROM counted GROUP BY ALL HAVING count(*) >= $lookups_least
), marked AS (
  SELECT c.*, c.found <= $hits_fell * u.found AS low FROM counted c JOIN usual u USING (source, experiment)
), span AS (
  SELECT source, experiment, min(line) FILTER (low) AS first, max(line) FILTER (low) AS last FROM marked GROUP BY ALL
), folded AS (
  SELECT m.source, m.experiment, count(*) FILTER (m.line BETWEEN s.first AND s.last) AS rows, bool_and(m.low) FILTER (m.line BETWEEN s.first AND s.last) AS whole,
    count(*) FILTER (m.line < s.first) AS before_rows, count(*) FILTER (m.line > s.last) AS after_rows,
    median(m.asked) FILTER (m.low) AS asked, median(m.found) FILTER (m.low) AS found,
    median(m.asked) FILTER (NOT m.low) AS usual_asked, median(m.found) FILTER (NOT m.low) AS usual_found,
    m.source || ':' || any_value(s.first) AS ref
  FROM marked m
  JOIN span s USING (source, experiment)
  GROUP BY m.source, m.experiment
)
SELECT rows, before_rows, after_rows, asked::BIGINT AS asked_tokens, found::BIGINT AS found_tokens, usual_asked::BIGINT AS usual_asked_tokens,
  usual_found::BIGINT AS usual_found_tokens, e.kv_pool_tokens::BIGINT AS pool_tokens, asked - found > e.kv_pool_tokens AS turned_over, ref
FROM folded, engine e
WHERE whole AND least(rows, before_rows, after_rows) >= $dip_rows AND asked >= usual_asked AND usual_found >= $mostly_hit * usual_asked
ORDER BY rows DESC, ref
LIMIT 1
