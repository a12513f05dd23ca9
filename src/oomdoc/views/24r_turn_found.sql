-- says: conversations turn by turn, from a sheet that counts what was looked up and found until then: whether turns that grow find more than those before; no row where nobody counts by turns
-- scope: incident
-- turns: turns that were counted, one after another, of one life of the counters
-- asked_first: tokens looked up in the second of them, the first that has one before
-- asked_last: in the last
-- found_first: of them found, in the second
-- found_last: in the last
-- asked_before: tokens looked up in the turn before the last: a cache that keeps them finds as many in the last
-- grew: more was looked up in the last than in the second, by more than what was found may differ unseen
-- lost: it grew, what is found is the same number from the second to the last, and less than half of the turn before: what all share
-- ref: where the last stands
WITH told AS (
  SELECT source, line, max(try_cast(value AS BIGINT)) AS turn
  FROM trial
  WHERE flag IN ('@turn', '@round', '@turns', '@rounds')
  GROUP BY ALL
), step AS (
  SELECT t.source, t.line, t.turn, s.labels, s.life, sum(s.more) FILTER (s.name LIKE '%prefix_cache_queries%') AS asked,
    sum(s.more) FILTER (s.name LIKE '%prefix_cache_hits%') AS found
  FROM told t
  JOIN cache_scrape s ON s.ref = t.source || ':' || t.line
  WHERE t.turn IS NOT NULL
  GROUP BY ALL
), turned AS (
  SELECT *, lag(turn) OVER w AS turn_before, lag(asked) OVER w AS asked_before
  FROM step
  WHERE asked > 0 AND found IS NOT NULL
  WINDOW w AS (PARTITION BY source, labels, life ORDER BY turn, line)
), course_of AS (
  SELECT count(*) AS turns, arg_min(asked, turn) AS asked_first, arg_max(asked, turn) AS asked_last, arg_min(found, turn) AS found_first,
    arg_max(found, turn) AS found_last, arg_max(asked_before, turn) AS asked_before, min(found) AS least, max(found) AS most,
    arg_max(source || ':' || line, turn) AS ref
  FROM turned
  -- only what follows the turn before it repeats that
  WHERE turn = turn_before + 1
  GROUP BY source, labels, life
)
SELECT turns, asked_first::BIGINT AS asked_first, asked_last::BIGINT AS asked_last, found_first::BIGINT AS found_first, found_last::BIGINT AS found_last,
  asked_before::BIGINT AS asked_before, asked_last >= $turns_grew * asked_first AS grew,
  asked_last >= $turns_grew * asked_first AND most <= $found_alike * least AND found_last < $turn_lost * asked_before AS lost, ref
FROM course_of
WHERE turns >= $counted_turns
ORDER BY turns DESC, ref
LIMIT 1
