-- says: a sheet of looked-up and found tokens in which far less is found from one row on to its end, while as much is asked for as before; no row where no sheet has that
-- scope: bundle
-- before_rows: rows before it
-- after_rows: rows from it on
-- asked_before: looked up in a row before it, median
-- asked_after: from it on
-- found_before: share of the looked-up tokens that was found before it
-- found_after: from it on
-- ttft_before_s: time to the first token before it, mean of the rows' figures; NULL = not told
-- ttft_after_s: from it on
-- ref: where it begins
WITH counted AS (
  SELECT source, experiment, attempt, min(line) AS line, max(value) FILTER (quantity = 'asked_tokens') AS asked,
    max(value) FILTER (quantity = 'hit_tokens') AS found, avg(value) FILTER (quantity = 'ttft_s') AS ttft_s
  FROM trial_figure
  WHERE NOT regexp_matches(name, 'block|page')
  GROUP BY ALL
  HAVING found BETWEEN 0 AND asked AND asked > 0
), usual AS (
  SELECT source, experiment, quantile_cont(found / asked, 0.9) AS rate FROM counted GROUP BY ALL HAVING count(*) >= $lookups_least
), marked AS (
  SELECT c.*, u.rate, c.found / c.asked <= $half_found * u.rate AS low, row_number() OVER (PARTITION BY source, experiment ORDER BY line) AS nth
  FROM counted c JOIN usual u USING (source, experiment)
), span AS (
  SELECT source, experiment, max(nth) FILTER (NOT low) AS last_high, max(nth) AS n, arg_min(line, nth) FILTER (low) AS line FROM marked GROUP BY ALL
), folded AS (
  SELECT m.source, m.experiment, count(*) FILTER (nth <= last_high) AS before_rows, count(*) FILTER (nth > last_high) AS after_rows,
    avg(low::INT) FILTER (nth <= last_high) AS low_before,
    median(asked) FILTER (nth <= last_high) AS asked_before, median(asked) FILTER (nth > last_high) AS asked_after,
    sum(found) FILTER (nth <= last_high) / sum(asked) FILTER (nth <= last_high) AS found_before,
    sum(found) FILTER (nth > last_high) / sum(asked) FILTER (nth > last_high) AS found_after,
    avg(ttft_s) FILTER (nth <= last_high) AS ttft_before_s, avg(ttft_s) FILTER (nth > last_high) AS ttft_after_s,
    m.source || ':' || min(m.line) FILTER (nth > last_high) AS ref
  FROM marked m JOIN span s USING (source, experiment)
  GROUP BY m.source, m.experiment
)
SELECT before_rows, after_rows, asked_before, asked_after, found_before, found_after, ttft_before_s, ttft_after_s, ref
FROM folded
WHERE least(before_rows, after_rows) >= $lookups_least AND low_before <= $some_low AND found_before >= $others_find
  AND asked_after BETWEEN asked_before / $as_much AND $as_much * asked_before AND found_after <= $half_found * found_before
ORDER BY after_rows DESC, ref LIMIT 1
