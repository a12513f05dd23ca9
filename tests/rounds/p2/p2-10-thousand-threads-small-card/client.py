# 1000 of these at once
from openai import OpenAI
import threading
c = OpenAI(base_url="http://localhost:8000/v1", api_key="x")
def one():
    c.completions.create(model="facebook/opt-125m", prompt="The fastest bowler of all", max_tokens=2040, n=1)
ts = [threading.Thread(target=one) for _ in range(1000)]
[t.start() for t in ts]
[t.join() for t in ts]
