import asyncio, aiohttp, json
docs = [json.loads(l)["text"] for l in open("pairs.jsonl")][:50]    # about 4000 tokens each

async def one(s, d):
    body = {"text": d,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True, "logprob_start_len": 2000}
    async with s.post("http://gpu7:30000/generate", json=body) as r:
        return await r.json()

async def main():
    async with aiohttp.ClientSession() as s:
        # one by one works. gather of all 50 does not.
        print(len(await asyncio.gather(*(one(s, d) for d in docs))))
asyncio.run(main())
