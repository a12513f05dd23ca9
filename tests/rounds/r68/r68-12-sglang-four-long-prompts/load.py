import asyncio, aiohttp, random
URL = "http://127.0.0.1:30000/generate"
docs = [open(f"docs/{i}.txt").read() for i in range(40)]      # 3.5k - 7.8k tokens each

async def one(s, d):
    async with s.post(URL, json={"text": d + "\n\nSummarise:", "sampling_params": {"max_new_tokens": 256}}) as r:
        return (await r.json())["meta_info"]["completion_tokens"]

async def main():
    async with aiohttp.ClientSession() as s:
        print(await asyncio.gather(*[one(s, random.choice(docs)) for _ in range(12)]))
asyncio.run(main())
