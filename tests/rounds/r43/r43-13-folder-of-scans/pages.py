# the whole program
import glob, os, psutil, subprocess, time
from paddleocr import PaddleOCRVL

pipeline = PaddleOCRVL()                      # defaults, device gpu
me = psutil.Process(os.getpid())
for n, path in enumerate(sorted(glob.glob("/data/scans/*.png"))):
    t = time.time()
    for res in pipeline.predict(path):
        res.save_to_markdown(save_path="/data/out")
    m = me.memory_full_info()
    log(n, m.rss + m.swap, time.time() - t)   # to watch.csv
