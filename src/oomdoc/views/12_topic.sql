-- says: what notes and small texts state, one column per topic; one row always
-- scope: bundle
-- prompt_logprobs: prompt logprobs or echo were asked
-- long_prompt: a long prompt is named as the trigger
-- multimodal: images, video or audio are in the requests
-- lora: adapters are used
-- draft: a draft model is used
-- eager_cures: eager mode cures it
-- transient: the next start succeeds
-- several_engines: several engines, instances or models share a device
-- orphan: a process of a dead server is still there
-- shm: shared memory size is spoken of
-- cold_compile: the first start compiles with an empty cache
-- prompt_logprobs_ref: where that stands first
-- long_prompt_ref: where that stands first
-- lora_ref: where that stands first
-- draft_ref: where that stands first
-- eager_cures_ref: where that stands first
-- several_engines_ref: where that stands first
-- orphan_ref: where that stands first
-- oom_told: a text tells that a device ran out of memory (a kill by the host is none)
-- notes: statements found
SELECT coalesce(bool_or(topic = 'prompt-logprobs'), false) AS prompt_logprobs,
  coalesce(bool_or(topic = 'long-prompt'), false) AS long_prompt, coalesce(bool_or(topic = 'multimodal'), false) AS multimodal,
  coalesce(bool_or(topic = 'lora'), false) AS lora, coalesce(bool_or(topic = 'draft-model'), false) AS draft,
    coalesce(bool_or(topic = 'eager-cures'), false) AS eager_cures,
  coalesce(bool_or(topic = 'transient'), false) AS transient, coalesce(bool_or(topic = 'several-engines'), false) AS several_engines,
    coalesce(bool_or(topic = 'orphan-process'), false) AS orphan,
  coalesce(bool_or(topic = 'shm'), false) AS shm, coalesce(bool_or(topic = 'cold-compile'), false) AS cold_compile,
  min_by(source || ':' || line, line) FILTER (topic = 'prompt-logprobs') AS prompt_logprobs_ref,
    min_by(source || ':' || line, line) FILTER (topic = 'long-prompt') AS long_prompt_ref,
    min_by(source || ':' || line, line) FILTER (topic = 'lora') AS lora_ref,
    min_by(source || ':' || line, line) FILTER (topic = 'draft-model') AS draft_ref,
    min_by(source || ':' || line, line) FILTER (topic = 'eager-cures') AS eager_cures_ref,
    min_by(source || ':' || line, line) FILTER (topic = 'several-engines') AS several_engines_ref,
    min_by(source || ':' || line, line) FILTER (topic = 'orphan-process') AS orphan_ref,
  coalesce(
    bool_or(
      topic = 'failure-told' AND regexp_matches(text, '(?i)out ?of ?memory|(^|[^a-z])ooms?([^a-z]|$)|显存(不足|不够|溢出|爆)|爆显存')
        AND NOT regexp_matches(text, '(?i)oom[- ]?kill|exit code|kernel|137')
    ), false
  ) AS oom_told,
  count(*) AS notes
FROM note
