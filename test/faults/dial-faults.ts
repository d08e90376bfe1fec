import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RETRYABLE } from '../../src/gateway/model/batch.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { AnsweringCarrier } from '../../src/loadtest/run/answering-carrier.js';
import { until } from '../support/carrier-call.js';
import type { ChildName } from '../support/processes.js';
import { lastPid } from './process-faults.js';
import { pause, tally, type DialReport, type Fault } from './run-fault.js';
import type { World } from './world.js';

// Processes that die while calls are placed: while numbers ring, and in a batch.

const FROM = '+15550100555';
const TITLES: Readonly<Record<ChildName | 'supervisor', string>> = {
  gateway: 'gateway',
  'sip-server': 'SIP server',
  rtpengine: 'rtpengine',
  'redis-server': 'Redis',
  'socket-holder': 'socket holder',
  supervisor: 'supervisor',
};
type Process = keyof typeof TITLES;
/** The supervisor last: its successor has the children that it left. */
const PROCESSES = Object.keys(TITLES) as readonly Process[];

const RINGING = 20;
const NUMBERS = 2_000;
const BATCH_RATE = 40;
const HELD_MS = 300;
const BETWEEN_KILLS_MS = 7_000;
const DOWN_MS = 2_000;
const ENDED_WITHIN_MS = 60_000;
const BATCH_LIMIT_MS = 300_000;
const ALWAYS = { from: '00:00', to: '24:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] };
/** Whatever may be repeated is: an attempt that is wrongly taken for one of these calls its number twice, for the carrier answers all. */
const RETRIES = Object.fromEntries(RETRYABLE.map((reason) => [reason, { times: 3, after_seconds: 2 }]));
const SETTINGS = { TRUNKLINE_TRUNKS_ALLOW_PRIVATE: 'true' };

/** kill -9. Whoever starts the supervisor does so again, after two seconds; it starts the others. */
async function end(world: World, name: Process): Promise<void> {
  if (name !== 'supervisor') return void process.kill(lastPid(world, name), 'SIGKILL');
  await world.gateway.stop('SIGKILL');
  await pause(DOWN_MS);
  await world.gateway.up();
}

/** A carrier that takes the calls of one number of the instance, and what it saw of them. */
class Dialled {
  /** INVITEs by called number. */
  readonly invites = new Map<string, number>();
  /** What became of them: `CANCEL`, `BYE`, `hung up`, `connection lost`. */
  readonly fates = new Map<string, string>();

  private constructor(
    private readonly world: World,
    readonly carrier: AnsweringCarrier,
    private readonly directory: string,
  ) {
    carrier.listener = {
      onInvited: (called) => void this.invites.set(called, (this.invites.get(called) ?? 0) + 1),
      onAcknowledged: (called) => void setTimeout(() => carrier.hangUp(called), HELD_MS),
      onHungUp: (called) => void this.fates.set(called, 'hung up'),
      onEnded: (called, how) => void this.fates.set(called, how === 'connection' ? 'connection lost' : how),
    };
  }

  static async open(world: World): Promise<Dialled> {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-faults-carrier-'));
    const carrier = await AnsweringCarrier.open(directory, '127.0.0.1', 'sendrecv', systemClock);
    const { gateway, orgId } = world;
    const limits = ['--max-calls-per-second', '1000', '--max-concurrent-calls', '1000', '--max-calls-per-day', '100000'];
    const allowed = ['--prices', '+49=0.0001', '--callers', FROM, ...limits, '--max-cost-per-day', '1000'];
    const { code, stderr } = await gateway.cli('org', 'set-dialling', orgId, ...allowed);
    if (code !== 0) throw new Error(stderr);
    const trunk = { type: 'outbound', sip_endpoint: `127.0.0.1:${String(carrier.port)}`, ca: carrier.ca };
    const { status, json } = await gateway.api('POST', '/sip/attach', { phone_number: FROM, directions: [trunk], service: 'sip' });
    if (status !== 200) throw new Error(JSON.stringify(json));
    return new Dialled(world, carrier, directory);
  }

  get calledTwice(): number {
    return [...this.invites.values()].filter((count) => count > 1).length;
  }

  async close(): Promise<void> {
    await this.world.gateway.api('POST', '/sip/detach', { phone_number: FROM, directions: 'outbound', service: 'sip' });
    await this.carrier.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}

async function ask(world: World, method: 'GET' | 'POST', path: string, body?: object): Promise<Record<string, unknown>> {
  // The API of a gateway that was killed comes back.
  const answer = await world.gateway.api(method, path, body).catch(() => null);
  return answer?.json ?? {};
}

/** Calls that ring while a process dies. What still rings when it is back is answered. */
async function ringing(world: World, name: Process): Promise<DialReport> {
  const dialled = await Dialled.open(world);
  const { carrier, fates, invites } = dialled;
  carrier.rings = true;
  const callIds: string[] = [];
  for (let index = 0; index < RINGING; index += 1) {
    const json = await ask(world, 'POST', '/v1/calls', { phone_number: numberAt(index), from: FROM, ring_timeout: 30 });
    callIds.push(String(json['call_id']));
  }
  await until(() => Promise.resolve(invites.size === RINGING), `only ${String(invites.size)} of ${String(RINGING)} numbers ring`, {
    withinMs: 15_000,
  });
  const atMs = performance.now();
  await end(world, name);
  await until(async () => (await ask(world, 'GET', '/v1/calls?limit=1'))['calls'] !== undefined, 'no API', { withinMs: 30_000 });
  const backMs = Math.round(performance.now() - atMs);
  await pause(2_000);
  const answered = carrier.answerAll();
  const reasonsOf = (): Promise<(string | null)[]> =>
    Promise.all(
      callIds.map(async (id) => ((await ask(world, 'GET', `/v1/calls/${id}`))['call'] as { reason?: string } | undefined)?.reason ?? null),
    );
  const endMs = performance.now() + ENDED_WITHIN_MS;
  let reasons = await reasonsOf();
  while (reasons.includes(null) && performance.now() < endMs) {
    await pause(500);
    reasons = await reasonsOf();
  }
  const missing = reasons.filter((reason) => reason === null).length;
  await dialled.close();
  return {
    long: { ringing: RINGING, 'answered afterwards': answered },
    short: tally([...invites.keys()].map((called) => fates.get(called) ?? 'connection lost')),
    reasons: tally(reasons.map((reason) => reason ?? 'none')),
    backMs,
    broken: [
      ...(missing > 0 ? [{ expectation: 'every call has its record' as const, what: `${String(missing)} calls have none` }] : []),
      ...twice(dialled),
    ],
  };
}

/** A batch during which one process after the other dies. */
async function batch(world: World): Promise<DialReport> {
  const dialled = await Dialled.open(world);
  const numbers = Array.from({ length: NUMBERS }, (_, index) => numberAt(index));
  const order = {
    name: 'Faults',
    start: true,
    from: FROM,
    numbers,
    calls_per_second: BATCH_RATE,
    max_concurrent_calls: 200,
    hours: ALWAYS,
    retries: RETRIES,
  };
  const made = (await ask(world, 'POST', '/v2/batches', order))['data'] as { readonly batch_id: string } | undefined;
  if (made === undefined) throw new Error('the batch was not made');
  const shown = async (): Promise<{ readonly state: string; readonly counts: Readonly<Record<string, number>> }> =>
    ((await ask(world, 'GET', `/v2/batches/${made.batch_id}`))['data'] ?? { state: 'unknown', counts: {} }) as Awaited<
      ReturnType<typeof shown>
    >;
  const atMs = performance.now();
  for (const name of PROCESSES) {
    await pause(BETWEEN_KILLS_MS);
    await end(world, name);
  }
  let last = await shown();
  while (!['completed', 'stopped', 'failed'].includes(last.state) && performance.now() - atMs < BATCH_LIMIT_MS) {
    await pause(1_000);
    last = await shown();
  }
  const { validated = 0, successful = 0, failed = 0, ambiguous = 0, waiting = 0, dialling = 0 } = last.counts;
  const forgotten = last.state !== 'completed' || waiting + dialling > 0 || validated !== NUMBERS || successful + failed !== NUMBERS;
  await dialled.close();
  return {
    long: { 'numbers rang': dialled.invites.size, [`s until ${last.state}`]: Math.round((performance.now() - atMs) / 1_000) },
    short: { successful, failed, ambiguous },
    reasons: {},
    backMs: null,
    broken: [
      ...(forgotten
        ? [{ expectation: 'no number is called twice, none forgotten' as const, what: `${last.state}: ${JSON.stringify(last.counts)}` }]
        : []),
      ...twice(dialled),
    ],
  };
}

function twice({ calledTwice }: Dialled): DialReport['broken'] {
  if (calledTwice === 0) return [];
  return [{ expectation: 'no number is called twice, none forgotten', what: `${String(calledTwice)} numbers were called twice` }];
}

const numberAt = (index: number): string => `+4930${String(2_000_000 + index)}`;

const COMMON = { world: 'one gateway', settings: SETTINGS, isAlone: true, lastsMs: 0, inject: () => undefined } as const;

export const DIAL_FAULTS: readonly Fault[] = [
  ...PROCESSES.map((name): Fault => ({
    ...COMMON,
    name: `ringing-${name}-killed`,
    title: `${TITLES[name]}: kill -9 while ${String(RINGING)} placed calls ring`,
    run: (world) => ringing(world, name),
  })),
  {
    ...COMMON,
    name: 'batch-killed',
    title: `a batch of ${String(NUMBERS)} numbers: ${Object.values(TITLES).join(', ')}, killed in turn`,
    run: batch,
  },
];
