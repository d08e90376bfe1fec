# docker/compose.yaml: one machine, one image. Sourced by scripts/test-containers.

echo "docker/compose.yaml"

starts() { use_layout compose.yaml && compose up --detach --no-build && all_are_healthy; }
calls_itself() { compose exec -T trunkline trunkline call; }
keeps_ca() { docker cp "$(container_of trunkline):/var/lib/trunkline/tls/ca.pem" "$RUN/ca.pem"; }
# From another container, as a carrier.
is_called() { keeps_ca && carrier_call "$NUMBER" 127.0.0.1:5061 "$RUN/ca.pem"; }

has_limits() {
  local pid
  pid=$(inspect trunkline '{{.State.Pid}}')
  # tini is the first process: it passes signals on and buries orphans.
  is "$(cat "/proc/$pid/comm")" tini &&
    is "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")" "$([ "$(ulimit -Hn)" -lt 65536 ] && ulimit -Hn || echo 65536)" &&
    is "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")" 10001
}

# Redis, rtpengine, the SIP server and a gateway die, one after the other; the supervisor starts each again.
lives_on() {
  local program pid
  for program in redis-server rtpengine 'main.js sip-server' 'main.js gateway'; do
    pid=$(process_of "$program")
    [ -n "$pid" ] || { echo "no process runs $program"; docker top "$(container_of trunkline)" -eo pid,args; return 1; }
    kill -9 "$pid" && until_so is_replaced "$program" "$pid" && until_so compose exec -T trunkline docker/healthcheck 127.0.0.1 8080 || return 1
  done
  is_called
}
# The first one of the container whose command line has this text.
process_of() { docker top "$(container_of trunkline)" -eo pid,args | awk -v text="$1" 'NR > 1 && index($0, text) { print $1; exit }'; }
is_replaced() { [ -n "$(process_of "$1")" ] && [ "$(process_of "$1")" != "$2" ]; }

restarts_alone() {
  local before
  before=$(inspect trunkline '{{.State.StartedAt}}')
  # As when the process dies: the engine's own `kill` would count as a stop by the operator.
  kill -9 "$(inspect trunkline '{{.State.Pid}}')"
  until_so was_started_after "$before" && until_so is_healthy trunkline && has_number trunkline "$NUMBER" && is_called
}
was_started_after() { [ "$(inspect trunkline '{{.State.Running}} {{.State.StartedAt}}')" != "true $1" ] && [ "$(inspect trunkline '{{.State.Running}}')" = true ]; }

is_recreated() {
  docker kill "$(container_of trunkline)" && compose up --detach --no-build --force-recreate &&
    until_so is_healthy trunkline && has_number trunkline "$NUMBER" && is_called
}

# `docker compose stop` in the middle of a call: new calls get 503, /readyz says why, the call goes on until the caller hangs up.
drains() {
  local call stop began=$SECONDS status
  carrier_call "$NUMBER" 127.0.0.1:5061 "$RUN/ca.pem" --bot --seconds 15 >"$RUN/drained-call.txt" 2>&1 &
  call=$!
  until_so has_call || return 1
  compose stop &
  stop=$!
  until_so says_drain || return 1
  if carrier_call "$NUMBER" 127.0.0.1:5061 "$RUN/ca.pem" >"$RUN/refused-call.txt" 2>&1; then echo "a new call was answered"; return 1; fi
  grep 503 "$RUN/refused-call.txt" || { cat "$RUN/refused-call.txt"; return 1; }
  wait $call
  status=$?
  cat "$RUN/drained-call.txt"
  is "$status" 0 || return 1
  wait $stop || return 1
  # It exits by itself, long before the engine would kill it.
  is "$(inspect trunkline '{{.State.ExitCode}} {{.State.OOMKilled}}')" "0 false" && [ $((SECONDS - began)) -lt 300 ]
}
has_call() { compose exec -T --env "TRUNKLINE_API_KEY=$KEY" trunkline trunkline calls list --live | grep -F "$NUMBER"; }
says_drain() { in_network curl -s http://127.0.0.1:8080/readyz | grep -F 'shutting down'; }

serves_console() { in_network curl -sf http://127.0.0.1:8080/console/ | grep -iq '<title>'; }

check "starts and is healthy" starts
check "the test call of the documentation goes through, with media and keys" calls_itself
check "an organization, a key and a number are made by the documented commands" attach_number trunkline "$NUMBER"
check "a carrier's call goes through" is_called
check "its console is served" serves_console
check "no process has root or a capability, and / is read-only" all_are_confined
check "it has its user, its open files and tini" has_limits
check "it goes on when Redis, rtpengine or a gateway process is killed" lives_on
check "it starts again when its first process is killed, with its numbers" restarts_alone
check "a new container has the numbers of the old one" is_recreated
check "it drains: the call goes on, new calls get 503, /readyz says so" drains
check "it is removed, with its volumes" remove_layout
