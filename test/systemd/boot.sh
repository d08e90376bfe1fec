#!/usr/bin/env bash
# `npm run systemd`: the units of docker/systemd under a systemd of their own, in namespaces of their own; nothing of this machine changes. The
# probe places calls, and restarts and kills each unit. Needs root and systemd; not part of `npm test`.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
if [ "${1:-}" != inside ]; then
  . "$ROOT/scripts/lib.sh"
  cd "$ROOT"
  ensure_node && ensure_packages "${RUNTIME_PACKAGES[@]}" && ensure_npm_packages && ensure_native && ensure_build
  [ -x /lib/systemd/systemd ] || {
    echo "trunkline: systemd is not installed (Debian: systemd)" >&2
    exit 1
  }
  out=$(mktemp -d)
  unshare --mount --pid --net --uts --ipc --fork --mount-proc bash "$0" inside "$out" >"$out/systemd.log" 2>&1 || true
  cat "$out/probe.log" 2>/dev/null || tail -n 50 "$out/systemd.log"
  grep -q '^holds$' "$out/probe.log" || {
    echo "logs: $out"
    exit 1
  }
  rm -rf "$out"
  exit
fi
out=$2
mount --make-rprivate /
layers=$out/layers
mkdir -p "$layers"
mount -t tmpfs tmpfs "$layers"
for path in etc var opt; do
  mkdir -p "$layers/$path/upper" "$layers/$path/work"
  mount -t overlay overlay -o "lowerdir=/$path,upperdir=$layers/$path/upper,workdir=$layers/$path/work" "/$path"
done
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/systemd /opt/trunkline /etc/trunkline "$layers/units"
mount --bind "$ROOT" /opt/trunkline
ip link set lo up
hostname trunkline-units

cp docker/systemd/trunkline.sysusers /run/trunkline.conf
systemd-sysusers /run/trunkline.conf
units=$layers/units
cp -r docker/systemd/*.service docker/systemd/*.target docker/systemd/*.socket docker/systemd/*.service.d "$units"
cp /lib/systemd/system/redis-server.service /lib/systemd/system/rtpengine-daemon.service "$units"
sed -i 's/192\.0\.2\.10/127.0.0.1/' "$units"/*.socket
printf '[Unit]\n' | tee "$units/network-online.target" "$units/network.target" "$units/remote-fs.target" "$units/sysinit.target" >"$units/basic.target"
mkdir "$units/trunkline.target.wants"
ln -s ../trunkline-gateway@.service "$units/trunkline.target.wants/trunkline-gateway@1.service"
ln -s ../trunkline-gateway@.service "$units/trunkline.target.wants/trunkline-gateway@2.service"
ln -s ../trunkline-sip-server.socket "$units/trunkline.target.wants/trunkline-sip-server.socket"
for unit in trunkline-sip-server trunkline-gateway@; do
  mkdir -p "$units/$unit.service.d"
  printf '[Service]\nStandardOutput=append:%s\n' "$out/$unit.log" >"$units/$unit.service.d/log.conf"
done
cat >"$units/probe.service" <<END
[Unit]
After=trunkline.target
[Service]
Type=oneshot
TimeoutStartSec=5min
WorkingDirectory=$ROOT
Environment=PATH=$PATH OUT=$out
ExecStart=$ROOT/node_modules/.bin/tsx test/systemd/probe.ts
StandardOutput=file:$out/probe.log
StandardError=inherit
ExecStopPost=systemctl --no-block --force exit 0
END
cat >"$units/probed.target" <<END
[Unit]
Wants=trunkline.target probe.service
END

sed -i 's/^table = .*/table = -1/; s/^interface = .*/interface = 127.0.0.1/' /etc/rtpengine/rtpengine.conf
sed -i 's/^MANAGE_IPTABLES=.*/MANAGE_IPTABLES=no/' /etc/default/rtpengine-daemon
# The probe's carriers have certificates of no CA.
sed 's/^bind_address: .*/bind_address: 127.0.0.1/; s/^sip:/sip:\n  verify_peers: false/; s/drain_ms: .*/drain_ms: 5000/' docker/systemd/config.yaml >/etc/trunkline/config.yaml
cat >>/etc/trunkline/config.yaml <<END
drachtio:
  url: 127.0.0.1:9022
redis:
  url: redis://127.0.0.1:6379
rtpengine:
  address: 127.0.0.1:2223
END
echo TRUNKLINE_DRACHTIO_SECRET=the-secret-of-both-sides >/etc/trunkline/secrets.env
for n in 1 2; do
  cat >"/etc/trunkline/gateway-$n.env" <<END
TRUNKLINE_GATEWAY_INSTANCE=gateway-$n
TRUNKLINE_HTTP_PORT=808$n
TRUNKLINE_MEDIA_PORT_MIN=2${n}000
TRUNKLINE_MEDIA_PORT_MAX=2${n}099
END
done
chown -R trunkline:trunkline /etc/trunkline
export container=lxc SYSTEMD_UNIT_PATH=$units
exec /lib/systemd/systemd --system --unit=probed.target --log-target=console --log-level=info
