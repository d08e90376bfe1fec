import type { BatchState } from '../../src/gateway/model/batch.js';
import type { CompletionPayload } from '../../src/gateway/model/completion.js';
import type { E164 } from '../../src/gateway/model/e164.js';
import type { RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import type { RedisCells } from '../../src/gateway/store/redis/cells/redis-cells.js';
import { outboxLane } from '../../src/gateway/ports/stores.js';
import { agentOf, callOf, inboundSetting } from '../unit/gateway/store/store-contract.js';
import { deliveryOf } from '../unit/gateway/store/outbox-contract.js';
import { PLAN } from './batch-world.js';
import { begun, snapshotOf } from './begun-call.js';
import { toolOf } from './tool.js';
import type { VirtualClock } from './virtual-clock.js';

// What a gateway and an API do with the stores, on so few records that one operation meets what another has left.

export interface StoreWorld {
  readonly stores: RedisStores;
  readonly cells: RedisCells;
  readonly clock: VirtualClock;
}

/** @param a which record; @param b how */
type Operation = (world: StoreWorld, a: number, b: number) => unknown;

const uuid = (kind: number, at: number): string => `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(at).padStart(12, '0')}`;
const orgId = (at: number): string => uuid(1, at % 2);
const agentId = (at: number): string => uuid(2, at % 2);
const toolId = (at: number): string => `TL-${uuid(3, at % 2)}`;
const callId = (at: number): string => uuid(4, at % 6);
const batchId = (at: number): string => uuid(5, at % 2);
const number = (at: number): E164 => `+1555000000${String(at % 3)}` as E164;
const called = (at: number): E164 => `+4930000000${String(at % 4)}` as E164;
const limit = (at: number): number | null => [null, 1, 2, 10][at % 4] ?? null;
const cell = (at: number): string => `cell-${String(at % 2)}`;
const STATES: readonly BatchState[] = ['in_progress', 'paused', 'in_progress', 'completed'];

async function attemptOf({ stores }: StoreWorld, at: number) {
  const attempts = await stores.batchWork.attempts(batchId(at));
  return attempts[at % Math.max(1, attempts.length)];
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'an organization is made': ({ stores }, a) => stores.orgs.create({ name: `org ${String(a)}`, sip_enabled: true, org_id: orgId(a) }),
  'an organization is changed': ({ stores }, a, b) =>
    stores.orgs.change(orgId(a), {
      max_concurrent_calls: limit(b),
      max_calls_per_second: limit(b >> 2),
      max_provider_sessions: limit(b >> 4),
      dialling: {
        prices: { '+49': 0.02 },
        callers: [number(0), number(1), number(2)],
        max_calls_per_second: 1 + (b % 3),
        max_concurrent_calls: 1 + ((b >> 2) % 3),
        max_calls_per_day: 5,
        max_cost_per_day: 1,
        ...(b % 2 === 0 ? {} : { per_trunk: { max_concurrent_calls: 2 } }),
      },
    }),
  'organizations are listed': ({ stores }) => stores.orgs.list(),
  'a number is attached': ({ stores }, a, b) =>
    stores.numbers.attach(orgId(b), number(a), {
      inbound: inboundSetting({ max_concurrent_calls: limit(b), max_calls_per_second: limit(b >> 2) }, b % 3 === 0 ? null : agentId(b)),
      ...(b % 2 === 0 ? {} : { outbound: { sip_endpoint: 'a.example' } }),
    }),
  'a number is updated': ({ stores }, a, b) => stores.numbers.update(orgId(b), number(a), { type: 'outbound', sip_endpoint: 'b.example' }),
  'a number is detached': ({ stores }, a, b) => stores.numbers.detach(orgId(b), number(a), ['inbound']),
  'numbers are read': ({ stores }, a, b) =>
    Promise.all([
      stores.numbers.list(orgId(a), { take: 2, skip: b % 3 }),
      stores.numbers.count(orgId(a)),
      stores.numbers.findByAgent(orgId(a), agentId(b)),
    ]),
  'numbers are swept': ({ stores }) => stores.numbers.sweep(),
  'an agent is put': ({ stores }, a, b) =>
    stores.agents.put(agentOf(orgId(a), { agent_id: agentId(a), ...(b % 2 === 0 ? {} : { tools: [toolId(b)] }) })),
  'an agent is deleted': ({ stores }, a) => stores.agents.delete(orgId(a), agentId(a)),
  'agents are read': ({ stores }, a, b) =>
    Promise.all([
      stores.agents.list(orgId(a), { limit: 1 }),
      stores.agents.findByTool(orgId(a), toolId(b), 10),
      stores.agents.count(orgId(a)),
    ]),
  'a tool is put': ({ stores }, a) => stores.tools.put(toolOf(orgId(a), { tool_id: toolId(a) })),
  'tools are read': ({ stores }, a) => Promise.all([stores.tools.list(orgId(a)), stores.tools.find(orgId(a), [toolId(0), toolId(1)])]),
  'a key is made and used': async ({ stores }, a) => {
    const { key, record } = await stores.keys.create(orgId(a), 'ci');
    await stores.keys.touch(record);
    await stores.keys.revoke(record.key_id);
    await stores.keys.find(key);
    await stores.keys.list(orgId(a));
  },
  'a call is looked up': ({ stores, clock }, a, b) =>
    stores.routes.lookup(number(b), begun(callId(a), { started_at: new Date(clock.wallMs()).toISOString() })),
  'a number is looked up for nobody': ({ stores }, a) => stores.routes.lookup(number(a), null),
  'a call is released': ({ stores }, a, b) => stores.routes.release(callId(a), b % 2 === 0),
  'calls in progress are read': ({ stores }, a, b) =>
    Promise.all([
      stores.live.list(orgId(a), { limit: 2 }),
      stores.live.get(orgId(a), callId(b)),
      stores.live.ending(orgId(a), callId(b)),
      stores.throughput.read(orgId(a)),
    ]),
  'a call is kept': ({ stores }, a, b) => stores.snapshots.persist(snapshotOf(callId(a), orgId(b), number(b), { b })),
  'a call is forgotten': ({ stores }, a) => stores.snapshots.delete(callId(a)),
  'calls that were left are read': ({ stores }) => stores.snapshots.orphaned(),
  'a call is recorded': ({ stores, clock }, a, b) =>
    stores.calls.write({
      record: callOf(b % 5 === 0 ? null : orgId(b), clock.wallMs(), {
        call_id: callId(a),
        sip_call_id: `${String(b % 2)}@carrier`,
        ...(b % 3 === 0 ? { answered_at: null, reason: 'SOURCE_NOT_ALLOWED', sip_status: 403 } : {}),
        transcript: b % 2 === 0 ? [] : [{ speaker: 'agent', text: 'Grüß Gott.', at_ms: 0 }],
      }),
      trace:
        b % 2 === 0
          ? []
          : [{ at: new Date(clock.wallMs()).toISOString(), source: 'gateway', direction: null, summary: 'heard', text: null }],
      completion: b % 2 === 0 ? null : { url: null, payload: { metadata: null } as CompletionPayload, analysisSchema: null },
    }),
  'records are read': ({ stores }, a, b) =>
    Promise.all([
      stores.calls.list(b % 3 === 0 ? null : orgId(a), { limit: 2 }),
      stores.calls.list(orgId(a), { limit: 2, sipCallId: `${String(b % 2)}@carrier` }),
      stores.calls.get(orgId(a), callId(b)),
      stores.calls.trace(orgId(a), callId(b)),
      stores.storedCallBytes(),
    ]),
  'an analysis is added': ({ stores }, a, b) =>
    stores.calls.addAnalysis(orgId(a), callId(b), { analysis: null, analysis_error: null, analysis_rejected: null }),
  'a webhook is added': ({ stores }, a, b) => stores.outbox.add(deliveryOf(orgId(b), { delivery_id: uuid(6, a % 4) })),
  'webhooks are taken': async ({ stores }, a, b) => {
    await stores.outbox.dueLanes();
    for (const delivery of await stores.outbox.claim(outboxLane(orgId(a)), 2, 60_000)) {
      if (b % 4 === 0) await stores.outbox.settle(delivery);
      if (b % 4 === 1) await stores.outbox.defer({ ...delivery, attempts: delivery.attempts + 1 }, 1_000);
      if (b % 4 === 2) await stores.outbox.bury({ ...delivery, org_id: orgId(a), url: 'https://example.com/hook' });
    }
    await stores.outbox.waiting();
  },
  'a webhook is revived': async ({ stores }, a, b) => {
    await stores.outbox.dead(orgId(b), 10, null);
    await stores.outbox.revive(orgId(b), uuid(6, a % 4));
  },
  'a call is placed': ({ stores }, a, b) =>
    stores.ofCalls.dials.reserve({
      orgId: orgId(b),
      from: number(b),
      to: called(a),
      endpoint: 'a.example',
      call: begun(callId(a), { direction: 'outbound' }),
      isReferred: b % 7 === 0,
      ...(b % 2 === 0 ? {} : { idempotencyKey: `key ${String(a % 2)}` }),
      maxDurationMs: 300_000,
    }),
  'a placed call ends': ({ stores }, a, b) => stores.ofCalls.dials.settle(callId(a), b * 1_000),
  'a placed call is withdrawn': ({ stores }, a) => stores.ofCalls.dials.withdraw(callId(a)),
  'what may be dialled is read': ({ stores }, a) =>
    stores.dialAllowance.headroom(
      orgId(a),
      {
        prices: {},
        callers: [],
        max_calls_per_second: 5,
        max_concurrent_calls: 5,
        max_calls_per_day: 5,
        max_cost_per_day: 1,
        per_trunk: {},
      },
      'a.example',
    ),
  'an idempotency key is claimed': async ({ stores }, a, b) => {
    const placement = { key: `key ${String(a % 2)}`, digest: `digest${String(b % 2)}`, callId: callId(b) };
    await stores.placements.claim(orgId(a), placement);
    if (b % 3 === 0) await stores.placements.keep(orgId(a), placement);
    if (b % 3 === 1) await stores.placements.release(orgId(a), placement.key);
  },
  'numbers are not to be called': ({ stores }, a, b) => stores.doNotCall.add(orgId(b), [called(a), called(a + 1)]),
  'a number may be called again': ({ stores }, a, b) => stores.doNotCall.remove(orgId(b), called(a)),
  'the do-not-call list is read': ({ stores }, a) =>
    Promise.all([stores.doNotCall.list(orgId(a), { take: 2, skip: 0 }), stores.doNotCall.find(orgId(a), [called(0), called(1)])]),
  'a batch is made': async ({ stores }, a, b) => {
    await stores.batches.create({ orgId: orgId(a), name: 'batch', batchId: batchId(a) });
    if (b % 3 > 0) await stores.batchRuns.begin(orgId(a), batchId(a), PLAN, 4);
  },
  'numbers are added to a batch': ({ stores }, a, b) =>
    stores.batchRuns.add(
      batchId(a),
      [called(b), called(b + 1)].map((one) => ({ number: one })),
      b % 4,
    ),
  'a batch is moved': ({ stores }, a, b) =>
    stores.batchRuns.move(batchId(a), {
      ...(b % 5 === 0 ? {} : { to: STATES[b % 4] ?? 'in_progress' }),
      from: ['validating', 'in_progress', 'paused'],
      ...(b % 4 === 3 ? { whenDone: 'all' as const, isEnd: true as const } : {}),
      events: [{ event_type: 'lifecycle', payload: { message: 'moved' } }],
    }),
  'a batch is told of': ({ stores }, a, b) =>
    stores.batches.append(orgId(a), batchId(a), { event_type: 'step', payload: { message: String(b) } }),
  'batches are read': ({ stores, clock }, a, b) =>
    Promise.all([
      stores.batches.read(null, batchId(a), { take: 3, skip: b % 2, direction: b % 2 === 0 ? 'asc' : 'desc' }),
      stores.batches.list(orgId(a), { take: 5, skip: 0 }),
      stores.batchRuns.read(null, [batchId(0), batchId(1)]),
      stores.batchWork.running(),
      stores.batchWork.entry(batchId(a), called(b)),
      stores.batchWork.due(batchId(a), clock.wallMs(), 2),
    ]),
  'a batch dials': async ({ stores, clock }, a, b) => {
    const due = await stores.batchWork.due(batchId(a), clock.wallMs(), 3);
    const steps = due.map((one, at) => {
      if ((at + b) % 5 === 0) return { ...one, do: 'defer' as const, untilMs: clock.wallMs() + 1_000 };
      if ((at + b) % 5 === 1) return { ...one, do: 'refuse' as const, reason: 'DO_NOT_CALL' as const };
      return { ...one, do: 'dial' as const, callId: callId(b + at), sipCallId: 'a@b' };
    });
    await stores.batchWork.take(batchId(a), steps, { callsPerSecond: 1 + (b % 3), maxConcurrentCalls: 2 });
  },
  'an attempt is confirmed': async (world, a) => {
    const attempt = await attemptOf(world, a);
    if (attempt !== undefined) await world.stores.batchWork.confirm(batchId(a), attempt);
  },
  'an attempt ends': async (world, a, b) => {
    const attempt = await attemptOf(world, a);
    if (attempt === undefined) return;
    const { batchWork } = world.stores;
    const settle = (outcome: Parameters<typeof batchWork.settle>[2]['outcome']): Promise<boolean> =>
      batchWork.settle(
        batchId(a),
        { ...attempt, token: b % 7 === 0 ? 99 : attempt.token },
        { outcome, answered: { day: '2026-01-01', isAbandoned: b % 2 === 0 } },
      );
    if (b % 5 === 0) await settle({ kind: 'successful' });
    if (b % 5 === 1) await settle({ kind: 'failed', reason: 'BUSY' });
    if (b % 5 === 2) await settle({ kind: 'ambiguous' });
    if (b % 5 === 3) await settle({ kind: 'again', dueMs: world.clock.wallMs(), entry: { number: attempt.number, ended: { BUSY: 1 } } });
    if (b % 5 === 4) await batchWork.release(batchId(a), attempt);
  },
  'a batch is forgotten': ({ stores }, a) => stores.batchWork.forget(batchId(a)),
  'a session begins at a provider': async ({ stores }, a, b) => {
    const org = await stores.orgs.get(orgId(a));
    if (org !== null) await stores.ofCalls.sessions.begin(org, callId(b));
    stores.ofCalls.sessions.used(callId(b), 10);
  },
  'a session ends at a provider': ({ stores }, a, b) => {
    stores.ofCalls.sessions.end(callId(b));
    return stores.providerUsage.usage(orgId(a));
  },
  'an account is registered': async ({ stores }, a, b) => {
    await stores.registrations.claim(`account-${String(a % 2)}`, 60_000);
    if (b % 2 === 0) await stores.registrations.release(`account-${String(a % 2)}`);
    await stores.registrations.registering();
    await stores.registrations.watching();
    await stores.registrations.noteTrunk('trunk-0', { state: 'up', error: null, changed_at: '2026-01-01T00:00:00.000Z' }, 60_000);
    await stores.registrations.trunkStates(['trunk-0', 'trunk-1']);
    await stores.registrations.states(['account-0', 'account-1']);
  },
  'a change is noted': async ({ stores }, a) => {
    await stores.audit.append(orgId(a), {
      by: { key_id: null, name: 'cli:root' },
      action: 'number.attach',
      record: number(a),
      fields: ['inbound'],
    });
    await stores.audit.list(orgId(a), { take: 2 });
  },
  'a cell lives': ({ cells }, a, b) => cells.beat(cell(a), b % 3, `beat|gateway-${String(a)}`),
  'a cell writes dialogs': ({ cells }, a, b) => cells.write(cell(a), 1 + (b % 2), [[`dialog-${String(b % 3)}`, b % 4 === 0 ? '' : '{}']]),
  'a cell takes those of another': async ({ cells }, a, b) => {
    const { cells: known } = await cells.beat(cell(a), 0, 'beat|');
    await cells.take(cell(a + 1), known.get(cell(a + 1)) ?? '', cell(a), 1 + (b % 2));
    await cells.isElsewhere(cell(a), `dialog-${String(b % 3)}`);
    await cells.dialogs(cell(a));
    await cells.isAnyAlive(['gw-1', 'gw-2']);
  },
  'time passes': ({ clock }, a) => clock.advanceAsync([10, 1_000, 11_000, 60_000][a % 4] ?? 0),
};

export const OPERATION_NAMES = Object.keys(OPERATIONS);

/** Carries one out. That there is nothing to do it with is no failure. */
export async function operate(world: StoreWorld, name: string, a: number, b: number): Promise<void> {
  await OPERATIONS[name]?.(world, a, b);
  // What goes out at the end of the turn.
  await new Promise(setImmediate);
  await world.stores.ping();
}
