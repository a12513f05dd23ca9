# what the batch client does (shortened)
pages = list(glob("/scan/2019/**/*.png"))            # thumbnails 560x784, 16 per document
async def ask(doc): ...                              # 16 images as base64 data URLs in one chat request
await asyncio.gather(*[ask(d) for d in docs])        # all 3 000 documents at once, the server queues anyway
