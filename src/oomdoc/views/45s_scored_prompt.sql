-- says: lives of a server that end with a request whose prompt was scored (its logprobs asked for) and that got no answer, each longer than any such request that passed; no row where one life ended otherwise, or only one did. Where the log shows fewer ends, requests that fail together tell of one
-- scope: bundle
-- lives: how many ended so
-- seconds: the longest from such a request to the last that its life wrote
-- least_tokens: the shortest of those prompts
-- most_tokens: the longest of those that ended a life
-- passed_tokens: the longest such prompt that was answered
-- ref: the first of the requests
WITH said AS (
  SELECT source, line, t FROM engine_stat UNION ALL SELECT source, line, t FROM milestone UNION ALL SELECT source, line, t FROM log_error
), over AS (
  -- a life that another one follows has ended
  SELECT s.start_id, s.source, max(x.t) AS t,
    (SELECT min(n.t) FROM engine_start n WHERE n.source = s.source AND n.first_line > s.last_line) AS next_t
  FROM engine_start s JOIN said x ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE EXISTS (FROM engine_start n WHERE n.source = s.source AND n.first_line > s.last_line)
  GROUP BY ALL
), lost AS (
  -- 503 is what stands in front of a server that is not there
  SELECT t, t - lag(t) OVER (ORDER BY t, source, line) <= $fall_s AS together FROM request WHERE (status >= 500 OR status = 0) AND status <> 503 AND t IS NOT NULL
), fall AS (
  SELECT NULL::VARCHAR AS start_id, NULL::VARCHAR AS source, max(t) AS t
  FROM (SELECT t, sum(CASE WHEN together THEN 0 ELSE 1 END) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING) AS nth FROM lost)
  GROUP BY nth
), ended AS (
  -- a sheet tells of all, a log of those that it holds
  SELECT start_id, source, t FROM over WHERE (SELECT count(*) FROM over) >= (SELECT count(*) FROM fall) UNION ALL SELECT * FROM fall WHERE (SELECT count(*) FROM over) < (SELECT count(*) FROM fall)
), moment AS (
  FROM ended
  UNION
  -- a log of which lines are missing breaks off earlier: what fails behind its last line and before the next start tells the end
  SELECT o.start_id, o.source, f.t FROM over o JOIN fall f ON f.t BETWEEN o.t AND o.next_t WHERE o.start_id IN (SELECT start_id FROM ended)
), scored AS (
  SELECT n.source || ':' || n.line AS ref, n.value AS tokens, r.t, coalesce(r.status >= 500 OR r.status = 0, true) AS lost
  FROM note n JOIN request r ON r.source = n.source AND r.line = n.line
  WHERE n.topic = 'prompt-scored' AND n.value > 0
), last AS (
  SELECT o.start_id, min(o.t) AS t, arg_min(s.tokens, abs(o.t - s.t)) AS tokens, min(abs(o.t - s.t)) AS apart, arg_min(s.ref, abs(o.t - s.t)) AS ref
  FROM moment o LEFT JOIN scored s ON s.lost AND abs(o.t - s.t) <= $scored_before_s
  GROUP BY o.start_id, CASE WHEN o.start_id IS NULL THEN o.t END
)
SELECT count(*) AS lives, max(apart) AS seconds, min(tokens) AS least_tokens, max(tokens) AS most_tokens,
  (SELECT max(tokens) FROM scored WHERE NOT lost) AS passed_tokens, arg_min(ref, t) AS ref
FROM last
HAVING count(*) >= 2 AND count(tokens) = count(*) AND min(tokens) > coalesce((SELECT max(tokens) FROM scored WHERE NOT lost), 0)
