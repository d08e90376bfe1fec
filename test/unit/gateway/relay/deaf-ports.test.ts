import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeafPortWatch } from '../../../../src/gateway/relay/deaf-ports.js';
import type { RelayPort } from '../../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../../src/lib/log.js';
import { socketKey } from '../../../../src/lib/udp-table.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const CARRIER: RelayPort = { relayId: 'a', side: 'carrier', address: '127.0.0.1', port: 30_000 };
const AGENT: RelayPort = { relayId: 'a', side: 'agent', address: '127.0.0.1', port: 30_002 };
const BEHIND_NAT: RelayPort = { relayId: 'b', side: 'carrier', address: '198.51.100.7', port: 30_004 };

let clock: VirtualClock;
let watch: DeafPortWatch;
let deaf: RelayPort[];
let hasCalls: boolean;
/** What waits at each port, and what rtpengine has counted of each call. */
let waiting: { readonly address: string; readonly port: number; readonly bytes: number }[];
let packets: Record<string, { fromCarrier: number; fromAgent: number } | null>;
let asked: string[];
let reads: number;

beforeEach(() => {
  [clock, deaf, hasCalls, waiting, asked, reads] = [new VirtualClock(), [], true, [], [], 0];
  packets = { a: { fromCarrier: 500, fromAgent: 500 }, b: { fromCarrier: 500, fromAgent: 500 } };
  const stream = (count: number) => ({ packets: count, bytes: 0, errors: 0, lost: null, jitterMs: null, roundTripMs: null, mos: null });
  watch = new DeafPortWatch({
    clock,
    log: silentLog,
    readTables: () => {
      reads += 1;
      return Promise.resolve([tableOf(waiting)]);
    },
    isOwn: (address) => address.startsWith('127.'),
    hasLocalCalls: () => hasCalls,
    ports: () => [CARRIER, AGENT, BEHIND_NAT],
    figures: (relayId) => {
      asked.push(relayId);
      const counted = packets[relayId];
      if (counted === undefined) return Promise.reject(new Error('no answer'));
      return Promise.resolve(counted && { fromCarrier: stream(counted.fromCarrier), fromAgent: stream(counted.fromAgent) });
    },
    onDeaf: (port) => deaf.push(port),
  });
});

afterEach(() => watch.stop());

function tableOf(sockets: typeof waiting): string {
  const line = ({ address, port, bytes }: (typeof waiting)[number], index: number): string =>
    `  ${String(index)}: ${socketKey({ address, port })} 00000000:0000 07 00000000:${bytes.toString(16).toUpperCase().padStart(8, '0')} 00:00000000 00000000  1000        0 24133 2 0000000000000000 0`;
  return [
    '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops',
    ...sockets.map(line),
    '',
  ].join('\n');
}

const pass = (ms: number): Promise<void> => clock.advanceAsync(ms);

describe('a port that rtpengine has stopped reading', () => {
  it('is found within two seconds: its queue does not shrink, and it counts no further packet', async () => {
    await pass(1_000);
    waiting = [{ address: '127.0.0.1', port: 30_000, bytes: 2_304 }];
    await pass(1_600);
    expect(deaf).toEqual([CARRIER]);
  });

  it('is found on the agent’s side, and by its number alone where its address is one that a NAT translates', async () => {
    waiting = [
      { address: '127.0.0.1', port: 30_002, bytes: 2_304 },
      { address: '127.0.0.2', port: 30_004, bytes: 2_304 },
    ];
    await pass(1_300);
    expect(deaf).toEqual([AGENT, BEHIND_NAT]);
  });

  it.each<[string, (round: number) => void]>([
    ['nothing waits: its caller is silent', () => (waiting = [])],
    ['its queue shrinks', (round) => (waiting = [{ address: '127.0.0.1', port: 30_000, bytes: 10_000 - round }])],
    [
      'packets are counted',
      (round) => {
        waiting = [{ address: '127.0.0.1', port: 30_000, bytes: 2_304 }];
        packets['a'] = { fromCarrier: 500 + round, fromAgent: 500 };
      },
    ],
    [
      'rtpengine does not answer, which is a matter of its node',
      () => {
        waiting = [{ address: '127.0.0.1', port: 30_000, bytes: 2_304 }];
        delete packets['a'];
      },
    ],
    ['the port with the queue belongs to no call', () => (waiting = [{ address: '127.0.0.1', port: 30_500, bytes: 2_304 }])],
    [
      'the port with the queue is at another address of this machine',
      () => (waiting = [{ address: '127.0.0.2', port: 30_000, bytes: 2_304 }]),
    ],
  ])('is not reported where %s', async (_where, change) => {
    for (let round = 0; round < 20; round += 1) {
      change(round);
      await pass(400);
    }
    expect(deaf).toEqual([]);
  });

  it('is looked for without a query while no queue grows, and not at all while this machine has no call', async () => {
    await pass(10_000);
    expect([asked.length, reads]).toEqual([0, 25]);
    hasCalls = false;
    await pass(10_000);
    expect(reads).toBe(25);
  });
});
