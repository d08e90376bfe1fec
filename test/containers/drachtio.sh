# docker/compose.drachtio.yaml: one machine, each part a service. Sourced by scripts/test-containers.

echo "docker/compose.drachtio.yaml"

drachtio_starts() { make_certificates 127.0.0.1 && use_layout compose.drachtio.yaml && compose up --detach --no-build && all_are_healthy; }
drachtio_call() { carrier_call "$NUMBER" 127.0.0.1:5061 "$RUN/docker/tls/ca.pem" "$@"; }

# kill_and_recreate SERVICE: it dies and the engine starts it again; then it is removed and made anew.
kill_and_recreate() {
  local before
  before=$(inspect "$1" '{{.State.StartedAt}}')
  kill -9 "$(inspect "$1" '{{.State.Pid}}')" && until_so was_started_again "$1" "$before" && until_so is_whole || return 1
  compose up --detach --no-build --no-deps --force-recreate "$1" && until_so is_whole
}
was_started_again() { [ "$(inspect "$1" '{{.State.Running}}')" = true ] && [ "$(inspect "$1" '{{.State.StartedAt}}')" != "$2" ]; }
is_whole() { compose exec -T gateway docker/healthcheck 127.0.0.1 8080; }

drachtio_survives() {
  local service
  for service in redis rtpengine sip gateway; do
    echo "== $service"
    kill_and_recreate "$service" && has_number gateway "$NUMBER" && drachtio_call || return 1
  done
}

# A call is held while the only media relay dies: it moves to the next one, and is heard again.
call_survives_relay() {
  local call
  drachtio_call --bot --seconds 20 --json >"$RUN/moved-call.json" &
  call=$!
  until_so gateway_has_call || return 1
  kill -9 "$(inspect rtpengine '{{.State.Pid}}')"
  # What got lost between the two relays fails the call's own report. It was heard for most of its 20 s, until the caller hung up.
  wait $call
  node -e '
    const { hung_up_by, media, final_status } = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
    console.log({ hung_up_by, final_status, media });
    process.exitCode = final_status === 200 && hung_up_by === "carrier" && media.packets_received > 500 && media.rtcp_received > 0 ? 0 : 1;
  ' "$RUN/moved-call.json"
}
gateway_has_call() { compose exec -T --env "TRUNKLINE_API_KEY=$KEY" gateway trunkline calls list --live | grep -F "$NUMBER"; }

drachtio_stops() {
  compose stop || return 1
  is "$(inspect gateway '{{.State.ExitCode}}') $(inspect redis '{{.State.ExitCode}}') $(inspect rtpengine '{{.State.ExitCode}}')" "0 0 0"
}

check "starts, and every service is healthy" drachtio_starts
check "a number is attached by the documented commands" attach_number gateway "$NUMBER"
check "a carrier's call goes through" drachtio_call
check "no process has root's rights or a capability, and / is read-only" all_are_confined
check "no secret is among the arguments" has_no_secret_in_arguments
check "a call goes on when the media relay is killed" call_survives_relay
check "each container can be killed and made anew; number and calls stay" drachtio_survives
check "every service ends by itself when it is stopped" drachtio_stops
check "it is removed, with its volumes" remove_layout
