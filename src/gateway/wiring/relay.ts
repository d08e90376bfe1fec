import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { gatewayInstance } from '../../config/data-dir.js';
import { workerInstances, type GatewayWorker } from '../../config/gateway-worker.js';
import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { maxOpenFiles } from '../../lib/open-files.js';
import { resolveHostPort } from '../../lib/resolve.js';
import { splitHostPort } from '../../lib/address.js';
import type { Inbound } from '../drachtio/inbound.js';
import type { MediaService } from '../media-thread/media-service.js';
import { DeafPortWatch } from '../relay/deaf-ports.js';
import { callsOf } from '../relay/media-ports.js';
import { openRelayPool, type RelayPool } from '../relay/pool.js';

export async function openRelay(config: Config, worker: GatewayWorker, instance: string, clock: Clock, log: Log): Promise<RelayPool> {
  const { address, ng_port: ngPort, port_min: min, port_max: max, timeout_ms: timeoutMs } = config.rtpengine;
  const nodes =
    address === null
      ? [{ address: '127.0.0.1', port: ngPort }]
      : await Promise.all(address.split(',').map((node) => resolveHostPort(node.trim())));
  const shared = { instance, clock, log, timeoutMs, maxDelayMs: config.admission.max_relay_delay_ms };
  if (address !== null) {
    const [outside, inside] = config.rtpengine.interfaces?.split(',').map((name) => name.trim()) ?? [];
    const interfaces = outside === undefined || inside === undefined ? null : { outside, inside };
    return openRelayPool({ ...shared, nodes, interfaces, own: null });
  }
  return openRelayPool({
    ...shared,
    nodes,
    interfaces: { outside: 'outside', inside: 'inside' },
    own: {
      capacity: callsOf({ min, max }, maxOpenFiles() ?? Infinity),
      instances: workerInstances(gatewayInstance(config), worker),
    },
  });
}

/** Moves calls whose ports an rtpengine of this machine reads no more. Of other machines the caller's sender reports tell as much, later. */
export function watchDeafPorts(
  relay: RelayPool,
  inbound: Pick<Inbound, 'relayPorts' | 'relayPortDeaf'>,
  clock: Clock,
  log: Log,
): DeafPortWatch {
  const isLocal = (node: string | null): boolean => node !== null && isOwnAddress(splitHostPort(node).host);
  return new DeafPortWatch({
    clock,
    log,
    readTables: async () => {
      const tables = await Promise.allSettled(['/proc/net/udp', '/proc/net/udp6'].map((path) => readFile(path, 'latin1')));
      return tables.flatMap((table) => (table.status === 'fulfilled' ? [table.value] : []));
    },
    isOwn: isOwnAddress,
    hasLocalCalls: () => relay.nodes().some(({ name, calls }) => calls > 0 && isLocal(name)),
    ports: () => inbound.relayPorts().filter(({ relayId }) => isLocal(relay.nodeOf(relayId))),
    figures: (relayId) => relay.figures(relayId),
    onDeaf: ({ relayId }) => inbound.relayPortDeaf(relayId),
  });
}

function isOwnAddress(address: string): boolean {
  if (address.startsWith('127.')) return true;
  return Object.values(networkInterfaces()).some((all = []) => all.some((one) => one.address === address));
}

/** Calls that this process has media for, for metrics: each of several gateway processes reports its share of the rtpengine, so that the sum is right. */
export function headroomShare({ count }: GatewayWorker, relay: RelayPool, endpoint: MediaService): number {
  return Math.min(Math.floor((relay.headroom() ?? Infinity) / count), endpoint.capacity - endpoint.legs);
}
