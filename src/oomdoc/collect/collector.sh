#!/bin/sh
# Collects what `oomdoc analyze` needs from the host of an LLM server, into one archive.
#
#   sh collect.sh                          the whole host, 60 seconds of samples
#   sh collect.sh -d 600 -i 10             ten minutes, a sample every ten seconds
#   sh collect.sh -c vllm -u http://localhost:8000/metrics
#   sh collect.sh -n serving -p vllm-0     the pod of a cluster, from where kubectl works
#   sh collect.sh -l /var/log/vllm.log -l /var/log/gateway/requests.jsonl
#
# Needs a POSIX shell and nothing else; what a host lacks is named in missing.txt. It only reads. It needs no root, but
# sees more with it. Bounded: a file holds at most -s MiB, a command runs at most -t seconds.
# Environments are not copied: a few settings of the engine and the driver are picked by name. Values of what is named like a secret
# are blanked everywhere; names of people and prompts in your own logs are not: `oomdoc redact` does that. Interrupted, it packs what it has.

set -u
LC_ALL=C
export LC_ALL
umask 077

duration_s=60
interval_s=5
limit_mib=64
timeout_s=30
since=24h
proc=/proc
out=.
namespace=
pods=
containers=
urls=
logs=
newline='
'

usage() {
  sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
  echo "options: -d SECONDS -i SECONDS -s MIB -t SECONDS -S SINCE -o FOLDER -n NAMESPACE -p POD -c CONTAINER -u URL -l FILE -P PROCFS"
}

wrong() {
  echo "collect: $1; -h tells more" >&2
  exit 2
}

number() {
  case $2 in
    '' | *[!0-9]* | ????????*) wrong "$1 takes a whole number, not '$2'" ;;
  esac
}

while getopts hd:i:s:t:S:o:n:p:c:u:l:P: option; do
  case $option in
    h) usage; exit 0 ;;
    d) number -d "$OPTARG"; duration_s=$OPTARG ;;
    i) number -i "$OPTARG"; interval_s=$OPTARG ;;
    s) number -s "$OPTARG"; limit_mib=$OPTARG ;;
    t) number -t "$OPTARG"; timeout_s=$OPTARG ;;
    S) since=$OPTARG ;;
    o) out=$OPTARG ;;
    n) namespace=$OPTARG ;;
    p) pods=$pods$OPTARG$newline ;;
    c) containers=$containers$OPTARG$newline ;;
    u) urls=$urls$OPTARG$newline ;;
    P) proc=$OPTARG ;;
    l) logs=$logs$OPTARG$newline ;;
    *) wrong "unknown option" ;;
  esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || wrong "'$1' is no option"
[ "$interval_s" -gt 0 ] || interval_s=1
[ "$limit_mib" -gt 0 ] || limit_mib=1
[ "$timeout_s" -gt 0 ] || timeout_s=1
[ -d "$out" ] || wrong "there is no folder $out"

groups=${proc%/proc}/sys/fs/cgroup

name=oomdoc-$(uname -n | tr -c 'A-Za-z0-9.\n-' _)-$(date -u +%Y%m%dT%H%M%SZ)
base=$out/$name
mkdir "$base" || wrong "cannot write into $out"
missing=$base/missing.txt
headline='oomdoc collect: what could not be had, and how to get it'
: > "$missing"

have() { command -v "$1" > /dev/null 2>&1; }

lacks() { echo "$1: $2" >> "$missing"; }

# Names of secrets, in any case: api_key, HF_TOKEN, db-password, CLIENT_SECRET_2. A bare `token` counts, `max_tokens` does not.
key='([A-Za-z0-9_.-]*([Aa][Pp][Ii][_-]?[Kk][Ee][Yy]|[Aa][Cc][Cc][Ee][Ss][Ss][_-]?[Kk][Ee][Yy]([_-]?[Ii][Dd])?|[Ss][Ee][Cc][Rr][Ee][Tt]([_-]?([Aa][Cc][Cc][Ee][Ss][Ss][_-]?)?[Kk][Ee][Yy])?|[Pp][Rr][Ii][Vv][Aa][Tt][Ee][_-]?[Kk][Ee][Yy]|[Mm][Aa][Ss][Tt][Ee][Rr][_-]?[Kk][Ee][Yy]|[Pp][Aa][Ss][Ss][Ww]([Oo][Rr])?[Dd]|[Pp][Aa][Ss][Ss][Pp][Hh][Rr][Aa][Ss][Ee]|[Cc][Rr][Ee][Dd][Ee][Nn][Tt][Ii][Aa][Ll]|([Hh][Ff]|[Hh][Uu][Bb]|[Aa][Cc][Cc][Ee][Ss][Ss]|[Aa][Uu][Tt][Hh]|[Aa][Pp][Ii]|[Bb][Ee][Aa][Rr][Ee][Rr]|[Ss][Ee][Ss][Ss][Ii][Oo][Nn]|[Rr][Ee][Ff][Rr][Ee][Ss][Hh])[_-]?[Tt][Oo][Kk][Ee][Nn]|[A-Z0-9_]*_TOKEN)s?([_-]?[0-9]+|_[A-Z0-9]+)?)'
hidden='***HIDDEN***'
kept=$(printf '\001') # before what says that there is none: None, False
# one value of an option: quoted, or a word that is neither an option nor a sign of the shell
one="(\"[^\"]*\"|'[^']*'|[^] \"',;|&\\\\-][^] \"',;|&]*)"

# Blanks what looks like a secret: every value of options and variables with such names (lists and further lines too), objects called
# auth or credentials, private keys, tokens of known shape, passwords in addresses.
mask() {
  sed -E \
    -e ':again' \
    -e '/-----BEGIN [A-Z0-9 ]*PRIVATE KEY/,/-----END [A-Z0-9 ]*PRIVATE KEY/s/.*/'"$hidden"'/' \
    -e "s/(--?$key)(=| +)$one( +$one)*/\\1 $hidden/g" \
    -e "s/([\"']--?$key[\"'])( *, *([\"'])[^-\"'][^\"']*[\"'])+/\\1, \"$hidden\"/g" \
    -e "s/($key[\\\\\"']*( *[=:] *| +|[\"'] *, *))\\[[^]]*\\]/\\1['$hidden']/g" \
    -e "s/([\"']?(auth|credentials?|secrets?|token)[\\\\\"']*[:=] *)\\{[^}]*\\}/\\1{$hidden}/g" \
    -e "s/([=:] *)(None|True|False|null|true|false)([^A-Za-z0-9]|\$)/\\1$kept\\2\\3/g" \
    -e "s/($key[\\\\\"']*( *[=:,] *| +)[\\\\\"']*)[[{(<]*[^]\"' ,}\\\\[$kept]+/\\1$hidden/g" \
    -e "s/$kept//g" \
    -e "s/($key%3[dD])[^%& ]+/\\1$hidden/g" \
    -e "s/(\"name\": *\"$key\", *\"value\": *\")[^\"]*/\\1$hidden/g" \
    -e 's/([Bb]earer|[Bb]asic) +[A-Za-z0-9._~+\/=-]{8,}/\1 '"$hidden"'/g' \
    -e "s/((^|[^A-Za-z0-9_-])([Tt]oken|[Aa]uth|[Cc]ookie|[Aa]uthorization)[\"']?[=:] *[\"']?)[^]{*\"' ,}[][^]\"' ,}[]{3,}/\\1$hidden/g" \
    -e 's/(hf_|api_org_|nvapi-|sk-|gsk_|r8_|fw_|xai-|pplx-|pcsk_|gh[opusr]_|github_pat_|glpat-|glsa_|glc_|AKIA|ASIA|AIza|ya29\.|xox[a-z]-|npm_|pypi-|dckr_pat_|dapi|hvs\.|dop_v1_|shp[a-z]{2}_|SG\.|wandb_v1_|eyJ)[A-Za-z0-9_.=+\/-]{12,}/'"$hidden"'/g' \
    -e 's/(:\/\/[^:@\/ ]*:)[^@\/ ]+@/\1'"$hidden"'@/g' \
    -e "/^ *(- +)?[\"']?--?$key[\"']?,? *\$/,/^ *(- +)?[\"']?--|^ *[A-Za-z][A-Za-z ]*:/{" \
    -e "/^ *(- +)?[\"']?--|^ *[A-Za-z][A-Za-z ]*:/!s/^( *(- *)?).*/\\1$hidden/" \
    -e '}' \
    -e "/^ *(- *)?[\"']?$key[\"']? *: *[|>]?[-+]? *\$/,/^ *(- *)?[\"']?[A-Za-z0-9_.-]+[\"']? *:/{" \
    -e "/^ *(- *)?[\"']?[A-Za-z0-9_.-]+[\"']? *:/!s/^( *(- *)?).*/\\1$hidden/" \
    -e '}' \
    -e "/name[\"']?: *[\"']?$key[\"']?,? *\$/{" \
    -e 'n' \
    -e "s/(value[\"']?: *).+/\\1$hidden/" \
    -e '}' \
    -e "/--?$key *\\\\ *\$/{" \
    -e 'n' \
    -e "s/^( *)[^ -][^ ]*/\\1$hidden/" \
    -e 'b again' \
    -e '}'
}

# limited COMMAND...: runs it for at most $timeout_s seconds.
limited() {
  if have timeout; then
    timeout "$timeout_s" "$@" < /dev/null
    return
  fi
  "$@" < /dev/null &
  child=$!
  (
    sleep "$timeout_s"
    kill "$child" 2> /dev/null
  ) > /dev/null 2>&1 &
  watcher=$!
  { wait "$child"; } 2> /dev/null # some shells report a kill here
  ended=$?
  kill "$watcher" 2> /dev/null
  return "$ended"
}

# keep FILE COMMAND...: the last $limit_mib MiB of what it prints, errors too, masked; says so if there is nothing.
keep() {
  file=$base/$1
  shift
  mkdir -p "${file%/*}"
  limited "$@" 2>&1 | tail -c "$((limit_mib * 1048576))" | mask > "$file"
  [ -s "$file" ] || { rm -f "$file"; lacks "$*" "printed nothing within $timeout_s s: try -t 120"; }
}

# fetch URL: prints what it answers.
fetch() {
  if have curl; then
    curl -fsS -m "$timeout_s" "$1"
  elif have wget; then
    wget -q -T "$timeout_s" -O - "$1"
  else
    return 127
  fi
}

# A scrape that failed leaves no file: an error page is no metric.
scrape() {
  printf '%s' "$urls" | while IFS= read -r url; do
    place=$base/metrics/$(printf '%s' "$url" | tr -c 'A-Za-z0-9' _)-$(date -u +%Y%m%dT%H%M%SZ).prom
    mkdir -p "$base/metrics"
    fetch "$url" 2> /dev/null < /dev/null | head -c "$((limit_mib * 1048576))" > "$place"
    [ -s "$place" ] || { rm -f "$place"; lacks "$url" "gave no reply: name the metrics address of the server with -u"; }
  done
}

# answer FILE URL WHY: what the server answers; WHY says what to do where it answers nothing.
answer() {
  told=$(fetch "$2" 2> /dev/null < /dev/null | head -c 65536 | mask)
  [ -n "$told" ] || { lacks "$2" "$3"; return; }
  mkdir -p "${1%/*}"
  printf '%s\n' "$told" > "$1"
}

# status URL: the number of its answer; nothing or 000 where there is none.
status() {
  if have curl; then
    curl -s -o /dev/null -m "$timeout_s" -w '%{http_code}' "$1"
  elif have wget; then
    wget -q -S -T "$timeout_s" -O /dev/null "$1" 2>&1 | sed -n 's/^ *HTTP[^ ]* \([0-9][0-9][0-9]\).*/\1/p' | tail -n 1
  fi
}

# ask_health FILE URL: whether the engine behind the server lives; its answer has no body, so the number of it is kept.
ask_health() {
  code=$(status "$2" 2> /dev/null < /dev/null)
  case $code in
    200) said='health check passed' ;;
    '' | 000) lacks "$2" "gave no reply within $timeout_s s: the server is gone, hangs, or listens elsewhere (-u)"; return ;;
    *) said='WARNING health check failed' ;;
  esac
  mkdir -p "${1%/*}"
  echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) collect $said: HTTP $code GET $2" > "$1"
}

# ask_server: what the server says of itself, beside its metrics: whether its engine lives, its release, its model and its longest context.
ask_server() {
  printf '%s' "$urls" | while IFS= read -r url; do
    server=${url%/metrics}
    place=$base/api/$(printf '%s' "$server" | tr -c 'A-Za-z0-9' _)
    ask_health "$place/health.txt" "$server/health"
    answer "$place/version.json" "$server/version" "gave no reply: name the metrics address of the server with -u"
    answer "$place/models.json" "$server/v1/models" "gave no reply, or needs a key: curl -H 'Authorization: Bearer KEY' $server/v1/models > models.json"
  done
}

sample_devices() {
  if have nvidia-smi; then
    limited nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,utilization.memory,memory.used,memory.total --format=csv >> "$base/gpu/nvidia-smi-samples.csv" 2> /dev/null
  fi
  {
    date -u +%Y-%m-%dT%H:%M:%SZ
    limited ps -eo pid,rss,args 2> /dev/null | grep -i '[v]llm' | mask | cut -c 1-400
  } >> "$base/process/rss.txt"
  # in the names and the form of node_exporter and cAdvisor, with milliseconds since 1970
  {
    now=$(date +%s)
    sed -n 's/^MemAvailable: *\([0-9]*\) kB.*/\1/p' "$proc/meminfo" 2> /dev/null | while read -r kib; do
      echo "node_memory_MemAvailable_bytes $((kib * 1024)) ${now}000"
    done
    printf '%s' "$own_groups" | while IFS= read -r place; do
      for counter in memory.current memory.usage_in_bytes; do
        [ -r "$place/$counter" ] && echo "container_memory_usage_bytes{id=\"${place#"$groups"}\"} $(cat "$place/$counter") ${now}000"
      done
    done
  } >> "$base/metrics/host-memory.prom"
}

# pack: the archive of what is there, with what is missing; the folder goes.
pack() {
  trap '' INT TERM HUP
  sort -u "$missing" -o "$missing"
  if [ -s "$missing" ]; then
    { echo "collect: what could not be had:"; sed 's/^/  /' "$missing"; } >&2
    told=$(cat "$missing")
    printf '%s\n' "$headline" "$told" > "$missing"
  fi
  if (cd "$out" && tar -cf - "$name" | gzip -c > "$name.tar.gz"); then
    rm -rf "$base"
    echo "$base.tar.gz"
  else
    echo "collect: could not pack; the files are in $base" >&2
    echo "$base"
  fi
}

interrupted() {
  lacks "collection" "was interrupted: what came after is not here; run it again with a shorter -d"
  pack
  exit 130
}
trap interrupted INT TERM HUP

section() { echo "collect: $1" >&2; }

section "host"
keep host/uname.txt uname -a
[ -r /etc/os-release ] && keep host/os-release.txt cat /etc/os-release
[ -r "$proc/meminfo" ] && keep host/meminfo.txt cat "$proc/meminfo"
keep host/df.txt df -k
{ [ -d /dev/shm ] && keep host/shm.txt df -k /dev/shm; } || lacks /dev/shm "is not there: run on the host or in the container of the server"

section "kernel log"
if have dmesg && limited dmesg > /dev/null 2>&1; then
  if limited dmesg -T > /dev/null 2>&1; then
    keep host/dmesg.txt dmesg -T
  else
    keep host/dmesg.txt dmesg
  fi
elif have journalctl && [ -n "$(limited journalctl -k -n 1 2> /dev/null)" ]; then
  keep host/journal-kernel.txt journalctl -k --no-pager -o short-iso --since "-$since"
else
  lacks "kernel log" "neither dmesg nor journalctl may be read: run as root, or ask for 'dmesg -T' of the node"
fi

section "devices"
mkdir -p "$base/gpu" "$base/process"
if have nvidia-smi; then
  keep gpu/nvidia-smi.txt nvidia-smi
  keep gpu/nvidia-smi-q.txt nvidia-smi -q
  keep gpu/nvidia-smi-L.txt nvidia-smi -L
  keep gpu/processes.csv nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv
  keep gpu/topology.txt nvidia-smi topo -m
elif have rocm-smi; then
  keep gpu/rocm-smi.txt rocm-smi
  keep gpu/rocm-smi-memory.txt rocm-smi --showmeminfo vram
else
  lacks "nvidia-smi" "is not on the PATH: run where the driver is, or ask for the output of nvidia-smi -q"
fi

# keep_output FOLDER PID: the log of a server outside a container, which is the file its output goes to.
keep_output() {
  for stream in 1 2; do
    target=$(ls -l "$1/fd/$stream" 2> /dev/null | sed -n 's/.* -> //p')
    case "$newline$outputs" in *"$newline$target$newline"*) continue ;; esac
    if [ -f "$1/fd/$stream" ] && [ -r "$1/fd/$stream" ]; then
      outputs=$outputs$target$newline
      keep "process/$2/output-$stream.log" cat "$1/fd/$stream"
    else
      case $target in
        '') lacks "output of process $2" "$1/fd may not be read: run as its user or as root" ;;
        pipe:* | socket:*) lacks "output of process $2" "goes to a $target: docker logs, kubectl logs or journalctl have it" ;;
      esac
    fi
  done
}

# keep_model FOLDER PID: config.json of a model that the command names by its folder.
keep_model() {
  tr '\000' '\n' < "$1/cmdline" | sed 's/^--[a-z_-]*=//' | while IFS= read -r word; do
    case $word in
      /*) places="$1/root$word $word" ;;
      -* | '' | *:*) continue ;;
      *) places="$1/cwd/$word" ;;
    esac
    for place in $places; do
      if [ -r "$place/config.json" ]; then
        keep "process/$2/model/config.json" cat "$place/config.json"
        return
      fi
    done
  done
}

# keep_logged_model FILE NAME: config.json of the local folder that a log names as its model, for a server that is gone.
keep_logged_model() {
  folder=$(sed -n "s/.*non-default args: .*'model\(_tag\)\{0,1\}': '\(\/[^']*\)'.*/\2/p" "$1" | tail -n 1)
  [ -n "$folder" ] && [ -r "$folder/config.json" ] && keep "logs/$2-model/config.json" cat "$folder/config.json"
}

# keep_group FOLDER PID: the counters of its memory group, of version 2 or 1 of control groups; outside of it the root's.
keep_group() {
  group=$(sed -n 's/^0:://p' "$1/cgroup" 2> /dev/null | head -n 1)
  older=$(sed -n 's/^[0-9]*:\([a-z_,]*,\)\{0,1\}memory\(,[a-z_,]*\)\{0,1\}://p' "$1/cgroup" 2> /dev/null | head -n 1)
  for place in ${older:+"$groups/memory$older"} ${group:+"$groups$group"} "$groups" "$groups/memory"; do
    found=
    for counter in memory.max memory.current memory.peak memory.events memory.limit_in_bytes memory.usage_in_bytes memory.max_usage_in_bytes; do
      [ -r "$place/$counter" ] || continue
      found=1
      echo "== $counter"
      cat "$place/$counter"
    done > "$base/process/$2/memory-group.txt"
    if [ -n "$found" ]; then
      own_groups=$own_groups$place$newline
      return
    fi
  done
  rm -f "$base/process/$2/memory-group.txt"
  lacks "memory group of process $2" "its counters are not below $groups: run on the host"
}

section "largest processes"
# names only: the command lines of others are theirs
{
  echo "PID RSS_KIB NAME"
  grep -H '^VmRSS:' "$proc"/[0-9]*/status 2> /dev/null | sed -n 's|.*/\([0-9]*\)/status:VmRSS:[^0-9]*\([0-9]*\).*|\2 \1|p' | sort -rn | head -n 25 |
    while read -r kib pid; do
      echo "$pid $kib $(sed -n 's/^Name:[^A-Za-z0-9]*//p' "$proc/$pid/status" 2> /dev/null)"
    done
} > "$base/host/largest-processes.txt"

section "server processes"
outputs=
own_groups=
mkdir -p "$base/metrics"
seen=
for folder in "$proc"/[0-9]*; do
  [ -r "$folder/cmdline" ] || continue
  tr '\000' ' ' < "$folder/cmdline" 2> /dev/null | grep -E -q 'vllm( serve|\.entrypoints)|VLLM::|EngineCore' || continue
  pid=${folder##*/}
  [ "$pid" = "$$" ] && continue
  seen=$seen$pid$newline
  mkdir -p "$base/process/$pid"
  { tr '\000' ' ' < "$folder/cmdline"; echo; } | mask > "$base/process/$pid/command.txt"
  keep "process/$pid/status.txt" cat "$folder/status"
  [ -r "$folder/limits" ] && keep "process/$pid/limits.txt" cat "$folder/limits"
  keep_output "$folder" "$pid"
  keep_model "$folder" "$pid"
  # by name, and never one that may hold a secret
  if [ -r "$folder/environ" ]; then
    tr '\000' '\n' < "$folder/environ" |
      grep -E '^(VLLM_[A-Z0-9_]*|PYTORCH_[A-Z]*_?ALLOC_CONF|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|NCCL_[A-Z0-9_]*|OMP_NUM_THREADS)=' |
      grep -E -v 'KEY|TOKEN|SECRET|PASS|CREDENTIAL' | mask > "$base/process/$pid/environment.env"
    [ -s "$base/process/$pid/environment.env" ] || rm -f "$base/process/$pid/environment.env"
  else
    lacks "environment of process $pid" "may not be read: run as its user or as root"
  fi
  keep_group "$folder" "$pid"
done
[ -n "$seen" ] || lacks "server process" "none is running here that this user may see: run on its host, as its user or as root"

section "versions"
if have pip; then
  limited pip list 2> /dev/null | grep -i -E '^(vllm|torch|triton|flash|xformers|nvidia-|transformers|flashinfer)' | mask > "$base/host/versions.txt"
  [ -s "$base/host/versions.txt" ] || { rm -f "$base/host/versions.txt"; lacks "pip list" "names no package of the engine: run inside its environment or container"; }
fi

section "logs"
printf '%s' "$logs" | while IFS= read -r file; do
  case $file in /*) whole=$file ;; *) whole=$PWD/$file ;; esac
  case "$newline$outputs" in *"$newline$whole$newline"*) continue ;; esac # the output of a server, which is there already
  if [ -r "$file" ]; then
    short=$(printf '%s' "$file" | tr -c 'A-Za-z0-9.' _)
    keep "logs/$short" cat "$file"
    keep_logged_model "$file" "$short"
  else
    lacks "$file" "cannot be read: check the path, or run as its owner"
  fi
done
if have docker; then
  if [ -z "$containers" ]; then
    containers=$(limited docker ps -a --format '{{.Names}} {{.Image}} {{.Command}}' 2> /dev/null | grep -i -E 'vllm|openai|llm' | cut -d ' ' -f 1)$newline
  fi
  printf '%s' "$containers" | while IFS= read -r container; do
    [ -n "$container" ] || continue
    keep "containers/$container/server.log" docker logs --timestamps --since "$since" "$container"
    # chosen fields only: the whole of `docker inspect` holds the environment
    keep "containers/$container/state.txt" docker inspect -f 'OOMKilled: {{.State.OOMKilled}}{{println}}ExitCode: {{.State.ExitCode}}{{println}}Status: {{.State.Status}}{{println}}RestartCount: {{.RestartCount}}{{println}}Memory: {{.HostConfig.Memory}}{{println}}ShmSize: {{.HostConfig.ShmSize}}' "$container"
    keep "containers/$container/command.txt" docker inspect -f '{{.Path}}{{range .Args}} {{.}}{{end}}' "$container"
  done
  [ -n "$(printf '%s' "$containers" | tr -d '\n')" ] || lacks "docker" "no container that looks like the server: name it with -c"
else
  lacks "docker" "is not on the PATH: name log files with -l"
fi
if have kubectl && [ -n "$pods" ]; then
  space=${namespace:-default}
  printf '%s' "$pods" | while IFS= read -r pod; do
    keep "pods/$pod/current.log" kubectl -n "$space" logs "$pod" --all-containers --timestamps --since="$since"
    keep "pods/$pod/previous.log" kubectl -n "$space" logs "$pod" --all-containers --timestamps --previous
    keep "pods/$pod/describe.txt" kubectl -n "$space" describe pod "$pod"
    keep "pods/$pod/top.txt" kubectl -n "$space" top pod "$pod" --containers
  done
  keep pods/events.txt kubectl -n "$space" get events --sort-by=.lastTimestamp
  keep pods/scalers.txt kubectl -n "$space" describe hpa
elif have kubectl; then
  lacks "kubectl" "no pod was named: use -n NAMESPACE -p POD"
fi
if have journalctl && [ -z "$(find "$base/containers" "$base/pods" "$base/logs" -name '*.log' 2> /dev/null | head -n 1)" ]; then
  limited journalctl --no-pager -o short-iso --since "-$since" 2> /dev/null | grep -i vllm | tail -c "$((limit_mib * 1048576))" | mask > "$base/logs-journal.txt"
  [ -s "$base/logs-journal.txt" ] || { rm -f "$base/logs-journal.txt"; lacks "journal" "holds no line of the server: name its log with -l"; }
fi

section "samples for $duration_s seconds"
[ -n "$urls" ] || urls="http://localhost:8000/metrics$newline"
scrape
ask_server
ends=$(($(date +%s) + duration_s))
while :; do
  sample_devices
  [ "$(date +%s)" -lt "$ends" ] || break
  sleep "$interval_s"
done
[ "$duration_s" -gt 0 ] && scrape

pack
