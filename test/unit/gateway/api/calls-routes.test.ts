import { cursorOf } from '../../../../src/gateway/api/cursor.js';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../../src/gateway/model/call-record.js';
import type { TraceEntry } from '../../../../src/gateway/model/call-trace.js';
import type { E164 } from '../../../../src/gateway/model/e164.js';
import type { BeginningCall, LiveCall } from '../../../../src/gateway/model/live-calls.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../../../src/gateway/model/records.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { ANSWERED, begun, snapshotOf } from '../../../support/begun-call.js';
import { callOf, endedCall } from '../store/store-contract.js';
import { openApi, type Answer, type ApiFixture } from './api-fixture.js';

const ENTRY: TraceEntry = { at: '2026-01-01T00:00:00.000Z', source: 'sip', direction: 'in', summary: 'BYE', text: null };
const SAID = { speaker: 'caller' as const, text: 'Hello?', at_ms: 900 };
const SAMPLE = { at_ms: 700, from_caller: { lost_percent: 1, jitter_ms: 2, mos: 4 }, to_caller: null, round_trip_ms: null };

interface CallsAnswer {
  readonly status: string;
  readonly calls: readonly CallRecord[];
  readonly next: string | null;
}

describe('/v1/calls', () => {
  let api: ApiFixture;
  let calls: CallRecord[];
  beforeEach(async () => {
    api = await openApi();
    const startMs = api.clock.wallMs() - 60_000;
    calls = [
      callOf(api.orgId, startMs, { to: '+15551234567', reason: 'BAD_SDP', sip_status: 488, answered_at: null }),
      callOf(api.orgId, startMs + 1_000, {
        to: '+15551234567',
        from: '+15557654321',
        transcript: [{ speaker: 'caller', text: 'Hello?', at_ms: 7 }],
        analysis: { name: 'Ann' },
      }),
      callOf(api.orgId, startMs + 2_000, { to: '+15551230000', from: 'anonymous' }),
    ];
    for (const call of calls) await api.stores.calls.write(endedCall(call));
  });

  const page = async (query: string): Promise<CallsAnswer> => JSON.parse((await api.get(`/v1/calls${query}`)).text) as CallsAnswer;
  const listed = async (query: string): Promise<number[]> =>
    (await page(query)).calls.map(({ call_id }) => calls.findIndex((call) => call.call_id === call_id));

  /** As lists have it: what was said is in the record alone. */
  const listedAs = ({ transcript: _transcript, analysis_rejected: _rejected, samples: _samples, ...rest }: CallRecord): object => ({
    ...rest,
    state: 'ended',
  });

  it('lists records, newest first, without transcripts', async () => {
    expect(await page('')).toEqual({ status: 'success', calls: calls.map(listedAs).reverse(), next: null });
  });

  it('takes filters in any spelling, alone and together', async () => {
    expect(await listed('?phone_number=%2B15551234567')).toEqual([1, 0]);
    expect(await listed('?phone_number=1(555)123-4567')).toEqual([1, 0]);
    expect(await listed('?from=15557654321')).toEqual([1]);
    expect(await listed('?from=anonymous')).toEqual([2]);
    expect(await listed('?reason=BAD_SDP')).toEqual([0]);
    expect(await listed('?reason=BAD_SDP&phone_number=15551230000')).toEqual([]);
    expect(await listed(`?since=${calls[1]!.started_at}`)).toEqual([2, 1]);
    expect(await listed(`?until=${calls[1]!.started_at}`)).toEqual([0]);
    expect(await listed('?since=2025-12-31T23:59:01%2B00:00&until=2026-01-01T01:00:00%2B01:00')).toEqual([2, 1]);
    expect(await listed('?state=ended')).toEqual([2, 1, 0]);
  });

  it('pages by an opaque cursor', async () => {
    const first = await page('?limit=2');
    expect(first.calls.map(({ call_id }) => call_id)).toEqual([calls[2]!.call_id, calls[1]!.call_id]);
    expect(first.next).toMatch(/^[\w-]+$/);
    expect(await page(`?limit=2&before=${first.next}`)).toEqual({ status: 'success', calls: calls.slice(0, 1).map(listedAs), next: null });
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=1&limit=2', 'limit'],
    [`before=${cursorOf('agents', '001767225600000:153ee546-05b9-4d95-bd6d-f899f082d48b')}`, 'before'],
    ['limit=501', 'limit'],
    ['phone_number=12', 'phone_number'],
    ['reason=BAD', 'reason'],
    ['state=all', 'state'],
    ['since=yesterday', 'since'],
    ['until=2026-01-01', 'until'],
    ['before=MDAw', 'before'],
    ['before=%00', 'before'],
    ['phone=1', 'phone'],
  ])('answers ?%s with 400 and the name of its field', async (query, path) => {
    const answer = await api.get(`/v1/calls?${query}`);
    expect([answer.status, answer.failure.errors.map((entry) => [entry.error, entry.path])]).toEqual([400, [['VALIDATION', path]]]);
  });

  it('reads one call', async () => {
    const answer = await api.get(`/v1/calls/${calls[1]!.call_id.toUpperCase()}`);
    const { samples: _samples, ...call } = calls[1]!;
    expect([answer.status, answer.body]).toEqual([200, { status: 'success', call: { ...call, state: 'ended' } }]);
  });

  describe('calls in progress', () => {
    const number = '+15551234567' as E164;
    let ringing: BeginningCall;
    let answered: BeginningCall;
    beforeEach(async () => {
      await api.stores.numbers.attach(api.orgId, number, { inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS } });
      ringing = begun(newUuid(), { started_at: '2026-01-01T00:00:05.000Z' });
      answered = begun(newUuid(), { started_at: '2026-01-01T00:00:00.000Z' });
      for (const call of [ringing, answered]) await api.stores.routes.lookup(number, call);
      api.stores.snapshots.persist({ ...snapshotOf(answered.call_id, api.orgId, number), call: answered });
    });

    it('are listed by the states of their records, too', async () => {
      const idsIn = async (state: string) => (await page(`?state=${state}`)).calls.map(({ call_id: id }) => id);
      expect(await idsIn('ringing')).toEqual([ringing.call_id]);
      expect(await idsIn('in_progress')).toEqual([answered.call_id]);
      expect(await idsIn('live')).toEqual([ringing.call_id, answered.call_id]);
    });

    it('are listed, newest first, in the shape of those that ended', async () => {
      const { calls: live } = await page('?state=live');
      expect(live).toMatchObject([
        { call_id: ringing.call_id, state: 'ringing', answered_at: null, sip_status: null, reason: null, ended_at: null, codec: null },
        { call_id: answered.call_id, state: 'in_progress', ...ANSWERED, sip_status: 200, timings: { answer_ms: 1_000 }, to: number },
      ]);
      expect(Object.keys(live[0]!).sort()).toEqual(Object.keys(listedAs(calls[0]!)).sort());
      expect(await listed('')).toEqual([2, 1, 0]);
    });

    it('take filters and page', async () => {
      expect((await page('?state=live&phone_number=15551230000')).calls).toEqual([]);
      expect((await page('?state=live&reason=BAD_SDP')).calls).toEqual([]);
      const first = await page('?state=live&limit=1');
      expect(first.calls.map(({ call_id }) => call_id)).toEqual([ringing.call_id]);
      expect((await page(`?state=live&limit=1&before=${first.next}`)).calls.map(({ call_id }) => call_id)).toEqual([answered.call_id]);
    });

    it('are read by their id until they end', async () => {
      const read = await api.get(`/v1/calls/${answered.call_id}`);
      expect([read.status, read.body]).toMatchObject([200, { status: 'success', call: { state: 'in_progress', transcript: [] } }]);
      api.stores.snapshots.delete(answered.call_id);
      expect((await api.get(`/v1/calls/${answered.call_id}`)).status).toBe(404);
      const org = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
      const { key } = await api.stores.keys.create(org.org_id, 'k');
      expect((await api.get(`/v1/calls/${ringing.call_id}`, key)).status).toBe(404);
    });
  });

  describe('for a call here or elsewhere', () => {
    let stopped: [string, string][];
    let live: LiveCall | null;
    let isThere: boolean;
    let elsewhere: unknown;
    let asked: unknown[];
    beforeEach(async () => {
      [stopped, live, isThere, elsewhere, asked] = [[], null, true, null, []];
      api = await openApi({
        liveCalls: {
          find: (callId) => (callId === live?.callId ? live : null),
          trace: (callId) => (callId === live?.callId ? [ENTRY] : null),
          transcript: (callId) => (callId === live?.callId ? [SAID] : null),
          quality: (callId) => Promise.resolve(callId === live?.callId ? [SAMPLE] : null),
          redirect: () => false,
          stop: (callId, reason) => isThere && stopped.push([callId, reason]) > 0,
        },
        replace: () => ({
          bus: {
            request: (instance, body) => {
              asked.push([instance, body]);
              return Promise.resolve(elsewhere);
            },
            onRequest: () => undefined,
          },
        }),
      });
    });

    const stop = (callId: string, body: unknown = {}): Promise<Answer> => api.post(`/v1/calls/${callId}/stop`, body);
    const callHere = (orgId = api.orgId): LiveCall => ({
      callId: newUuid(),
      orgId,
      direction: 'inbound',
      from: '',
      to: '',
      startedAtMs: 0,
      answeredAtMs: null,
    });
    const callElsewhere = async (): Promise<string> => {
      const number = '+15551234567' as E164;
      await api.stores.numbers.attach(api.orgId, number, { inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS } });
      const call = begun(newUuid());
      await api.stores.routes.lookup(number, call);
      return call.call_id;
    };

    it('ends a call of this gateway, with or without a body', async () => {
      live = callHere();
      const { callId } = live;
      const answer = await stop(callId.toUpperCase());
      expect([answer.status, answer.body]).toEqual([200, { status: 'success', message: expect.stringContaining(callId) as unknown }]);
      const bare = await api.send({ method: 'POST', url: `/v1/calls/${callId}/stop`, headers: { authorization: api.key } });
      expect([bare.status, stopped]).toEqual([200, Array(2).fill([callId, 'API_STOPPED'])]);
      expect(await api.stores.audit.list(api.orgId, { take: 1 })).toMatchObject([{ action: 'call.stop', record: callId }]);
      expect((await stop(callId, { force: true })).failure.errors[0]).toMatchObject({ error: 'VALIDATION', path: 'force' });
    });

    it('sends a request to the gateway that has the call', async () => {
      const callId = await callElsewhere();
      elsewhere = { isStopped: true };
      expect((await stop(callId)).status).toBe(200);
      expect([stopped, asked]).toEqual([[], [['memory', { do: 'stop', call_id: callId, reason: 'API_STOPPED' }]]]);
      elsewhere = { isStopped: false };
      expect((await stop(callId)).status).toBe(404);
    });

    it.each([[null], [{ yes: 1 }]])('answers 503 when that gateway answers %j', async (answer) => {
      elsewhere = answer;
      const { status, failure, headers } = await stop(await callElsewhere());
      expect([status, failure.errors[0]?.error, headers['retry-after']]).toEqual([503, 'GATEWAY_UNAVAILABLE', '2']);
    });

    it('reads the trace of a call here, elsewhere, and of one that ended', async () => {
      const trace = async (callId: string, key?: string): Promise<unknown> => (await api.get(`/v1/calls/${callId}/trace`, key)).body;
      const entries = { status: 'success', trace: [ENTRY] };
      live = callHere();
      expect(await trace(live.callId)).toEqual(entries);
      elsewhere = { trace: [ENTRY] };
      expect(await trace(await callElsewhere())).toEqual(entries);
      const [ended, quiet] = [callOf(api.orgId, api.clock.wallMs()), callOf(api.orgId, api.clock.wallMs())];
      await api.stores.calls.write({ ...endedCall(ended), trace: [ENTRY] });
      await api.stores.calls.write(endedCall(quiet));
      expect(await trace(ended.call_id)).toEqual(entries);
      expect(await trace(quiet.call_id)).toEqual({ status: 'success', trace: [] });
      const org = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
      const { key } = await api.stores.keys.create(org.org_id, 'k');
      for (const callId of [ended.call_id, live.callId])
        expect(await trace(callId, key)).toMatchObject({ errors: [{ error: 'NOT_FOUND' }] });
      elsewhere = null;
      expect(await trace(await callElsewhere())).toMatchObject({ errors: [{ error: 'GATEWAY_UNAVAILABLE' }] });
    });

    it('reads the transcript so far of a call here and elsewhere, and nothing while its gateway does not answer', async () => {
      const transcript = async (callId: string): Promise<unknown> =>
        ((await api.get(`/v1/calls/${callId}`)).body as unknown as { call: { transcript: unknown } }).call.transcript;
      const callId = await callElsewhere();
      expect(await transcript(callId)).toEqual([]);
      elsewhere = { transcript: [SAID] };
      expect(await transcript(callId)).toEqual([SAID]);
      expect(asked.at(-1)).toEqual(['memory', { do: 'transcript', call_id: callId }]);
      elsewhere = null;
      live = { ...callHere(), callId };
      expect(await transcript(callId)).toEqual([SAID]);
    });

    it('reads the quality of a call here, elsewhere, and of one that ended', async () => {
      const quality = async (callId: string, key?: string): Promise<unknown> => (await api.get(`/v1/calls/${callId}/quality`, key)).body;
      live = callHere();
      expect(await quality(live.callId)).toEqual({ status: 'success', live: true, samples: [SAMPLE] });
      elsewhere = { samples: [SAMPLE] };
      expect(await quality(await callElsewhere())).toEqual({ status: 'success', live: true, samples: [SAMPLE] });
      const ended = callOf(api.orgId, api.clock.wallMs(), { samples: [SAMPLE] });
      await api.stores.calls.write(endedCall(ended));
      expect(await quality(ended.call_id)).toEqual({ status: 'success', live: false, samples: [SAMPLE] });
      expect(await quality(newUuid())).toMatchObject({ errors: [{ error: 'NOT_FOUND' }] });
      expect(await quality('x')).toMatchObject({ errors: [{ error: 'NOT_FOUND' }] });
      const org = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
      const { key } = await api.stores.keys.create(org.org_id, 'k');
      for (const callId of [ended.call_id, live.callId])
        expect(await quality(callId, key)).toMatchObject({ errors: [{ error: 'NOT_FOUND' }] });
      elsewhere = null;
      expect(await quality(await callElsewhere())).toMatchObject({ errors: [{ error: 'GATEWAY_UNAVAILABLE' }] });
    });

    it('answers 404 for a call that ended, for none, and for another organization’s', async () => {
      const ended = callOf(api.orgId, api.clock.wallMs());
      await api.stores.calls.write(endedCall(ended));
      expect((await stop(ended.call_id)).failure).toMatchObject({ message: 'The call has ended', errors: [{ error: 'NOT_FOUND' }] });
      expect((await stop('x')).failure.message).toBe('There is no such call in progress');
      live = callHere('another');
      expect((await stop(live.callId)).failure.message).toBe('There is no such call in progress');
      isThere = false;
      live = callHere();
      expect((await stop(live.callId)).status).toBe(404);
      expect(stopped).toEqual([]);
    });
  });

  it('answers 404 for calls that do not exist, and those of another organization', async () => {
    const org = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
    const { key } = await api.stores.keys.create(org.org_id, 'k');
    for (const [id, with_] of [
      [newUuid(), api.key],
      ['not-a-uuid', api.key],
      [calls[0]!.call_id, key],
    ] as const) {
      const answer = await api.get(`/v1/calls/${id}`, with_);
      expect([answer.status, answer.failure.errors[0]?.error]).toEqual([404, 'NOT_FOUND']);
    }
    expect(JSON.parse((await api.get('/v1/calls', key)).text)).toEqual({ status: 'success', calls: [], next: null });
  });

  it('needs a key, but no SIP entitlement, so past calls stay readable', async () => {
    await api.stores.orgs.change(api.orgId, { sip_enabled: false });
    expect((await api.get('/v1/calls')).status).toBe(200);
    expect((await api.get('/v1/calls', 'tl_nobody')).status).toBe(401);
  });
});
