-- says: a container of the server's pods that was never made, and what its events say it lacks: a volume, an image, a setting; no row where each was made
-- scope: bundle
-- text: what is said of it, or the state in which it waits
-- ref: where
WITH waiting AS (
  SELECT source, line, pod, reason FROM container
  WHERE reason IN (
    'ContainerCreating', 'ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'CreateContainerConfigError',
    'CreateContainerError'
  ) AND coalesce(restarts, 0) = 0
), refused AS (
  SELECT source, line, object, message FROM cluster_event w
  WHERE reason IN ('FailedAttachVolume', 'FailedMount', 'FailedMapVolume', 'FailedCreatePodSandBox', 'Failed', 'InspectFailed')
    -- what is short of memory is the host's matter
    AND NOT regexp_matches(coalesce(message, ''), '(?i)memory')
    AND NOT EXISTS (
      FROM cluster_event s
      WHERE s.reason IN ('Created', 'Started') AND s.source = w.source AND s.line > w.line AND s.object IS NOT DISTINCT FROM w.object
    )
)
SELECT coalesce(r.message, w.reason)[:160] AS text, coalesce(r.source || ':' || r.line, w.source || ':' || w.line) AS ref
FROM waiting w
-- an event of a description names no object: it stands below the container that it is about
LEFT JOIN refused r ON r.source = w.source
  AND CASE WHEN r.object IS NULL THEN r.line > w.line ELSE r.object IN (w.pod, 'pod/' || w.pod, 'Pod/' || w.pod) END
-- a pod that is being made waits for a moment as well: only what is refused tells it apart
WHERE r.line IS NOT NULL OR w.reason <> 'ContainerCreating'
ORDER BY r.line IS NULL, r.line, w.line LIMIT 1
