-- says: the outcome that the incident in focus has to explain; one row, without an outcome where the bundle shows none
-- scope: incident
-- outcome: as in `outcome`; NULL = not told
-- ref: the line that shows it
WITH own AS (
  SELECT o.outcome, o.ref, i.start_id FROM focus f JOIN incident i ON i.incident = f.incident LEFT JOIN outcome o ON o.start_id = i.start_id
), worst AS (
  -- without an incident the gravest of its lives speaks
  SELECT outcome, ref FROM outcome ORDER BY list_position(['refused', 'died', 'ended', 'stuck', 'degraded', 'grew', 'starting', 'not-told', 'served'], outcome), start_id LIMIT 1
), host AS (
  SELECT CASE WHEN i.kind IN ('host-kill', 'restart', 'exit') THEN 'ended' END AS outcome, i.ref FROM focus f JOIN incident i ON i.incident = f.incident WHERE i.start_id IS NULL
)
SELECT nullif(coalesce(own.outcome, host.outcome, CASE WHEN own.start_id IS NULL THEN worst.outcome END), 'not-told') AS outcome, coalesce(own.ref, host.ref, worst.ref) AS ref
FROM (SELECT 1) LEFT JOIN own ON true LEFT JOIN host ON true LEFT JOIN worst ON true
