import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import { parseE164 } from '../../../../src/gateway/model/e164.js';
import type { PlaceCall } from '../../../../src/gateway/ports/place-call.js';
import { openApi, type ApiFixture } from './api-fixture.js';

const FROM = '+15550100555';
const BODY = { phone_number: '49 30'.replace(' ', '') + '123456', from: FROM };

let api: ApiFixture;
let asked: Parameters<PlaceCall['place']>[0][];
let refusal: ReturnType<PlaceCall['refusal']>;
let fails: boolean;

beforeEach(async () => {
  [asked, refusal, fails] = [[], null, false];
  const placeCall: PlaceCall = {
    kept: () => Promise.resolve(),
    fromRefusal: () => null,
    priceOf: () => ({ ok: true, value: 0.01 }),
    refusal: () => refusal,
    place: (call) => {
      if (fails) return { ok: false, error: 'DRAINING' };
      asked.push(call);
      return { ok: true, value: call.callId };
    },
  };
  api = await openApi({ placeCall });
  await api.stores.numbers.attach(api.orgId, parseE164(FROM)!, { outbound: { sip_endpoint: 'a.example', username: 'u', password: 'p' } });
});

async function post(url: string, body: object, headers: Record<string, string> = {}) {
  const all = { authorization: api.key, 'content-type': 'application/json', ...headers };
  const { status, text, headers: answered } = await api.send({ method: 'POST', url, headers: all, payload: JSON.stringify(body) });
  return { status, headers: answered, json: JSON.parse(text) as Record<string, unknown> };
}

const place = (body: object = {}, headers: Record<string, string> = {}) => post('/v1/calls', { ...BODY, ...body }, headers);

async function newAgent(settings: Partial<AgentRecord> = {}): Promise<string> {
  const agent_id = '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11';
  const times = { created_at: '', updated_at: '' };
  await api.stores.agents.put({ ...DEFAULT_AGENT_SETTINGS, ...settings, agent_id, org_id: api.orgId, name: 'Front desk', ...times });
  return agent_id;
}

describe('POST /v1/calls', () => {
  it('answers with the id of the call, which is placed with the trunk of the number', async () => {
    const answer = await place();
    expect(answer).toMatchObject({ status: 200, json: { status: 'success', call_id: asked[0]?.callId } });
    expect(asked).toEqual([
      {
        callId: asked[0]?.callId,
        orgId: api.orgId,
        from: FROM,
        to: '+4930123456',
        trunk: { sip_endpoint: 'a.example', username: 'u', password: 'p' },
        agent: null,
        ringTimeoutMs: 60_000,
        detectAnswerer: false,
        sipHeaders: {},
      },
    ]);
    const [entry] = await api.stores.audit.list(api.orgId, { take: 1 });
    expect(entry).toMatchObject({ action: 'call.place', record: asked[0]?.callId });
  });

  it('gives the call an agent, with what the body changes of it', async () => {
    const agent_id = await newAgent({ prompt: 'Be kind.', max_duration: 10 });
    await place({ agent_id, metadata: { order: 7 }, max_duration: 2, webhook: 'https://example.com/hook', ring_timeout: 180 });
    expect(asked[0]).toMatchObject({
      agent: { agent_id, prompt: 'Be kind.', metadata: { order: 7 }, max_duration: 2, webhook: 'https://example.com/hook' },
      ringTimeoutMs: 180_000,
    });
    await place({ agent_id });
    expect(asked[1]?.agent).toMatchObject({ prompt: 'Be kind.', max_duration: 10, webhook: null });
  });

  it('takes inline settings of an agent for this call alone, and metadata for the default one', async () => {
    await place({ agent: { prompt: 'Ask for the order.', first_sentence: 'Hello.' }, metadata: { a: 1 } });
    expect(asked[0]?.agent).toMatchObject({ agent_id: '', org_id: api.orgId, prompt: 'Ask for the order.', metadata: { a: 1 } });
    await place({ metadata: { a: 1 } });
    expect(asked[1]?.agent).toMatchObject({ agent_id: '', prompt: null, metadata: { a: 1 } });
  });

  it.each([
    ['no number', { phone_number: '112' }, ['phone_number']],
    ['a number that is not attached', { from: '+15550100556' }, ['from']],
    ['an agent that does not exist', { agent_id: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c12' }, ['agent_id']],
    ['an agent and settings of one', { agent_id: null, agent: { prompt: 'x' } }, ['agent']],
    ['settings without a prompt', { agent: { first_sentence: 'x' } }, ['agent.prompt']],
    ['settings with an unknown tool', { agent: { prompt: 'x', tools: ['TL-4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c12'] } }, ['agent.tools[0]']],
    ['a ring timeout that is too short', { ring_timeout: 4 }, ['ring_timeout']],
    ['a ring timeout that is too long', { ring_timeout: 181 }, ['ring_timeout']],
    ['an unknown field', { retries: 1 }, ['retries']],
  ])('refuses %s, and places nothing', async (_what, body, paths) => {
    const { status, json } = await place(body);
    expect(status).toBe(400);
    expect((json['errors'] as { path: string }[]).map(({ path }) => path)).toEqual(paths);
    expect(asked).toEqual([]);
  });

  it('answers 403 with the cause to what may not be dialled, and 503 to what cannot be dialled now', async () => {
    refusal = { code: 'DIAL_NOT_ALLOWED', message: 'Not dialled: no prefix' };
    expect(await place()).toMatchObject({ status: 403, json: { message: 'Not dialled: no prefix' } });
    refusal = { code: 'NOT_READY', message: 'Later' };
    const later = await place();
    expect([later.status, later.headers['retry-after']]).toEqual([503, '2']);
    expect(asked).toEqual([]);
  });

  it('places one call for an idempotency key and body; one that could not be placed may be tried again', async () => {
    const headers = { 'idempotency-key': 'k' };
    // As the ledger of placed calls does.
    const reserved = () => api.stores.placements.keep(api.orgId, { key: 'k', callId: asked[0]?.callId ?? '' });
    fails = true;
    expect((await place({}, headers)).status).toBe(503);
    fails = false;
    const first = await place({}, headers);
    expect(asked[0]).toMatchObject({ idempotencyKey: 'k' });
    // A gateway that was killed meanwhile may never have placed it.
    const early = await place({}, headers);
    expect([early.status, early.headers['retry-after']]).toEqual([503, '2']);
    expect(await reserved()).toBe(true);
    const second = await place({}, headers);
    expect(second.json['call_id']).toBe(first.json['call_id']);
    expect(asked).toHaveLength(1);
    expect(await place({ ring_timeout: 9 }, headers)).toMatchObject({ status: 409 });
    expect(await place({}, { 'idempotency-key': 'a b' })).toMatchObject({ status: 400 });
    // What was placed is answered, whatever may be dialled now.
    refusal = { code: 'DIAL_NOT_ALLOWED', message: '' };
    expect((await place({}, headers)).json['call_id']).toBe(first.json['call_id']);
  });
});

describe('the credentials of a trunk', () => {
  const outbound = async () => (await api.stores.numbers.get(api.orgId, parseE164(FROM)!))?.outbound;
  const update = (updates: object) =>
    post('/sip/update', { phone_number: FROM, updates: { type: 'outbound', sip_endpoint: 'b.example', ...updates } });

  it('keep their values unless new ones are given, and null removes them; the password is never shown', async () => {
    const answer = await update({ realm: 'r' });
    expect(answer.json['data']).toMatchObject({ outbound: { sip_endpoint: 'b.example', username: 'u', realm: 'r' } });
    expect(JSON.stringify(answer.json)).not.toContain('password');
    expect(await outbound()).toEqual({ sip_endpoint: 'b.example', username: 'u', password: 'p', realm: 'r' });
    await update({ password: null, realm: null, username: 'v' });
    expect(await outbound()).toEqual({ sip_endpoint: 'b.example', username: 'v' });
  });

  it('belong to a direction of type outbound only', async () => {
    const directions = [{ type: 'inbound', username: 'u' }];
    const { status, json } = await post('/sip/attach', { phone_number: FROM, directions, service: 'sip' });
    expect([status, json['errors']]).toEqual([400, [expect.objectContaining({ path: 'directions[0].username' })]]);
  });
});
