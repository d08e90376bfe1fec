# What the tests of each layout share. Sourced by scripts/test-containers, after engine.sh.

VERSION=$(node -p 'require("./package.json").version')
# One more than any start takes on a busy machine: it is a guard, not a measure.
GUARD_S=180
LAYOUT=
# What the layouts are started with.
NUMBER=+15550100177
export PUBLIC_ADDRESS=127.0.0.1 BIND_ADDRESS=127.0.0.1 SIP_HOST=sip.trunkline.test CONTROL_SECRET=0123456789abcdef0123456789abcdef

engine_for_builds() { step "Docker engine for builds" start_engine host && step "images of the base" import_base; }
engine_for_containers() { step "Docker engine with loopback alone" start_engine isolated && copy_files; }

build_image() { # NAME TARGET
  docker build --network host -f docker/Dockerfile -t "$1:$VERSION" --target "$2" .
}

# What no registry gives here, under the names that the layouts have: Debian's Redis, and drachtio-server played by the embedded SIP server.
build_others() {
  copy_files &&
    docker build --network host -t redis:7.4 -f test/containers/redis.Dockerfile test/containers &&
    docker build -t "$(sed -nE 's/^ *image: (drachtio\/\S+)$/\1/p' docker/compose.drachtio.yaml)" -f test/containers/drachtio.Dockerfile \
      --build-arg "VERSION=$VERSION" test/containers &&
    docker build --network host -t "trunkline-balancer:$VERSION" "$RUN/docker/kamailio"
}

images_are_as_said() {
  local name
  for name in trunkline trunkline-all; do
    is "$(docker run --rm --network none --entrypoint id "$name:$VERSION")" 'uid=10001(trunkline) gid=10001(trunkline) groups=10001(trunkline)' || return 1
    is "$(docker image inspect --format '{{index .Config.Labels "org.opencontainers.image.version"}}' "$name:$VERSION")" "$VERSION" || return 1
    # A build of the image has what runs, the bill of materials, and nothing else.
    docker run --rm --network none --entrypoint sh "$name:$VERSION" -c \
      'test ! -e test && test ! -e src && test ! -e node_modules/typescript && test -s dist/sbom.json && test -z "$(find dist -name "*.test.*")"' || return 1
  done
}

is_small() {
  local whole base
  whole=$(docker image inspect --format '{{.Size}}' "trunkline:$VERSION")
  base=$(docker image inspect --format '{{.Size}}' node:24-bookworm-slim)
  echo "$(((whole - base) / 1000000)) MB above the base; the image with everything: $((($(docker image inspect --format '{{.Size}}' "trunkline-all:$VERSION") - base) / 1000000)) MB"
  [ $((whole - base)) -le 120000000 ]
}

# Built once more from nothing, the image has the same files outside Debian's packages.
builds_the_same_again() {
  files_of "trunkline:$VERSION" >"$RUN/files.txt"
  docker build --network host --no-cache -f docker/Dockerfile -t trunkline:again --target gateway . &&
    files_of trunkline:again >"$RUN/files-again.txt" && docker image rm trunkline:again && diff "$RUN/files.txt" "$RUN/files-again.txt"
}
files_of() { docker run --rm --network none --entrypoint sh "$1" -c 'find /app -type f -exec sha256sum {} + | sort -k 2'; }

# A platform such as OpenShift gives a container any user id: it needs a data directory that this user may write to, and nothing else.
runs_as_any_user() {
  docker run --rm --network none --read-only --cap-drop ALL --user 54321:54321 --tmpfs /tmp --tmpfs /data:uid=54321,mode=0700 --env TRUNKLINE_DATA_DIR=/data \
    --env TRUNKLINE_BIND_ADDRESS=127.0.0.1 --name trunkline-any-user --detach "trunkline-all:$VERSION" || return 1
  local end=$((SECONDS + GUARD_S)) status=1
  while [ $SECONDS -lt $end ]; do
    if docker exec trunkline-any-user trunkline health; then status=0; break; fi
    sleep 1
  done
  docker logs trunkline-any-user | tail -n 20
  [ $status = 0 ] && docker exec trunkline-any-user trunkline call
  status=$?
  docker rm --force trunkline-any-user
  return $status
}

is() { # ACTUAL EXPECTED
  [ "$1" = "$2" ] || { printf 'expected: %s\nactual:   %s\n' "$2" "$1"; return 1; }
}

# The layouts as they are, but for addresses: those of compose.cluster.yaml become loopback addresses, and each service listens at its
# own one in the network namespace. The embedded SIP server has its control port at 127.0.0.1, so the two have different ports.
copy_files() {
  [ ! -d "$RUN/docker" ] || return 0
  cp -r docker "$RUN/docker" && rm -rf "$RUN/docker/tls" && mkdir "$RUN/docker/tls" || return 1
  sed -i 's/172\.30\.0\./127.30.0./g' "$RUN/docker/compose.cluster.yaml" "$RUN"/docker/kamailio/* "$RUN"/docker/redis/*
  # shellcheck disable=SC2016
  sed -i -E -e 's/(outside\/[0-9.]+)!\$\{PUBLIC_ADDRESS[^}]*\}/\1/' -e 's/(--address 127\.30\.0\.12 --port) 9022/\1 9023/' \
    -e 's/URL: 127\.30\.0\.11:9022/URL: 127.0.0.1:9022/' -e 's/URL: 127\.30\.0\.12:9022/URL: 127.0.0.1:9023/' "$RUN/docker/compose.cluster.yaml"
}

# use_layout FILE: the layout for `compose`. What this machine does not allow is changed: more open files than root has.
use_layout() {
  local service
  LAYOUT=$1
  {
    echo "services:"
    for service in $(docker compose -f "$RUN/docker/$1" config --services); do
      echo "  $service:"
      echo "    pull_policy: never"
      if [ "$(ulimit -Hn)" -lt 65536 ]; then echo "    ulimits: { nofile: $(ulimit -Hn) }"; fi
      if grep -q '^networks:' "$RUN/docker/$1"; then printf '    network_mode: host\n    networks: !reset null\n    ports: !reset null\n'; fi
    done
  } >"$RUN/override.yaml"
}

compose() { docker compose -f "$RUN/docker/$LAYOUT" -f "$RUN/override.yaml" "$@"; }

remove_layout() {
  [ -n "$LAYOUT" ] || return 0
  compose down --volumes --timeout 5
  LAYOUT=
}

# Waits for what the command says; shows the logs of the layout when the guard ends it.
until_so() { # COMMAND...
  local end=$((SECONDS + GUARD_S))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "not within $GUARD_S s: $*"; compose ps --all; compose logs --tail 30; return 1; }
    sleep 0.5
  done
}

container_of() { compose ps --all --quiet "$1"; }
inspect() { docker inspect --format "$2" "$(container_of "$1")"; } # SERVICE FORMAT
is_healthy() { [ "$(inspect "$1" '{{.State.Health.Status}}')" = healthy ]; }

# Every container runs, those with a health check are healthy, and none was started twice.
all_are_healthy() {
  local service
  for service in $(compose config --services); do
    if [ "$(inspect "$service" '{{if .State.Health}}yes{{end}}')" = yes ]; then until_so is_healthy "$service" || return 1; fi
    is "$service $(inspect "$service" '{{.State.Running}} {{.RestartCount}}')" "$service true 0" || { compose logs --tail 30 "$service"; return 1; }
  done
}

# Every process of every container: no capability, no way to one, no root with rights; the file system cannot be written to.
all_are_confined() {
  local service id pid
  for service in $(compose config --services); do
    id=$(container_of "$service")
    is "$service $(docker inspect --format '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.Privileged}}' "$id")" "$service true [ALL] false" || return 1
    for pid in $(docker top "$id" -eo pid | tail -n +2); do
      is "$service $(awk '/^(CapEff|CapPrm|CapBnd|NoNewPrivs):/ { printf "%s ", $2 }' "/proc/$pid/status")" \
        "$service 0000000000000000 0000000000000000 0000000000000000 1 " || return 1
    done
    if compose exec -T "$service" sh -c ': >/written' 2>/dev/null; then echo "$service can write to /"; return 1; fi
  done
}

has_no_secret_in_arguments() {
  local id
  for id in $(compose ps --quiet); do
    if docker top "$id" -eo args | grep -F "$CONTROL_SECRET"; then return 1; fi
  done
}

# A carrier in a container of its own: it lives on while the layout ends.
carrier_call() { # NUMBER TARGET CA OPTION...
  local number=$1 target=$2 ca=$3
  shift 3
  docker run --rm --network host --read-only --tmpfs /tmp --volume "$ca:/ca.pem:ro" "trunkline:$VERSION" call "$number" --target "$target" --ca /ca.pem "$@"
}

# make_certificates ADDRESS…: a CA and a certificate of the trunk, as an operator has them. The key is for the user of the containers alone.
make_certificates() {
  local tls="$RUN/docker/tls" names=DNS:sip.trunkline.test address
  for address in "$@"; do names="$names,IP:$address"; done
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Test CA" -keyout "$RUN/ca-key.pem" -out "$tls/ca.pem" 2>/dev/null &&
    openssl req -newkey rsa:2048 -nodes -subj "/CN=sip.trunkline.test" -keyout "$tls/server-key.pem" -out "$RUN/server.csr" 2>/dev/null &&
    openssl x509 -req -in "$RUN/server.csr" -CA "$tls/ca.pem" -CAkey "$RUN/ca-key.pem" -CAcreateserial -days 2 \
      -extfile <(echo "subjectAltName=$names") -out "$tls/server.pem" 2>/dev/null &&
    chown 10001:0 "$tls/server-key.pem" && chmod 640 "$tls/server-key.pem"
}

# attach_number GATEWAY NUMBER: an organization with a key of its own and a number, by the commands of the documentation.
attach_number() {
  local key
  compose exec -T "$1" trunkline org create "My company" --sip || return 1
  key=$(compose exec -T "$1" trunkline key create "My company" | grep -oE 'tl_\S+' | head -n 1)
  KEY=$key
  compose exec -T --env "TRUNKLINE_API_KEY=$key" "$1" trunkline number attach "$2"
}

has_number() { # GATEWAY NUMBER
  compose exec -T --env "TRUNKLINE_API_KEY=$KEY" "$1" trunkline number list | grep -F "$2"
}
