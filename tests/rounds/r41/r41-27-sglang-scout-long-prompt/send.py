import requests
payload = {"model": "scout", "messages": [{"role": "user", "content": "1 " * 200000}], "max_tokens": 200, "temperature": 0.0, "stream": True}
r = requests.post("http://localhost:8080/v1/chat/completions", json=payload, stream=True)
# alone on the server; "1 " * 49000 came back fine eight minutes earlier
