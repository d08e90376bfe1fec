import { beforeEach, describe, expect, it } from 'vitest';
import { parseE164 } from '../../../../src/gateway/model/e164.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { HOSTILE, hasPathParameters, queryParameters, withHostileText } from '../../../support/hostile.js';
import {
  bodyExamples,
  exampleRequests,
  isTwilios,
  nameOf,
  operationsOf,
  pathOf,
  type ApiDocument,
  type Operation,
} from '../../../support/openapi.js';
import { toolOf } from '../../../support/tool.js';
import { agentOf, callOf, endedCall, inboundSetting } from '../store/store-contract.js';
import { openApi, type Answer, type ApiFixture } from './api-fixture.js';

// Over all routes of the document: who may see and change what, and what hostile input does.

const NUMBER = '+15551234567';
const UNKNOWN = '+15550000001';
const BEARER = 'bearer-secret-0123456789';
const HEADER = 'header-secret-0123456789';
const UNLIMITED = { total: 1e9, perAddress: 1e9, perKey: 1e9 };

let api: ApiFixture;
let operations: Operation[];
let keyed: Operation[];
/** By the names of the path's parameters: records of the organization of `api.key`. */
let owned: Record<string, string>;
let stranger: { readonly orgId: string; readonly key: string };

beforeEach(async () => {
  api = await openApi({
    rateLimits: UNLIMITED,
    toolRunner: { run: () => Promise.resolve({ ok: true, value: { result: {}, httpStatus: 200 } }) },
  });
  // Twilio's is in twilio-routes.test.ts, and twilio-security.test.ts beside the agents.
  operations = operationsOf(JSON.parse((await api.get('/openapi.json')).text) as ApiDocument).filter((one) => !isTwilios(one));
  keyed = operations.filter(({ security = [] }) => security.length > 0);
  owned = await makeRecords(api.orgId);
  const { org_id: orgId } = await api.stores.orgs.create({ name: 'stranger', sip_enabled: true });
  stranger = { orgId, key: (await api.stores.keys.create(orgId, 'k')).key };
});

async function makeRecords(orgId: string, number = NUMBER): Promise<Record<string, string>> {
  const { stores, clock } = api;
  const agent = agentOf(orgId, { stream: { url: 'wss://bot.example/', format: 'twilio', bearer_token: BEARER } });
  const made = toolOf(orgId);
  const tool = { ...made, tool: { ...made.tool, headers: { 'x-api-key': HEADER } } };
  await stores.agents.put(agent);
  await stores.tools.put(tool);
  await stores.numbers.attach(orgId, parseE164(number)!, { inbound: { ...inboundSetting(), agent_id: agent.agent_id } });
  const { batch_id } = await stores.batches.create({ orgId, name: 'Reminders' });
  await stores.batches.append(orgId, batch_id, { event_type: 'note', payload: { text: 'private' } });
  const call = callOf(orgId, clock.wallMs(), { to: number });
  await stores.calls.write(endedCall(call));
  const delivery = { delivery_id: newUuid(), org_id: orgId, url: 'https://customer.example/', body: '{}', created_at: call.started_at };
  await stores.outbox.bury({ ...delivery, attempts: 1, last_error: null });
  return { agent_id: agent.agent_id, tool_id: tool.tool_id, batch_id, call_id: call.call_id, delivery_id: delivery.delivery_id };
}

/** Everything that the organization can read of itself. */
async function everythingOf(key: string): Promise<string> {
  // The audit log grows with what is asked; the intervals of the throughput are those of the clock.
  const moving = ['/v1/audit', '/v1/throughput'];
  const lists = keyed.filter((one) => one.method === 'GET' && !hasPathParameters(one) && !moving.includes(one.path));
  return (await Promise.all(lists.map(async ({ path }) => (await api.get(path, key)).text))).join('\n');
}

function send({ method }: Operation, url: string, body: unknown, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  return api.send({ method, url, headers: { ...type, ...headers }, payload: body === undefined ? undefined : JSON.stringify(body) });
}

const asked = (operation: Operation, key: string, values: Readonly<Record<string, string>> = {}, body = bodyExamples(operation)[0]) =>
  send(operation, pathOf(operation, values), body, { authorization: key });

const withoutIds = ({ status, text }: Answer, ...ids: readonly string[]) => [
  status,
  ids.reduce((one, id) => one.replaceAll(id, 'ID'), text),
];

describe('a request', () => {
  it('gets the same 401 on every route without a key, with an invalid key, and with a revoked one', async () => {
    const { key, record } = await api.stores.keys.create(api.orgId, 'old');
    await api.stores.keys.revoke(record.key_id);
    const changed = api.key.slice(0, -1) + (api.key.endsWith('A') ? 'B' : 'A');
    const bad = [
      '',
      'Bearer',
      'tl_',
      `tl_${'x'.repeat(23)}`,
      `tl_${'x'.repeat(32)}`,
      `tl_${'x'.repeat(9_000)}`,
      changed,
      `${api.key}x`,
      api.key.slice(0, -1),
      api.key.toUpperCase(),
      `${api.key}, ${api.key}`,
      `Basic ${api.key}`,
      `{${api.key}}`,
      'tl_*',
      key,
    ];
    const before = await everythingOf(api.key);
    for (const operation of keyed)
      for (const headers of [{}, ...bad.map((authorization) => ({ authorization }))]) {
        const answer = await send(operation, pathOf(operation, owned), bodyExamples(operation)[0], headers);
        expect([answer.status, answer.failure], nameOf(operation)).toEqual([
          401,
          {
            status: 'error',
            message: 'The authorization header must hold a valid API key',
            data: null,
            errors: [{ error: 'UNAUTHENTICATED', message: 'The authorization header must hold a valid API key' }],
          },
        ]);
        expect(answer.headers['www-authenticate']).toBe('Bearer');
      }
    expect(await everythingOf(api.key)).toBe(before);
  });

  it('is refused for a disabled organization on every route, and without SIP on those of /sip, before anything is checked', async () => {
    await api.stores.orgs.change(stranger.orgId, { sip_enabled: false });
    for (const operation of keyed) {
      const { status, failure } = await send(operation, pathOf(operation, owned), { any: 'thing' }, { authorization: stranger.key });
      if (operation.path.startsWith('/sip'))
        expect([status, failure.errors[0]?.error], nameOf(operation)).toEqual([403, 'SIP_NOT_ENABLED']);
      else expect(status, nameOf(operation)).not.toBe(403);
    }
    await api.stores.orgs.change(stranger.orgId, { disabled: true });
    for (const operation of keyed) {
      const { status, failure } = await send(operation, pathOf(operation, owned), { any: 'thing' }, { authorization: stranger.key });
      expect([status, failure.errors[0]?.error], nameOf(operation)).toEqual([403, 'ORG_DISABLED']);
    }
  });
});

describe("another organization's key", () => {
  it('gets by id an answer as if nothing existed, and changes nothing', async () => {
    const before = await everythingOf(api.key);
    const unknown = Object.fromEntries(Object.keys(owned).map((name) => [name, name === 'tool_id' ? `TL-${newUuid()}` : newUuid()]));
    const routes = keyed.filter(hasPathParameters);
    expect(routes.length).toBeGreaterThan(8);
    for (const operation of routes) {
      const ids = [...Object.values(owned), ...Object.values(unknown)];
      const foreign = withoutIds(await asked(operation, stranger.key, owned), ...ids);
      expect(foreign, nameOf(operation)).toEqual(withoutIds(await asked(operation, stranger.key, unknown), ...ids));
      expect(foreign[0], nameOf(operation)).toBe(404);
    }
    expect(await everythingOf(api.key)).toBe(before);
  });

  it('gets by number, and by ids in bodies and queries, the same answer', async () => {
    const before = await everythingOf(api.key);
    const record = (await api.stores.numbers.get(api.orgId, parseE164(NUMBER)!))!;
    const { agent_id: agentId = '', tool_id: toolId = '' } = owned;
    const pairs: readonly (readonly [string, string, (id: string) => unknown])[] = [
      [NUMBER, UNKNOWN, (id) => api.get(`/sip?inbound_id=${id}`, stranger.key)],
      [record.inbound_id, `IN-${newUuid()}`, (id) => api.get(`/sip?inbound_id=${id}`, stranger.key)],
      [NUMBER, UNKNOWN, (id) => api.get(`/v1/calls?phone_number=${id.slice(1)}`, stranger.key)],
      [NUMBER, UNKNOWN, (id) => api.post('/sip/update', { phone_number: id, updates: { type: 'inbound' } }, stranger.key)],
      [NUMBER, UNKNOWN, (id) => api.post('/sip/detach', { phone_number: id, directions: 'inbound', service: 'sip' }, stranger.key)],
      [
        agentId,
        newUuid(),
        (id) => api.post('/sip/attach', { phone_number: UNKNOWN, directions: ['inbound'], service: 'sip', agent_id: id }, stranger.key),
      ],
      [toolId, `TL-${newUuid()}`, (id) => api.post('/v1/agents', { prompt: 'x', tools: [id] }, stranger.key)],
    ];
    for (const [theirs, nobodys, ask] of pairs) {
      const [foreign, none] = [(await ask(theirs)) as Answer, (await ask(nobodys)) as Answer];
      expect(withoutIds(foreign, theirs, nobodys)).toEqual(withoutIds(none, theirs, nobodys));
    }
    const taken = await api.post('/sip/attach', { phone_number: NUMBER, directions: ['inbound'], service: 'sip' }, stranger.key);
    expect([taken.status, taken.text.includes(api.orgId)]).toEqual([409, false]);
    expect(await everythingOf(api.key)).toBe(before);
  });

  it('gets lists without anything of the owner', async () => {
    const seen = await everythingOf(stranger.key);
    for (const text of [api.orgId, NUMBER, ...Object.values(owned)]) expect(seen).not.toContain(text);
    expect((await api.get('/v1/audit', stranger.key)).text).not.toContain(api.orgId);
    const own = await everythingOf(api.key);
    for (const text of [NUMBER, ...Object.values(owned)]) expect(own).toContain(text);
  });
});

describe('a body', () => {
  const withBody = () => keyed.filter(({ requestBody }) => requestBody !== undefined);
  const raw = async (operation: Operation, payload: string) => {
    const answer = await api.send({
      method: operation.method,
      url: pathOf(operation, owned),
      headers: { authorization: api.key, 'content-type': 'application/json' },
      payload,
    });
    // A turn rests after a large body.
    api.clock.advance(1_000);
    return answer;
  };

  it('of 256 KiB is read, and one byte more gets 413', async () => {
    // A batch brings its numbers along.
    const limitOf = (operation: Operation): number => (nameOf(operation) === 'POST /v2/batches' ? 8_388_608 : 262_144);
    for (const operation of withBody()) {
      const limit = limitOf(operation);
      const padded = (length: number) => `{"x":"${'a'.repeat(length - 8)}"}`;
      expect([padded(limit).length, (await raw(operation, padded(limit))).status], nameOf(operation)).toEqual([limit, 400]);
      const { status, failure } = await raw(operation, padded(limit + 1));
      expect([status, failure.errors[0]?.error], nameOf(operation)).toEqual([413, 'TOO_LARGE']);
    }
  });

  it('gets 400 when it is deep, has harmful names or a hundred thousand members, and changes no object of ours', async () => {
    const bad = [
      '['.repeat(100_000) + ']'.repeat(100_000),
      '{"a":'.repeat(33) + '1' + '}'.repeat(33),
      '{"__proto__":{"polluted":true}}',
      '{"constructor":{"prototype":{"polluted":true}}}',
      '{"a":{"__proto__":{"polluted":true}}}',
      `[${'1,'.repeat(100_000)}1]`,
      `{"directions":[${'1,'.repeat(60_000)}1],"tools":[${'1,'.repeat(60_000)}1]}`,
      '{"a":1',
      'NaN',
      '"text"',
      '\u0000',
    ];
    const before = await everythingOf(api.key);
    for (const operation of withBody())
      for (const payload of bad) {
        const { status, failure } = await raw(operation, payload);
        expect([status, failure.errors[0]?.error], `${nameOf(operation)} ${payload.slice(0, 40)}`).toEqual([400, 'VALIDATION']);
        expect(failure.errors.length).toBeLessThanOrEqual(100);
      }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(await everythingOf(api.key)).toBe(before);
  });

  it('that has a name twice has the checked value used', async () => {
    const attach = (first: string, second: string) =>
      raw(
        keyed.find(({ path }) => path === '/sip/attach')!,
        `{"phone_number":"${first}","directions":["inbound"],"service":"sip","phone_number":"${second}"}`,
      );
    expect((await attach('no number', UNKNOWN)).record.phone_number).toBe(UNKNOWN);
    expect((await attach(UNKNOWN, 'no number')).status).toBe(400);
  });
});

describe('hostile text', () => {
  it.each(HOSTILE.map((hostile) => [JSON.stringify(hostile.slice(0, 40)), hostile]))(
    'by %s in paths, queries and bodies of every route is refused, or is the value of that field and nothing else',
    async (_shown, hostile) => {
      await makeRecords(stranger.orgId, UNKNOWN);
      const strangers = await everythingOf(stranger.key);
      expect(strangers).toContain(UNKNOWN);
      for (const operation of keyed) {
        const escaped = encodeURIComponent(Buffer.from(hostile).toString());
        const urls = [
          ...(hasPathParameters(operation) ? [operation.path.replace(/\{\w+\}/g, escaped)] : []),
          ...queryParameters(operation).map(({ name }) => `${pathOf(operation, owned)}?${name}=${escaped}`),
        ];
        for (const url of urls) await survives(operation, url, bodyExamples(operation)[0], hostile);
        if (operation.method !== 'DELETE')
          for (const body of withHostileText(bodyExamples(operation)[0], hostile))
            await survives(operation, pathOf(operation, owned), body, hostile);
      }
      expect(await everythingOf(stranger.key)).toBe(strangers);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
      // One event a line, whatever was in it; the routes of requests are patterns.
      const routes = new Set(operations.map(({ path }) => path.replaceAll(/\{(\w+)\}/g, ':$1')));
      for (const { fields } of api.lines.filter(({ event }) => event === 'api.request'))
        expect([null, ...routes]).toContain(fields['route']);
    },
  );

  async function survives(operation: Operation, url: string, body: unknown, hostile: string): Promise<void> {
    const answer = await send(operation, url, body, { authorization: api.key, 'x-request-id': hostile.replace(/[^\x20-\x7e]/g, '') });
    const what = `${nameOf(operation)} ${JSON.stringify(hostile.slice(0, 40))}`;
    expect([200, 400, 404, 409, 412, 429], what).toContain(answer.status);
    expect(answer.headers['x-injected'], what).toBeUndefined();
    expect(String(answer.headers['x-request-id']), what).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  }
});

describe('the secrets', () => {
  it('are in no answer and no log line of any route, whether it succeeds or fails', async () => {
    const { webhook_secret: webhookSecret, twilio_token: twilioToken } = (await api.stores.orgs.get(api.orgId))!;
    const texts: string[] = [];
    const ask = async (operation: Operation, query: string, body: unknown) => {
      const answer = await send(operation, pathOf(operation, owned) + query, body, { authorization: `Bearer ${api.key}` });
      texts.push(answer.text, JSON.stringify(answer.headers));
    };
    const stream = { url: 'wss://other.example/', bearer_token: BEARER };
    const { tool } = toolOf(api.orgId);
    const inline = { ...tool, headers: { 'x-api-key': HEADER } };
    const agentBodies = [
      { stream },
      { stream, max_duration: 0 },
      { stream: { ...stream, url: 'no url' } },
      { stream: { ...stream, more: 1 } },
      { tools: [inline] },
      { tools: [{ ...inline, timeout: 0 }] },
      { tools: [{ ...inline, more: 1 }], max_duration: 0 },
    ];
    const toolBodies = [
      { tool: inline },
      { tool: { ...inline, timeout: 0 } },
      { tool: { ...inline, headers: { 'x-api-key': `${HEADER}\n` } } },
      { tool: inline, more: 1 },
    ];
    // What deletes comes last.
    const ordered = [...keyed].sort((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
    for (const operation of ordered) {
      for (const { query, body } of exampleRequests(operation)) await ask(operation, query, body);
      if (operation.path.startsWith('/v1/agents') && operation.method === 'POST')
        for (const body of agentBodies) await ask(operation, '', body);
      if (operation.path === '/v1/tools' && operation.method === 'POST') for (const body of toolBodies) await ask(operation, '', body);
    }
    expect(texts.length).toBeGreaterThan(100);
    const all = texts.join('\n') + JSON.stringify(api.lines);
    for (const secret of [api.key, webhookSecret, twilioToken, BEARER, HEADER])
      expect(all.includes(secret), secret.slice(0, 6)).toBe(false);
    // They were there to be told.
    expect(JSON.stringify((await api.stores.agents.list(api.orgId)).records)).toContain(BEARER);
    expect(JSON.stringify((await api.stores.tools.list(api.orgId)).records)).toContain(HEADER);
  });
});
