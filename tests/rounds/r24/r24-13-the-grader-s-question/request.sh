# what grading sends (prompt shortened here: handbook + answer)
curl -s http://llm.internal:8000/v1/completions -H 'Content-Type: application/json' -d '{
  "model": "llama3", "prompt": "You are grading answers against the policy handbook below. ...",
  "max_tokens": 1, "temperature": 0, "echo": true, "logprobs": 1 }'
