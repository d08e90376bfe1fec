# What the scripts beside it share. Sourced, never run.
# Every step prints one line with the time it took, asks nothing, and does nothing when nothing is missing.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOG_DIR="$ROOT/.setup-log"

# Where `date` has no milliseconds (macOS), whole seconds do.
now_ms() {
  local now
  now=$(date +%s%3N)
  case "$now" in *[!0-9]*) echo "$(date +%s)000" ;; *) echo "$now" ;; esac
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# While a step runs: every 10 s how long it has run, and the last line that it printed.
show_progress() { # TITLE LOG
  local seconds=0 sleeping=
  trap '[ -z "$sleeping" ] || kill $sleeping 2>/dev/null; exit' TERM
  while :; do
    # Without our output: left over by a kill in this moment, it would keep that open.
    sleep 10 >/dev/null 2>&1 &
    sleeping=$!
    wait $sleeping
    seconds=$((seconds + 10))
    printf '  ...   %-44s %6d s   %s\n' "$1" $seconds "$(tail -n 1 "$2" | tr -d '\r\033' | cut -c 1-100)"
  done
}

# step TITLE COMMAND...: runs the command with its output kept in a file, shows that file when it fails.
step() {
  local title=$1; shift
  local started log
  started=$(now_ms)
  mkdir -p "$LOG_DIR"
  log="$LOG_DIR/$(tr -cs 'a-zA-Z0-9' '-' <<<"$title" | tr '[:upper:]' '[:lower:]').log"
  : >"$log"
  show_progress "$title" "$log" &
  local progress=$! status=0
  "$@" >"$log" 2>&1 || status=$?
  # A step that is over at once ends it before its trap is there: what it ends with is no matter, and must not end the script.
  kill $progress 2>/dev/null || true
  wait $progress 2>/dev/null || true
  if [ $status = 0 ]; then
    printf '  ok    %-44s %6d ms%s\n' "$title" $(($(now_ms) - started)) "${STEP_NOTE:+  ($STEP_NOTE)}"
    STEP_NOTE=
    return 0
  fi
  printf '  FAIL  %-44s %6d ms\n\n' "$title" $(($(now_ms) - started))
  tail -n 60 "$log"
  printf '\n%s failed. The whole output is in %s\n' "$title" "$log"
  return 1
}

# hash_of PATH...: one hash over the names and contents of the files below the paths.
hash_of() {
  (cd "$ROOT" && find "$@" -type f -not -path '*/build/*' -print 2>/dev/null | LC_ALL=C sort | while IFS= read -r file; do printf '%s\0' "$file"; done |
    xargs -0 "$(command -v sha256sum || command -v shasum)") | sha256 | cut -d' ' -f1
}

# once TITLE STAMP MORE PATH... -- COMMAND...: runs the step unless the stamp says that it ran with what is below the paths, and with MORE.
# Their change times show quickly that nothing was written since (no copy keeps those); where one is newer, the hash decides. The stamp's
# own time is that of the step's beginning: what is edited meanwhile is new.
once() {
  local title=$1 stamp=$2 more=$3 paths=() hash next
  shift 3
  while [ "$1" != -- ]; do paths+=("$1"); shift; done
  shift
  if [ -f "$stamp" ] && [ "$(cut -d' ' -f2- "$stamp")" = "$more" ] && is_older "$stamp" "${paths[@]}"; then
    STEP_NOTE=unchanged step "$title" true
    return
  fi
  mkdir -p "$LOG_DIR"
  next=$(mktemp "$LOG_DIR/stamp.XXXXXX")
  hash=$(hash_of "${paths[@]}")
  printf '%s %s' "$hash" "$more" >"$next"
  if [ -f "$stamp" ] && cmp -s "$stamp" "$next"; then
    STEP_NOTE=unchanged step "$title" true
  else
    step "$title" "$@" || { rm -f "$next"; return 1; }
  fi
  mv "$next" "$stamp"
}

# True when nothing at or below the paths was written, renamed or removed since the file was.
is_older() { # FILE PATH...
  local file=$1
  shift
  [ -z "$(cd "$ROOT" && find "$@" -not -path '*/build' -not -path '*/build/*' -cnewer "$file" -print 2>&1 | head -n 1)" ]
}

# has NEED: whether a program or library is there, whoever installed it. A need has the name of its Debian package.
has() { # PACKAGE
  case $1 in
    rtpengine-daemon) has_program rtpengine ;;
    libsrtp2-dev) pkg-config --exists libsrtp2 2>/dev/null || [ -e /usr/include/srtp2/srtp.h ] || [ -e /usr/local/include/srtp2/srtp.h ] ;;
    libspeexdsp-dev) pkg-config --exists speexdsp 2>/dev/null || [ -e /usr/include/speex/speex_jitter.h ] || [ -e /usr/local/include/speex/speex_jitter.h ] ;;
    g++) has_program g++ || has_program c++ ;;
    pkg-config) has_program pkg-config || has_program pkgconf ;;
    sip-tester) has_program sipp ;;
    kamailio-tls-modules) has_kamailio_module tls ;;
    kamailio-redis-modules) has_kamailio_module ndb_redis ;;
    chromium) has_program chromium || has_program chromium-browser || has_program google-chrome ;;
    prometheus) has_program promtool ;;
    docker.io) has_program dockerd && has_program docker ;;
    python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    default-jdk-headless) has_program javac ;;
    maven) has_program mvn ;;
    *) has_program "$1" ;;
  esac
}

# Debian has some in places that are on root's path only.
has_program() { PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin" command -v "$1" >/dev/null; }

has_kamailio_module() {
  local file
  for file in /usr/lib/kamailio/modules/"$1".so /usr/lib*/*/kamailio/modules/"$1".so /usr/lib64/kamailio/modules/"$1".so; do
    [ -e "$file" ] && return
  done
  return 1
}

missing_packages() {
  local package
  for package in "$@"; do has "$package" || printf '%s ' "$package"; done
}

# What a person looks for who has no apt-get.
meaning_of() { # PACKAGE
  case $1 in
    rtpengine-daemon) echo 'rtpengine (the program)' ;;
    libsrtp2-dev) echo 'libsrtp 2 with its headers (srtp2/srtp.h)' ;;
    libspeexdsp-dev) echo 'libspeexdsp with its headers (speex/speex_jitter.h)' ;;
    g++) echo 'a C++ compiler (g++ or c++)' ;;
    sip-tester) echo 'SIPp (sipp), with TLS' ;;
    kamailio-*-modules) echo "Kamailio's modules of Debian's package $1" ;;
    prometheus) echo 'promtool, of Prometheus' ;;
    python3-venv) echo "Python's modules venv and ensurepip" ;;
    default-jdk-headless) echo 'a JDK (javac), 11 or newer' ;;
    *) echo "$1" ;;
  esac
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

installed_packages() { dpkg-query -W -f='${Package} ${db:Status-Status}\n' | awk '$2 == "installed" { print $1 }' | LC_ALL=C sort; }

# The services of these packages: systemd units and init scripts.
units_of() {
  dpkg-query -L "$@" 2>/dev/null | grep -E '^(/usr)?/lib/systemd/system/[^/@]+\.(service|socket|timer)$|^/etc/init\.d/[^/]+$' || true
}

# Installs Debian packages without starting their services, now or at the next boot.
# The services belong to the system; Trunkline starts its own processes with its own directories and ports.
install_packages() {
  local packages=("$@") policy=/usr/sbin/policy-rc.d wrote_policy=0 before new unit name status=0
  before=$(installed_packages)
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod 0755 "$policy"
    wrote_policy=1
    # shellcheck disable=SC2064
    trap "as_root rm -f $policy" EXIT
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}" || status=$?
  if [ "$wrote_policy" = 1 ]; then as_root rm -f "$policy"; trap - EXIT; fi
  [ "$status" = 0 ] || return "$status"
  # Only units of packages that this run installed, those it pulled in included: the machine's own services stay as they are.
  new=$(LC_ALL=C comm -13 <(echo "$before") <(installed_packages))
  [ -n "$new" ] || return 0
  # shellcheck disable=SC2086
  units_of $new | while read -r unit; do
    name=$(basename "$unit")
    if [[ $unit == *systemd* ]]; then
      if command -v systemctl >/dev/null; then as_root systemctl disable "$name" || true; fi
    else
      as_root update-rc.d "$name" disable || true
    fi
  done
}

ensure_packages() {
  local missing package
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || { STEP_NOTE="nothing missing"; step "Debian packages" true; return; }
  if ! command -v apt-get >/dev/null; then
    echo 'This machine has no apt-get. Trunkline looked for these and did not find them; install them and start again:'
    # shellcheck disable=SC2086
    for package in $missing; do printf '  %s\n' "$(meaning_of "$package")"; done
    echo 'It is tested on Debian 12 and 13; on other systems it may work and was not tried.'
    return 1
  fi
  if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    printf 'Debian packages are missing and sudo would ask for a password. Run this once, then start again:\n\n  sudo %s/scripts/install-packages %s\n\n' "$ROOT" "$missing"
    return 1
  fi
  STEP_NOTE="installed: $missing"
  # shellcheck disable=SC2086
  step "Debian packages" install_packages $missing
}

NODE_HELP='Trunkline needs Node.js 20.20, 22, 24 (recommended) or 26. Get it from https://nodejs.org/en/download, or with a version manager: nvm install 24'

ensure_node() {
  local is_supported
  if ! command -v node >/dev/null; then echo "Node.js is not installed. $NODE_HELP"; return 1; fi
  is_supported=$(node -p 'const [a,b]=process.versions.node.split(".").map(Number); a===20?b>=20:a>20&&a<27')
  [ "$is_supported" = true ] || { echo "Node.js $(node --version) is not supported. $NODE_HELP"; return 1; }
}

ensure_npm_packages() {
  once "npm packages" "$ROOT/node_modules/.trunkline-lock" "" package.json package-lock.json .npmrc -- install_npm_packages
}

install_npm_packages() {
  if [ -L "$ROOT/node_modules" ]; then
    echo "trunkline: node_modules is a link, and npm ci would empty what it points to: replace it by a directory of this checkout"
    return 1
  fi
  npm --prefix "$ROOT" ci --no-fund --no-audit --loglevel=error
}

# Node-API is the same for every Node.js: the addon depends on its sources and on libsrtp.
ensure_native() {
  once "native addon" "$ROOT/native/build/.hash" "$(pkg-config --modversion libsrtp2 2>/dev/null)" native -- build_native
}

build_native() {
  local prefix nodedir=()
  # process.execPath, not process.config: a distribution's build prefix need not be where it is installed.
  prefix=$(node -p 'require("path").resolve(process.execPath, "../..")')
  [ -f "$prefix/include/node/node_api.h" ] && nodedir=("--nodedir=$prefix")
  (cd "$ROOT/native" && node "$ROOT/node_modules/node-gyp/bin/node-gyp.js" rebuild --silent "${nodedir[@]}")
}

# The types of the API's client are made from the API's own document, before anything is compiled or checked.
ensure_client_types() {
  [ -f "$ROOT/src/client/types.ts" ] || rm -f "$ROOT/dist/.client-types"
  once "types of the API's client" "$ROOT/dist/.client-types" "" src/gateway src/lib src/rtp src/agent-protocol scripts/client-types.ts scripts/api-documents.ts \
    package-lock.json -- make_client_types
}

make_client_types() { mkdir -p "$ROOT/dist" && (cd "$ROOT" && node_modules/.bin/tsx scripts/client-types.ts); }

ensure_build() {
  ensure_client_types || return 1
  once "TypeScript build" "$ROOT/dist/.hash" "" src tsconfig.json tsconfig.build.json package-lock.json scripts/bundle.ts -- build_typescript || return 1
  # What the gateway serves under /console; the client of the API is a part of it.
  once "console" "$ROOT/dist/console/.hash" "" web src/client tsconfig.json package-lock.json -- build_console
}

build_console() { (cd "$ROOT" && node node_modules/vite/bin/vite.js build -c web/vite.config.ts); }

build_typescript() {
  # The console beside it is built by itself.
  mkdir -p "$ROOT/dist"
  find "$ROOT/dist" -mindepth 1 -maxdepth 1 ! -name console ! -name .client-types -exec rm -rf {} +
  # `npm run check` checks the types. By TypeScript 6: 7.0.2 writes `new (f().C)()` without the parentheses, which is another program.
  (cd "$ROOT" && node node_modules/typescript/bin/tsc -p tsconfig.build.json --noCheck) || return 1
  # Lua scripts are read beside the compiled file that names them.
  (cd "$ROOT/src" && find . -name '*.lua' -exec cp --parents {} "$ROOT/dist/" \;)
  (cd "$ROOT" && node_modules/.bin/tsx scripts/bundle.ts) || return 1
  chmod +x "$ROOT/dist/cli/main.js"
  # `npx trunkline` in the checkout finds the command here.
  ln -sf ../../dist/cli/main.js "$ROOT/node_modules/.bin/trunkline"
}

# What the build needs; what the product starts; what else each test run and tool needs.
BUILD_PACKAGES=(libsrtp2-dev g++ make python3 pkg-config)
RUNTIME_PACKAGES=("${BUILD_PACKAGES[@]}" redis-server rtpengine-daemon espeak-ng openssl)
LOAD_PACKAGES=(sip-tester)
BALANCER_PACKAGES=(kamailio kamailio-tls-modules)
SYSTEM_TEST_PACKAGES=("${LOAD_PACKAGES[@]}" "${BALANCER_PACKAGES[@]}" baresip chromium prometheus logrotate sngrep)
CLIENT_TEST_PACKAGES=(python3-venv default-jdk-headless maven)
CONTAINER_TEST_PACKAGES=(docker.io debootstrap tini openssl curl python3-venv)
BENCH_PACKAGES=("${BALANCER_PACKAGES[@]}" kamailio-redis-modules libspeexdsp-dev)
