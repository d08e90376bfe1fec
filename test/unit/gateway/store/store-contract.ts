import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NO_TURNS, type CallRecord } from '../../../../src/gateway/model/call-record.js';
import type { TraceEntry } from '../../../../src/gateway/model/call-trace.js';
import { parseE164, type E164 } from '../../../../src/gateway/model/e164.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import { DEFAULT_INBOUND_OPTIONS, type InboundOptions, type Route } from '../../../../src/gateway/model/records.js';
import type { EndedCall } from '../../../../src/gateway/ports/ports.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { NO_ORG, type CallFilter, type CallRetention, type Stores } from '../../../../src/gateway/ports/stores.js';
import { toolOf } from '../../../support/tool.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';

/** Retention under which the suite's stores run. */
export const TEST_RETENTION: CallRetention = {
  traceDays: 1,
  days: 2,
  maxPerOrg: 5,
  maxRefusedPerOrg: 5,
  maxUnrouted: 3,
  maxBytes: 1 << 30,
};

let nextNumber = 5_550_000_000;

/** A number that no other test uses. */
export function freshNumber(): E164 {
  nextNumber += 1;
  const number = parseE164(`+1${nextNumber}`);
  if (number === undefined) throw new Error('not a number');
  return number;
}

export function inboundSetting(options: Partial<InboundOptions> = {}, agentId: string | null = null) {
  return { agent_id: agentId, options: { ...DEFAULT_INBOUND_OPTIONS, ...options } };
}

export function agentOf(orgId: string, fields: Partial<AgentRecord> = {}): AgentRecord {
  return {
    agent_id: newUuid(),
    org_id: orgId,
    ...DEFAULT_AGENT_SETTINGS,
    name: 'front desk',
    first_sentence: 'Hello.',
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    ...fields,
  };
}

/** A call of which there is no more than its record. */
export function endedCall(record: CallRecord): EndedCall {
  return { record, trace: [], completion: null };
}

export function callOf(orgId: string | null, startedAtMs: number, fields: Partial<CallRecord> = {}): CallRecord {
  return {
    call_id: newUuid(),
    org_id: orgId,
    agent_id: null,
    direction: 'inbound',
    sip_call_id: 'a@b',
    from: '+15550001111',
    to: '+15550002222',
    caller: {
      number: '+15550001111',
      display_name: null,
      asserted: [],
      remote_party: null,
      diversions: [],
      history: [],
      privacy: [],
      user_to_user: null,
      headers: {},
    },
    source: { ip: '203.0.113.7', port: 5061, transport: 'tls', tls_version: null, tls_cipher: null },
    identity: null,
    reason: 'CALLER_HANGUP',
    sip_status: 200,
    codec: 'PCMU',
    crypto_suite: 'AES_CM_128_HMAC_SHA1_80',
    started_at: new Date(startedAtMs).toISOString(),
    answered_at: new Date(startedAtMs).toISOString(),
    ended_at: new Date(startedAtMs + 1000).toISOString(),
    timings: { ring_ms: null, answer_ms: 0, first_audio_ms: null, talk_ms: 1000 },
    turns: NO_TURNS,
    transcript_state: null,
    transcript_error: null,
    quality: { endpoint: null, relay: null },
    samples: [],
    transcript: [],
    analysis: null,
    analysis_error: null,
    analysis_rejected: null,
    agent_error: null,
    signalling_error: null,
    q850_cause: null,
    reason_detail: null,
    answered_by: null,
    parent_call_id: null,
    legs: [],
    stale_route: false,
    resumed: 0,
    summed_calls: null,
    ...fields,
  };
}

/** Stores that are tested, and their time. */
export interface OpenedStores {
  readonly stores: Stores;
  readonly clock: VirtualClock;
  /** Moves the clock on, and the time of where they keep what they have. */
  readonly advance: (ms: number) => Promise<void>;
}

/** What every implementation of `Stores` must do. The stores run on the given clock and under `TEST_RETENTION`. */
export function describeStores(name: string, open: () => OpenedStores): void {
  describe(name, () => {
    let stores: Stores;
    let clock: VirtualClock;
    let advance: OpenedStores['advance'];
    let orgId: string;
    let otherOrgId: string;
    beforeAll(() => {
      ({ stores, clock, advance } = open());
    });
    beforeEach(async () => {
      orgId = (await stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
      otherOrgId = (await stores.orgs.create({ name: 'two', sip_enabled: true })).org_id;
    });

    describe('the store of numbers', () => {
      it('attaches a record that get, getByInboundId and list return', async () => {
        const number = freshNumber();
        const attached = await stores.numbers.attach(orgId, number, { inbound: inboundSetting({ allowed_sources: ['10.0.0.0/8'] }) });
        if (!attached.ok) throw new Error('not attached');
        const record = attached.value;
        expect(record).toMatchObject({ phone_number: number, org_id: orgId, outbound: null });
        expect(record.inbound_id).toMatch(/^IN-[0-9a-f-]{36}$/);
        expect(record.inbound).toEqual(inboundSetting({ allowed_sources: ['10.0.0.0/8'] }));
        expect(record.created_at).toBe(new Date(clock.wallMs()).toISOString());
        expect(await stores.numbers.get(orgId, number)).toEqual(record);
        expect(await stores.numbers.getByInboundId(orgId, record.inbound_id)).toEqual(record);
        expect(await stores.numbers.list(orgId, { take: 10, skip: 0 })).toEqual([record]);
      });

      it('replaces the attached direction, leaves the other one, and keeps created_at and inbound_id', async () => {
        const number = freshNumber();
        const first = await stores.numbers.attach(orgId, number, { inbound: inboundSetting({ max_concurrent_calls: 1 }) });
        clock.advance(1000);
        const second = await stores.numbers.attach(orgId, number, { outbound: { sip_endpoint: 'sip:a.example' } });
        clock.advance(1000);
        const third = await stores.numbers.attach(orgId, number, { inbound: inboundSetting({ max_calls_per_second: 2 }) });
        if (!first.ok || !second.ok || !third.ok) throw new Error('not attached');
        expect(second.value.inbound).toEqual(first.value.inbound);
        expect(third.value).toEqual({
          ...first.value,
          inbound: inboundSetting({ max_calls_per_second: 2 }),
          outbound: { sip_endpoint: 'sip:a.example' },
          updated_at: new Date(clock.wallMs()).toISOString(),
        });
        expect(third.value.created_at).not.toBe(third.value.updated_at);
      });

      it('refuses to attach a number of another organization, in any direction, and changes nothing', async () => {
        const number = freshNumber();
        const owned = await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        expect(await stores.numbers.attach(otherOrgId, number, { inbound: inboundSetting() })).toEqual({ ok: false, error: 'taken' });
        expect(await stores.numbers.attach(otherOrgId, number, { outbound: { sip_endpoint: 'h' } })).toEqual({
          ok: false,
          error: 'taken',
        });
        expect(await stores.numbers.get(orgId, number)).toEqual(owned.ok ? owned.value : undefined);
        expect(await stores.numbers.list(otherOrgId, { take: 10, skip: 0 })).toEqual([]);
      });

      it('hides a number of another organization from get, getByInboundId, update and detach', async () => {
        const number = freshNumber();
        const owned = await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        if (!owned.ok) throw new Error('not attached');
        expect(await stores.numbers.get(otherOrgId, number)).toBeNull();
        expect(await stores.numbers.getByInboundId(otherOrgId, owned.value.inbound_id)).toBeNull();
        expect(await stores.numbers.update(otherOrgId, number, { type: 'inbound' })).toEqual({ ok: false, error: 'not-found' });
        expect(await stores.numbers.detach(otherOrgId, number, ['inbound'])).toEqual({ ok: false, error: 'not-found' });
        expect(await stores.numbers.get(orgId, number)).toEqual(owned.value);
      });

      it('updates the named direction and keeps what the update leaves out', async () => {
        const number = freshNumber();
        expect(await stores.numbers.update(orgId, number, { type: 'inbound' })).toEqual({ ok: false, error: 'not-found' });
        const agentId = newUuid();
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting({ allowed_sources: ['10.0.0.1'] }) });
        const withAgent = await stores.numbers.update(orgId, number, { type: 'inbound', agent_id: agentId });
        expect(withAgent.ok && withAgent.value.inbound).toEqual(inboundSetting({ allowed_sources: ['10.0.0.1'] }, agentId));
        const withOptions = await stores.numbers.update(orgId, number, { type: 'inbound', options: DEFAULT_INBOUND_OPTIONS });
        expect(withOptions.ok && withOptions.value.inbound).toEqual(inboundSetting({}, agentId));
        const outbound = await stores.numbers.update(orgId, number, { type: 'outbound', sip_endpoint: 'b.example:5060' });
        expect(outbound.ok && outbound.value.outbound).toEqual({ sip_endpoint: 'b.example:5060' });
        expect(outbound.ok && outbound.value.inbound).toEqual(inboundSetting({}, agentId));
      });

      it('updates a direction that is not attached from the defaults', async () => {
        const number = freshNumber();
        await stores.numbers.attach(orgId, number, { outbound: { sip_endpoint: 'a.example' } });
        const updated = await stores.numbers.update(orgId, number, { type: 'inbound' });
        expect(updated.ok && updated.value.inbound).toEqual(inboundSetting());
      });

      it('detaches all directions or none, and deletes the record with its last direction', async () => {
        const number = freshNumber();
        const attached = await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        if (!attached.ok) throw new Error('not attached');
        expect(await stores.numbers.detach(orgId, number, ['outbound'])).toEqual({ ok: false, error: 'not-found' });
        expect(await stores.numbers.detach(orgId, number, ['inbound', 'outbound'])).toEqual({ ok: false, error: 'not-found' });
        expect(await stores.numbers.get(orgId, number)).toEqual(attached.value);
        await stores.numbers.attach(orgId, number, { outbound: { sip_endpoint: 'a.example' } });
        const left = await stores.numbers.detach(orgId, number, ['inbound']);
        expect(left.ok && left.value).toMatchObject({ inbound: null, outbound: { sip_endpoint: 'a.example' } });
        expect(await stores.numbers.detach(orgId, number, ['outbound'])).toEqual({ ok: true, value: null });
        expect(await stores.numbers.get(orgId, number)).toBeNull();
        expect(await stores.numbers.getByInboundId(orgId, attached.value.inbound_id)).toBeNull();
        expect(await stores.numbers.list(orgId, { take: 10, skip: 0 })).toEqual([]);
        expect(await stores.numbers.detach(orgId, number, ['inbound'])).toEqual({ ok: false, error: 'not-found' });
      });

      it('gives a detached number to another organization under a new id', async () => {
        const number = freshNumber();
        const first = await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        await stores.numbers.detach(orgId, number, ['inbound']);
        const second = await stores.numbers.attach(otherOrgId, number, { inbound: inboundSetting() });
        if (!first.ok || !second.ok) throw new Error('not attached');
        expect(second.value.org_id).toBe(otherOrgId);
        expect(second.value.inbound_id).not.toBe(first.value.inbound_id);
      });

      it('lists pages in the order of the numbers', async () => {
        const numbers = [freshNumber(), freshNumber(), freshNumber()];
        for (const number of [...numbers].reverse()) await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        const page = async (take: number, skip: number) => (await stores.numbers.list(orgId, { take, skip })).map((r) => r.phone_number);
        expect(await page(100, 0)).toEqual(numbers);
        expect(await page(2, 0)).toEqual(numbers.slice(0, 2));
        expect(await page(2, 2)).toEqual(numbers.slice(2));
        expect(await page(2, 3)).toEqual([]);
      });

      it('lets exactly one of concurrent attaches by two organizations win', async () => {
        const number = freshNumber();
        const outcomes = await Promise.all(
          [orgId, otherOrgId].map((id) => stores.numbers.attach(id, number, { inbound: inboundSetting() })),
        );
        expect(outcomes.filter((outcome) => outcome.ok)).toHaveLength(1);
      });
    });

    describe('the store of organizations', () => {
      it('creates, reads, changes and lists them', async () => {
        const org = await stores.orgs.create({ name: 'third', sip_enabled: false });
        expect(org).toMatchObject({ name: 'third', sip_enabled: false, disabled: false, max_concurrent_calls: null });
        expect(org.webhook_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
        expect(org.twilio_token).toMatch(/^[\w-]{43}$/);
        expect(await stores.orgs.change(org.org_id, { sip_enabled: true, disabled: true })).toEqual({
          ...org,
          sip_enabled: true,
          disabled: true,
        });
        expect(await stores.orgs.get(org.org_id)).toEqual({ ...org, sip_enabled: true, disabled: true });
        expect((await stores.orgs.list()).map((one) => one.org_id)).toContain(org.org_id);
        expect(await stores.orgs.get(newUuid())).toBeNull();
        expect(await stores.orgs.change(newUuid(), { disabled: true })).toBeNull();
      });

      it('returns the existing one when it is created with the same id', async () => {
        const org = await stores.orgs.create({ name: 'kept', sip_enabled: true });
        expect(await stores.orgs.create({ name: 'other', sip_enabled: false, org_id: org.org_id })).toEqual(org);
      });
    });

    describe('the store of API keys', () => {
      it('finds a key until it is revoked, and keeps it in the list', async () => {
        const { key, record } = await stores.keys.create(orgId, 'ci');
        expect(key).toMatch(/^tl_[\w-]{32}$/);
        expect(record).toMatchObject({ org_id: orgId, name: 'ci', last_used_at: null, revoked_at: null });
        expect(await stores.keys.find(key)).toEqual(record);
        expect(await stores.keys.find(`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`)).toBeNull();
        const revokedAt = new Date(clock.wallMs()).toISOString();
        expect(await stores.keys.revoke(record.key_id)).toEqual({ ...record, revoked_at: revokedAt });
        clock.advance(5000);
        expect(await stores.keys.revoke(record.key_id)).toEqual({ ...record, revoked_at: revokedAt });
        expect(await stores.keys.find(key)).toBeNull();
        expect(await stores.keys.list(orgId)).toEqual([{ ...record, revoked_at: revokedAt }]);
        expect(await stores.keys.revoke(newUuid())).toBeNull();
      });

      it('notes the use of a key once a minute', async () => {
        const { key, record } = await stores.keys.create(orgId, 'ci');
        const lastUsed = async (): Promise<string | null | undefined> => (await stores.keys.find(key))?.last_used_at;
        await stores.keys.touch(record);
        const firstUse = new Date(clock.wallMs()).toISOString();
        expect(await lastUsed()).toBe(firstUse);
        clock.advance(59_999);
        await stores.keys.touch(record);
        expect(await lastUsed()).toBe(firstUse);
        clock.advance(1);
        await stores.keys.touch(record);
        expect(await lastUsed()).toBe(new Date(clock.wallMs()).toISOString());
      });

      it('does not restore a revoked key by noting its use', async () => {
        const { key, record } = await stores.keys.create(orgId, 'ci');
        await stores.keys.revoke(record.key_id);
        await stores.keys.touch(record);
        expect(await stores.keys.find(key)).toBeNull();
      });

      it('restores a known key, and leaves an existing one alone', async () => {
        const key = `tl_restored-${newUuid()}`;
        const record = await stores.keys.restore(orgId, 'demo', key);
        expect(await stores.keys.find(key)).toEqual(record);
        await stores.keys.revoke(record.key_id);
        await stores.keys.restore(orgId, 'demo', key);
        expect(await stores.keys.find(key)).toBeNull();
      });
    });

    describe('the store of agents', () => {
      it('writes, reads and lists them, each within its organization', async () => {
        const older = agentOf(orgId, { created_at: '2026-01-01T00:00:00.000Z' });
        const newer = agentOf(orgId, { created_at: '2026-02-01T00:00:00.000Z' });
        await stores.agents.put(newer);
        await stores.agents.put(older);
        expect(await stores.agents.get(orgId, older.agent_id)).toEqual(older);
        expect(await stores.agents.get(otherOrgId, older.agent_id)).toBeNull();
        expect(await stores.agents.get(orgId, newUuid())).toBeNull();
        expect((await stores.agents.list(orgId)).records).toEqual([older, newer]);
        await stores.agents.put({ ...older, first_sentence: null });
        expect((await stores.agents.get(orgId, older.agent_id))?.first_sentence).toBeNull();
        expect((await stores.agents.list(otherOrgId)).records).toEqual([]);
      });
    });

    describe('a deleted agent', () => {
      it('is gone, for its own organization only, and its numbers have none', async () => {
        const agent = agentOf(orgId);
        const number = freshNumber();
        await stores.agents.put(agent);
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}, agent.agent_id) });
        expect((await stores.routes.lookup(number, null)).route?.agent).toEqual(agent);
        const none = { ok: false, error: 'not-found' };
        expect(await stores.agents.delete(otherOrgId, agent.agent_id)).toEqual(none);
        expect(await stores.agents.delete(orgId, agent.agent_id)).toEqual({ ok: true, value: agent });
        expect(await stores.agents.delete(orgId, agent.agent_id)).toEqual(none);
        expect((await stores.agents.list(orgId)).records).toEqual([]);
        expect(await stores.routes.lookup(number, null)).toMatchObject({ route: { agent: null } });
      });
    });

    describe('the store of tools', () => {
      it('writes, finds, lists and deletes them, each within its organization', async () => {
        const older = toolOf(orgId, { created_at: '2026-01-01T00:00:00.000Z' });
        const newer = toolOf(orgId, { created_at: '2026-02-01T00:00:00.000Z', label: 'newer' });
        const foreign = toolOf(otherOrgId);
        for (const tool of [newer, older, foreign]) await stores.tools.put(tool);
        expect(await stores.tools.get(orgId, older.tool_id)).toEqual(older);
        expect(await stores.tools.get(otherOrgId, older.tool_id)).toBeNull();
        expect((await stores.tools.list(orgId)).records).toEqual([older, newer]);
        const ids = [newer.tool_id, `TL-${newUuid()}`, foreign.tool_id, older.tool_id];
        expect(await stores.tools.find(orgId, ids)).toEqual([newer, older]);
        await stores.tools.put({ ...older, label: 'changed' });
        expect((await stores.tools.get(orgId, older.tool_id))?.label).toBe('changed');
        const none = { ok: false, error: 'not-found' };
        expect(await stores.tools.delete(otherOrgId, older.tool_id)).toEqual(none);
        expect(await stores.tools.delete(orgId, older.tool_id, ['2000-01-01T00:00:00.000Z'])).toEqual({ ok: false, error: 'mismatch' });
        expect(await stores.tools.count(orgId)).toBe(2);
        const deleted = await stores.tools.delete(orgId, older.tool_id, [older.updated_at]);
        expect(deleted).toEqual({ ok: true, value: { ...older, label: 'changed' } });
        expect(await stores.tools.delete(orgId, older.tool_id)).toEqual(none);
        expect((await stores.tools.list(orgId)).records).toEqual([newer]);
      });
    });

    describe('the transcript of a call', () => {
      it('is in the record that is read by id, and not in lists', async () => {
        const transcript = [{ speaker: 'caller', text: 'Hello?', at_ms: 1_200 }] as const;
        const call = callOf(orgId, clock.wallMs() - 1_000, { transcript, analysis: { name: 'Ann' } });
        await stores.calls.write(endedCall(call));
        expect(await stores.calls.get(orgId, call.call_id)).toEqual(call);
        expect((await stores.calls.list(orgId, { limit: 1 })).calls).toEqual([{ ...call, transcript: [] }]);
      });
    });

    describe('the store of calls', () => {
      it('lists them newest first and in pages', async () => {
        const times = [3000, 1000, 2000];
        const calls = times.map((offsetMs) => callOf(orgId, clock.wallMs() - offsetMs));
        for (const call of calls) await stores.calls.write(endedCall(call));
        const [oldest, newest, middle] = [calls[0]!, calls[1]!, calls[2]!];
        const page = await stores.calls.list(orgId, { limit: 2 });
        expect(page.calls).toEqual([newest, middle]);
        const rest = await stores.calls.list(orgId, { limit: 2, before: page.next! });
        expect(rest).toEqual({ calls: [oldest], next: null });
        expect(await stores.calls.get(orgId, middle.call_id)).toEqual(middle);
        expect(await stores.calls.get(otherOrgId, middle.call_id)).toBeNull();
      });

      it('filters them by called number, caller, reason and time, alone and together', async () => {
        const start = clock.wallMs() - 10_000;
        const made = [
          callOf(orgId, start, { to: '+15550002222', reason: 'BAD_SDP' }),
          callOf(orgId, start + 1_000, { to: '+15550003333', from: '+15550009999' }),
          callOf(orgId, start + 2_000, { to: '+15550003333', reason: 'BAD_SDP' }),
          callOf(orgId, start + 3_000),
        ];
        for (const call of made) await stores.calls.write(endedCall(call));
        const listed = async (filter: CallFilter) => {
          const { calls, next } = await stores.calls.list(orgId, { limit: 10, ...filter });
          expect(next).toBeNull();
          return calls.map((call) => made.findIndex(({ call_id }) => call_id === call.call_id));
        };
        expect(await listed({})).toEqual([3, 2, 1, 0]);
        expect(await listed({ to: '+15550003333' })).toEqual([2, 1]);
        expect(await listed({ from: '+15550009999' })).toEqual([1]);
        expect(await listed({ reason: 'BAD_SDP' })).toEqual([2, 0]);
        expect(await listed({ reason: 'BAD_SDP', to: '+15550003333' })).toEqual([2]);
        expect(await listed({ sinceMs: start + 1_000, untilMs: start + 3_000 })).toEqual([2, 1]);
        expect(await listed({ untilMs: start + 1_000 })).toEqual([0]);
        const first = await stores.calls.list(orgId, { limit: 1, reason: 'BAD_SDP' });
        expect(first.calls).toEqual([made[2]]);
        const second = await stores.calls.list(orgId, { limit: 5, reason: 'BAD_SDP', before: first.next! });
        expect(second).toEqual({ calls: [made[0]], next: null });
      });

      it('stores their traces separately, which only their organization reads', async () => {
        const entry: TraceEntry = { at: '2026-01-01T00:00:00.000Z', source: 'gateway', direction: null, summary: 's', text: 't' };
        const [traced, quiet] = [callOf(orgId, clock.wallMs() - 1_000), callOf(orgId, clock.wallMs() - 1_000)];
        await stores.calls.write({ ...endedCall(traced), trace: [entry] });
        await stores.calls.write(endedCall(quiet));
        expect(await stores.calls.trace(orgId, traced.call_id)).toEqual([entry]);
        expect(await stores.calls.trace(orgId, quiet.call_id)).toEqual([]);
        expect(await stores.calls.trace(otherOrgId, traced.call_id)).toEqual([]);
        expect(await stores.calls.get(orgId, traced.call_id)).toEqual(traced);
        for (let index = 0; index < 7; index += 1) await stores.calls.write(endedCall(callOf(orgId, clock.wallMs() + index)));
        expect(await stores.calls.trace(orgId, traced.call_id)).toEqual([]);
      });

      it('stores their samples separately, and not in lists', async () => {
        const sample = { at_ms: 700, from_caller: { lost_percent: 1, jitter_ms: 2, mos: 4 }, to_caller: null, round_trip_ms: null };
        const call = callOf(orgId, clock.wallMs(), { samples: [sample] });
        await stores.calls.write(endedCall(call));
        expect((await stores.calls.get(orgId, call.call_id))?.samples).toEqual([sample]);
        expect((await stores.calls.list(orgId, { limit: 1 })).calls[0]?.samples).toEqual([]);
      });

      it('keeps the newest, and none older than the retention', async () => {
        const calls = Array.from({ length: 7 }, (_, index) => callOf(orgId, clock.wallMs() - 10_000 + index));
        for (const call of calls) await stores.calls.write(endedCall(call));
        const listed = async (): Promise<string[]> => (await stores.calls.list(orgId, { limit: 100 })).calls.map((call) => call.call_id);
        expect(await listed()).toEqual(
          calls
            .slice(2)
            .reverse()
            .map((call) => call.call_id),
        );
        expect(await stores.calls.get(orgId, calls[0]!.call_id)).toBeNull();
        await advance(TEST_RETENTION.days * 86_400_000);
        const fresh = callOf(orgId, clock.wallMs());
        await stores.calls.write(endedCall(fresh));
        expect(await listed()).toEqual([fresh.call_id]);
      });

      it('stores calls to unknown numbers separately, the newest few', async () => {
        const calls = Array.from({ length: 5 }, (_, index) =>
          callOf(null, clock.wallMs() + 120_000 + index, { reason: 'NUMBER_NOT_ATTACHED' }),
        );
        for (const call of calls) await stores.calls.write(endedCall(call));
        expect((await stores.calls.list(NO_ORG, { limit: 100 })).calls.map((call) => call.call_id)).toEqual(
          calls
            .slice(-3)
            .reverse()
            .map((call) => call.call_id),
        );
      });
    });

    describe('the look-up of a route', () => {
      const routeTo = async (number: E164): Promise<Route | null> => (await stores.routes.lookup(number, null)).route;

      it('gives number, organization and agent, as they are at each look-up', async () => {
        const number = freshNumber();
        expect(await routeTo(number)).toBeNull();
        const agent = agentOf(orgId);
        await stores.agents.put(agent);
        const attached = await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}, agent.agent_id) });
        const org = await stores.orgs.get(orgId);
        const expected = { number: attached.ok ? attached.value : null, org, agent };
        expect(await routeTo(number)).toEqual(expected);
        expect(await routeTo(number)).toEqual(expected);
        await stores.orgs.change(orgId, { disabled: true });
        expect((await routeTo(number))?.org.disabled).toBe(true);
        await stores.agents.put({ ...agent, first_sentence: 'Changed.' });
        expect((await routeTo(number))?.agent?.first_sentence).toBe('Changed.');
      });

      it('follows a number to another agent, to none and to another organization', async () => {
        const number = freshNumber();
        const [first, second] = [agentOf(orgId), agentOf(orgId)];
        await stores.agents.put(first);
        await stores.agents.put(second);
        const agentNow = async (): Promise<string | undefined> => (await routeTo(number))?.agent?.agent_id;
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}, first.agent_id) });
        expect(await agentNow()).toBe(first.agent_id);
        await stores.numbers.update(orgId, number, { type: 'inbound', agent_id: second.agent_id });
        expect(await agentNow()).toBe(second.agent_id);
        await stores.numbers.update(orgId, number, { type: 'inbound', agent_id: null });
        expect(await routeTo(number)).toMatchObject({ agent: null });
        await stores.numbers.detach(orgId, number, ['inbound']);
        expect(await routeTo(number)).toBeNull();
        await stores.numbers.attach(otherOrgId, number, { inbound: inboundSetting() });
        expect((await routeTo(number))?.org.org_id).toBe(otherOrgId);
      });

      it('gives none for a number attached outbound only, or without an organization', async () => {
        const number = freshNumber();
        await stores.numbers.attach(orgId, number, { outbound: { sip_endpoint: 'a.example' } });
        expect(await routeTo(number)).toBeNull();
        const orphan = freshNumber();
        await stores.numbers.attach(newUuid(), orphan, { inbound: inboundSetting() });
        expect(await routeTo(orphan)).toBeNull();
      });

      it("never gives another organization's agent", async () => {
        const number = freshNumber();
        const foreign = agentOf(otherOrgId);
        await stores.agents.put(foreign);
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}, foreign.agent_id) });
        expect(await routeTo(number)).toMatchObject({ agent: null });
      });
    });
  });
}
