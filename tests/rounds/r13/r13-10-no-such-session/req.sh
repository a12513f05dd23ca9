lmcache server --chunk-size 544 --l1-size-gb 8 --eviction-policy LRU
for i in $(seq 24); do curl -s localhost:8000/v1/chat/completions -d @same.json | jq -c .usage; done
