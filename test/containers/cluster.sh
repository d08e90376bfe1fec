# docker/compose.cluster.yaml: many machines, each service at a loopback address of its own. Sourced by scripts/test-containers.

BALANCER=127.30.0.10:5061

echo "docker/compose.cluster.yaml"

cluster_starts() {
  make_certificates 127.30.0.10 127.30.0.11 127.30.0.12 && use_layout compose.cluster.yaml && compose up --detach --no-build && all_are_healthy
}
cluster_call() { carrier_call "$NUMBER" "$BALANCER" "$RUN/docker/tls/ca.pem" "$@"; }
# The balancer has to see a server's answer to OPTIONS before it sends calls there.
cluster_answers() { until_so cluster_call; }

# The certificate's key as openssl makes it, mode 0600 and root's: the balancer says what it needs.
balancer_names_the_key() {
  local key="$RUN/docker/tls/server-key.pem" said
  chown 0:0 "$key" && chmod 600 "$key"
  compose up --detach --no-build --no-deps --force-recreate balancer
  until_so balancer_said 'chown 10001:0 docker/tls/server-key.pem'
  said=$?
  chown 10001:0 "$key" && chmod 640 "$key" && compose up --detach --no-build --no-deps --force-recreate balancer && cluster_answers && return $said
}
balancer_said() { compose logs balancer | grep -F "$1"; }

cluster_survives() {
  local service
  for service in balancer sip-1 gateway-2 rtpengine-1 redis-primary sentinel-2; do
    echo "== $service"
    kill -9 "$(inspect "$service" '{{.State.Pid}}')"
    cluster_answers && compose up --detach --no-build --no-deps --force-recreate "$service" && cluster_answers || return 1
  done
  all_run && has_number gateway-1 "$NUMBER"
}
all_run() { is "$(compose ps --all --format '{{.Service}} {{.State}}' | grep -v ' running$')" ""; }

check "starts, and every service is healthy" cluster_starts
check "a number is attached by the documented commands" attach_number gateway-1 "$NUMBER"
check "a carrier's call goes through the balancer" cluster_answers
check "no process has root's rights or a capability, and / is read-only" all_are_confined
check "no secret is among the arguments" has_no_secret_in_arguments
check "the balancer says why it cannot read the key" balancer_names_the_key
check "each kind of container can be killed and made anew; calls go through" cluster_survives
check "it is removed, with its volumes" remove_layout
