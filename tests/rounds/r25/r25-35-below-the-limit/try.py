import requests
for n in (800, 6200, 33400):
    r = requests.post(URL + "/generate", json={"inputs": "lorem " * n, "parameters": {"max_new_tokens": 200 if n < 10000 else 400}})
    print(n, r.status_code)
# 800 200
# 6200 200
# 33400 500      <- 33 412 tokens by the tokenizer, the limit is 34 000
