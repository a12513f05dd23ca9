import asyncio, random, time, sys
import aiohttp

URL = "http://10.20.0.31:8000/v1/completions"
N = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
PROMPTS = [l.rstrip("\n") for l in open("prompts_300tok.txt")]

async def one(session, i):
    t = time.perf_counter()
    body = dict(model="meta-llama/Meta-Llama-3-8B-Instruct", prompt=random.choice(PROMPTS),
                max_tokens=100, temperature=0.7, ignore_eos=True)
    async with session.post(URL, json=body, timeout=aiohttp.ClientTimeout(total=None)) as r:
        js = await r.json()
    return time.perf_counter() - t

async def main():
    async with aiohttp.ClientSession() as session:
        lat = await asyncio.gather(*[one(session, i) for i in range(N)])
    print(N, "done, mean", sum(lat) / len(lat))

asyncio.run(main())
