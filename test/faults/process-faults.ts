import { resolve } from 'node:path';
import type { RunFigures, StageFigures } from '../../src/loadtest/figures.js';
import { burst } from '../support/burst.js';
import { childrenOf, type ChildName } from '../support/processes.js';
import { signalHost } from '../support/two-hosts.js';
import type { RunningRtpengine } from '../support/rtpengine.js';
import { pause, type DialReport, type Fault } from './run-fault.js';
import type { World, WorldName } from './world.js';

// Processes that die, stand still, or are ended.

const STOPPED_MS = 5_000;
const HANDOVER_MS = 2_000;

/** The last child of a name: the first gateway serves the API. */
export function lastPid(world: World, name: ChildName): number {
  const pid = childrenOf(world.gateway.ready.pid).findLast((child) => child.name === name)?.pid;
  if (pid === undefined) throw new Error(`${name} does not run`);
  return pid;
}

/** What the supervisor starts again. */
function ofChild(what: string, title: string, world: WorldName, name: ChildName, excused: Fault['excused'] = {}): Fault[] {
  const signal = (sent: NodeJS.Signals) => (at: World) => void process.kill(lastPid(at, name), sent);
  return [
    { name: `${what}-killed`, title: `${title}: kill -9`, world, lastsMs: 0, inject: signal('SIGKILL'), excused },
    {
      name: `${what}-stopped`,
      title: `${title}: stands still for 5 s (SIGSTOP)`,
      world,
      lastsMs: STOPPED_MS,
      inject: signal('SIGSTOP'),
      heal: signal('SIGCONT'),
    },
    { name: `${what}-restarted`, title: `${title}: SIGTERM, started again`, world, lastsMs: 0, inject: signal('SIGTERM'), excused },
  ];
}

/** The one that has calls: the first of two equals. */
function busy(world: World): RunningRtpengine {
  const [relay] = world.relays;
  if (relay === undefined) throw new Error('no rtpengine');
  return relay;
}

/** More than rtpengine 10.5 bears: each call's port gets it while rtpengine is busy with the others'. */
const BURST = 2_000;

const DEAF_PORTS: Fault[] = [
  {
    name: 'rtpengine-deaf',
    title: 'rtpengine: a burst of 2,000 datagrams from a stranger at the port of each call',
    world: 'one gateway',
    isBothWays: true,
    isAlone: true,
    lastsMs: 0,
    mostCalls: 50,
    inject: (_world, long) => burst(long.relayPorts, BURST),
  },
];

const ONE_OF_TWO_RELAYS: Fault[] = [
  {
    name: 'rtpengine-one-killed',
    title: 'rtpengine, one of two: kill -9, back after 5 s',
    world: 'two rtpengines',
    lastsMs: STOPPED_MS,
    inject: (world) => busy(world).kill(),
    heal: (world) => busy(world).startAgain(),
  },
  {
    name: 'rtpengine-one-stopped',
    title: 'rtpengine, one of two: stands still for 5 s (SIGSTOP)',
    world: 'two rtpengines',
    lastsMs: STOPPED_MS,
    inject: (world) => void process.kill(busy(world).pid, 'SIGSTOP'),
    heal: (world) => void process.kill(busy(world).pid, 'SIGCONT'),
  },
  {
    name: 'rtpengine-one-restarted',
    title: 'rtpengine, one of two: SIGTERM, back after 5 s',
    world: 'two rtpengines',
    lastsMs: STOPPED_MS,
    inject: (world) => busy(world).stop(),
    heal: (world) => busy(world).startAgain(),
  },
];

// The old primary is a replica afterwards: each has an instance of its own.
const SENTINEL: Fault[] = [
  {
    name: 'sentinel-killed',
    title: 'Redis’ primary, with replica and Sentinels: kill -9',
    world: 'Sentinel',
    isAlone: true,
    lastsMs: 0,
    inject: ({ sentinels }) => sentinels?.primary.killServer(),
  },
  {
    name: 'sentinel-stopped',
    title: 'Redis’ primary, with replica and Sentinels: stands still for 5 s (SIGSTOP)',
    world: 'Sentinel',
    isAlone: true,
    lastsMs: STOPPED_MS,
    inject: ({ sentinels }) => sentinels?.primary.freeze(),
    heal: ({ sentinels }) => sentinels?.primary.thaw(),
  },
  {
    name: 'sentinel-restarted',
    title: 'Redis’ primary, with replica and Sentinels: SIGTERM, back after 5 s',
    world: 'Sentinel',
    isAlone: true,
    lastsMs: STOPPED_MS,
    inject: ({ sentinels }) => sentinels?.primary.stopServer(),
    heal: ({ sentinels }) => sentinels?.primary.startServer(),
  },
];

// The supervisor is another process afterwards.
const DEPLOYED: Fault[] = [
  {
    name: 'gateway-hung',
    title: 'gateway, the only one: hangs (SIGSTOP), and is replaced',
    world: 'one gateway',
    isAlone: true,
    lastsMs: 0,
    inject: async (world) => {
      process.kill(await world.gateway.pidOf('gateway'), 'SIGSTOP');
    },
    excused: { 'back within 5 s': 'the supervisor waits 6 s before it calls a process hung' },
  },
  {
    name: 'media-thread-killed',
    title: 'media thread, the only one: dies',
    world: 'one gateway',
    settings: { NODE_OPTIONS: `--require ${resolve('test/support/end-media-threads.cjs')}` },
    isAlone: true,
    lastsMs: 0,
    inject: async (world) => {
      process.kill(await world.gateway.pidOf('gateway'), 'SIGUSR2');
    },
  },
  {
    name: 'media-thread-hung',
    title: 'media thread, the only one: hangs, and is replaced',
    world: 'one gateway',
    settings: { NODE_OPTIONS: `--require ${resolve('test/support/hang-media-threads.cjs')}` },
    isAlone: true,
    lastsMs: 0,
    inject: async (world) => {
      process.kill(await world.gateway.pidOf('gateway'), 'SIGUSR2');
    },
    excused: { 'back within 5 s': 'the gateway waits 8 s before it calls a thread hung' },
  },
  ...(['SIGKILL', 'SIGTERM'] as const).map((sent): Fault => ({
    name: sent === 'SIGKILL' ? 'holder-killed' : 'holder-restarted',
    title: `socket holder: ${sent === 'SIGKILL' ? 'kill -9' : 'SIGTERM, started again'}`,
    world: 'one gateway',
    isAlone: true,
    lastsMs: 0,
    inject: async (world) => {
      process.kill(await world.gateway.pidOf('socket-holder'), sent);
    },
  })),
  {
    name: 'supervisor-killed',
    title: 'supervisor: kill -9, started again after 2 s',
    world: 'one gateway',
    isAlone: true,
    lastsMs: 2_000,
    inject: async (world) => {
      await world.gateway.stop('SIGKILL');
    },
    heal: (world) => world.gateway.up(),
  },
  {
    name: 'reload',
    title: '`trunkline reload`',
    world: 'one gateway',
    isAlone: true,
    lastsMs: 0,
    inject: async (world) => {
      const { code, stderr } = await world.gateway.cli('reload');
      if (code !== 0) throw new Error(stderr);
    },
  },
  {
    name: 'reload-handover',
    title: '`trunkline reload`, and `calls.handover_ms` after it',
    world: 'one gateway',
    settings: { TRUNKLINE_CALLS_HANDOVER_MS: String(HANDOVER_MS) },
    isAlone: true,
    // Until the last call has changed hands.
    lastsMs: 3 * HANDOVER_MS,
    inject: async (world) => {
      const { code, stderr } = await world.gateway.cli('reload');
      if (code !== 0) throw new Error(stderr);
    },
  },
  {
    name: 'reload-load',
    title: '`trunkline reload` beside `npm run load` (SIPp), 200 calls at 10 a second',
    world: 'one gateway',
    isAlone: true,
    lastsMs: 0,
    inject: () => undefined,
    run: reloadBesideLoad,
  },
];

/** A carrier whose connection the gateway closes, and whose calls are to go on over the next one. */
async function reloadBesideLoad({ gateway }: World): Promise<DialReport> {
  const load = gateway.cli('load', '--cps', '10', '--calls', '200', '--media', '0', '--hold', '3', '--json');
  await pause(6_000);
  const { code, stderr } = await gateway.cli('reload');
  if (code !== 0) throw new Error(stderr);
  const { stages } = JSON.parse((await load).stdout) as RunFigures;
  const [{ answered, successful, failures }] = stages as [StageFigures];
  const failed = Object.fromEntries(failures.map(({ code: status, reason, count }) => [`${status} ${reason ?? ''}`.trim(), count]));
  return {
    long: { 'held to their end': successful },
    short: { answered, ...failed },
    reasons: {},
    backMs: null,
    broken: successful === 200 ? [] : [{ expectation: 'every call has an answer', what: `${String(200 - successful)} calls failed` }],
  };
}

const HOSTS: Fault[] = [
  {
    name: 'host-lost',
    title: 'host, one of two: all of its processes, kill -9',
    world: 'two hosts',
    isAlone: true,
    lastsMs: 0,
    inject: ({ otherHost }) => {
      if (otherHost !== null) signalHost(otherHost, 'SIGKILL');
    },
  },
];

const HOSTS_WITH_SENTINELS: Fault[] = [
  {
    name: 'host-lost-replica',
    title: 'host, one of two, with Redis’ replica: kill -9',
    world: 'two hosts, Sentinels',
    isAlone: true,
    lastsMs: 0,
    inject: async ({ otherHost, sentinels }) => {
      if (otherHost !== null) signalHost(otherHost, 'SIGKILL');
      await sentinels?.replica.killServer();
    },
  },
  {
    name: 'host-lost-primary',
    title: 'host, one of two, with Redis’ primary: kill -9',
    world: 'two hosts, Sentinels',
    isAlone: true,
    lastsMs: 0,
    inject: async ({ otherHost, sentinels }) => {
      if (otherHost !== null) signalHost(otherHost, 'SIGKILL');
      await sentinels?.primary.killServer();
    },
  },
  {
    name: 'host-lost-failover',
    title: 'host, one of two: kill -9, 0.5 s after Redis’ primary elsewhere',
    world: 'two hosts, Sentinels',
    isAlone: true,
    lastsMs: 0,
    inject: async ({ otherHost, sentinels }) => {
      await sentinels?.primary.killServer();
      await pause(500);
      if (otherHost !== null) signalHost(otherHost, 'SIGKILL');
    },
  },
];

export const PROCESS_FAULTS: readonly Fault[] = [
  ...ofChild('sip-server', 'SIP server', 'two gateways', 'sip-server'),
  ...ofChild('gateway-one', 'gateway, one of two', 'two gateways', 'gateway'),
  ...ofChild('rtpengine', 'rtpengine, the only one', 'two gateways', 'rtpengine'),
  ...ofChild('redis', 'Redis, the only one', 'two gateways', 'redis-server'),
  ...ofChild('gateway', 'gateway, the only one', 'one gateway', 'gateway'),
  ...DEPLOYED,
  ...HOSTS,
  ...HOSTS_WITH_SENTINELS,
  ...ONE_OF_TWO_RELAYS,
  ...DEAF_PORTS,
  ...SENTINEL,
];
