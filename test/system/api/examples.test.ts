import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callsOf, giveNumberToAgent } from '../../../docs/examples/client.js';
import { silentLog } from '../../../src/lib/log.js';
import { newUuid } from '../../../src/lib/ids.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { accountSidOf, callSidOf } from '../../../src/gateway/model/twilio-ids.js';
import { CarrierCall } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import {
  AnswerSchemas,
  exampleRequests,
  isTwilios,
  withTwilios,
  nameOf,
  operationsOf,
  successOf,
  pathOf,
  type ApiDocument,
  type ExampleRequest,
  type Operation,
} from '../../support/openapi.js';
import { WebhookReceiver } from '../../support/webhook-receiver.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

// Every example of /openapi.json, sent to the whole product.

/** Headers whose presence in an answer the document has to tell of. */
const TOLD = [
  'x-request-id',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'etag',
  'www-authenticate',
  'allow',
];

let gateway: RunningGateway;
let stores: RedisStores;
let tool: WebhookReceiver;
let document: ApiDocument;
let callId: string;

beforeAll(async () => {
  tool = await WebhookReceiver.start();
  gateway = await RunningGateway.start({ TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true', TRUNKLINE_TRUNKS_ALLOW_PRIVATE: 'true' });
  const url = `redis://127.0.0.1:${gateway.environment['TRUNKLINE_REDIS_PORT'] ?? ''}`;
  stores = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url, clock: systemClock, log: silentLog });
  await stores.ready(HANG_GUARD_MS);
  const read = async (path: string) => (await gateway.api('GET', path)).json as unknown as ApiDocument;
  document = withTwilios(await read('/openapi.json'), await read('/openapi-twilio.json'));
  callId = await endedCall();
});
afterAll(async () => {
  await stores.close();
  await gateway.destroy();
  await tool.stop();
});

async function endedCall(): Promise<string> {
  const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
  await call.request('BYE');
  call.close();
  return String((await gateway.record(call.signalling.callId))['call_id']);
}

async function idOf(path: string, body: object, ...where: readonly string[]): Promise<string> {
  const { json } = await gateway.api('POST', path, body);
  return String(where.reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], json));
}

/** A new record for each parameter of a path, so that no example meets what another one left. */
const MAKERS: Readonly<Record<string, (operation: Operation) => Promise<string>>> = {
  agent_id: () => idOf('/v1/agents', { prompt: 'Be brief.' }, 'agent', 'agent_id'),
  tool_id: () =>
    idOf('/v1/tools', { tool: { name: 'Book', description: 'Books.', url: tool.url('/book'), response: {} } }, 'tool', 'tool_id'),
  batch_id: async ({ path }) => {
    if (/start|pause|resume|stop/.test(path)) return dialledBatch(path);
    const orgId = gateway.ready.org_id;
    const { batch_id: id } = await stores.batches.create({ orgId, name: 'Reminders' });
    await stores.batches.append(orgId, id, { event_type: 'complete', payload: { calls_total: 2, calls_failed: 0, calls_successful: 2 } });
    return id;
  },
  phone_number: () => Promise.resolve('+15550100999'),
  accountSid: () => Promise.resolve(accountSidOf(gateway.ready.org_id)),
  callSid: async () => callSidOf(await liveCall()),
  call_id: async ({ path }) => (path.endsWith('/stop') ? liveCall() : callId),
  delivery_id: async () => {
    const now = new Date().toISOString();
    const [id, delivery] = [newUuid(), { org_id: gateway.ready.org_id, url: tool.url('/dead'), body: '{}', created_at: now }];
    await stores.outbox.bury({ ...delivery, delivery_id: id, attempts: 17, last_error: 'it answered 503' });
    return id;
  },
};

/** A batch whose only number is called at a time that is far. */
async function dialledBatch(path: string): Promise<string> {
  await allowDialling('+15551234567');
  const [from, to] = new Date().getUTCHours() < 12 ? ['22:00', '23:00'] : ['01:00', '02:00'];
  const hours = { from, to, days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] };
  const numbers = [{ phone_number: '+15550100999', time_zone: 'UTC' }];
  const start = !path.endsWith('/start');
  const id = await idOf('/v2/batches', { name: 'Reminders', from: '+15551234567', start, numbers, hours }, 'data', 'batch_id');
  await expect
    .poll(async () => (await gateway.api('GET', `/v2/batches/${id}`)).json)
    .toMatchObject({ data: { state: start ? 'in_progress' : 'ready' } });
  if (path.endsWith('/resume')) await gateway.api('POST', `/v2/batches/${id}/pause`, {});
  return id;
}

async function liveCall(): Promise<string> {
  await CarrierCall.talking(gateway, gateway.ready.phone_number);
  const { json } = await gateway.api('GET', '/v1/calls?state=live');
  return (json['calls'] as { readonly call_id: string }[])[0]?.call_id ?? '';
}

async function recordsFor(operation: Operation): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const { name, in: where } of operation.parameters ?? [])
    if (where === 'path') values[name] = (await MAKERS[name]?.(operation)) ?? '';
  return values;
}

/** Updates and detaches are of what is attached. */
async function attachBoth(body: unknown): Promise<void> {
  const { phone_number: number } = body as { readonly phone_number: string };
  await gateway.api('POST', '/sip/attach', {
    phone_number: number,
    directions: ['inbound', 'outbound'],
    service: 'sip',
    sip_endpoint: 'pbx.example.com',
  });
}

/** The operator allows it, and the number is attached. Nobody answers at the trunk. */
async function allowDialling(from: string): Promise<void> {
  const limits = ['--max-calls-per-second', '9', '--max-concurrent-calls', '9', '--max-calls-per-day', '9', '--max-cost-per-day', '9'];
  await gateway.cli('org', 'set-dialling', gateway.ready.org_id, '--prices', '+1=0.01', '--callers', from, ...limits);
  await gateway.api('POST', '/sip/attach', { phone_number: from, directions: ['outbound'], service: 'sip', sip_endpoint: '127.0.0.1:9' });
}

/** A call can be placed, and its agent exists. */
async function placeable({ method, path }: Operation, body: unknown): Promise<unknown> {
  if (method !== 'POST' || !/\/calls(?:\.json)?$/i.test(path)) return body;
  const { from, From = from } = body as { readonly from?: string; readonly From?: string };
  await allowDialling(From ?? '');
  return From === from ? { ...(body as object), agent_id: await MAKERS['agent_id']?.({} as Operation) } : body;
}

async function send({ operation, query, body: example }: ExampleRequest): Promise<Response> {
  const body = await placeable(operation, example);
  if (/^\/sip\/(?:update|detach)$/.test(operation.path)) await attachBoth(body);
  const path = pathOf(operation, await recordsFor(operation));
  // The key is of one organization, which is not that of the example.
  const asked = query.replace(/(?<=[?&]org_id=)[^&]+/, gateway.ready.org_id);
  const url = `${gateway.ready.http}${path}${asked}`;
  if (isTwilios(operation)) return sendAsTwilio(operation, url, body as Record<string, string> | undefined);
  return fetch(url, {
    method: operation.method,
    headers: { authorization: gateway.ready.api_key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function sendAsTwilio({ method }: Operation, url: string, form: Readonly<Record<string, string>> | undefined): Promise<Response> {
  const { org_id: orgId } = gateway.ready;
  const token = (await stores.orgs.get(orgId))?.twilio_token ?? '';
  const credentials = Buffer.from(`${accountSidOf(orgId)}:${token}`).toString('base64');
  const headers = { authorization: `Basic ${credentials}` };
  return fetch(url, { method, headers, ...(form === undefined ? {} : { body: new URLSearchParams(form) }) });
}

describe('every example of /openapi.json', () => {
  it('gets 200, a body of its schema, and the headers that are described', async () => {
    const schemas = new AnswerSchemas(document);
    const requests = operationsOf(document).flatMap(exampleRequests);
    expect(requests.length).toBeGreaterThan(operationsOf(document).length);
    for (const request of requests) {
      const { operation } = request;
      const answer = await send(request);
      const text = await answer.text();
      const what = `${nameOf(operation)}${request.query} ${JSON.stringify(request.body)}`;
      expect([answer.status, text], what).toEqual([successOf(operation), text]);
      expect(schemas.faults(operation, answer.status, JSON.parse(text)), what).toEqual([]);
      const described = Object.keys(operation.responses[String(answer.status)]?.headers ?? {});
      expect(
        TOLD.filter((name) => answer.headers.has(name)).filter((name) => !described.includes(name)),
        what,
      ).toEqual([]);
    }
  });

  it('gets the described refusal without a key, except on routes that need none', async () => {
    const schemas = new AnswerSchemas(document);
    for (const operation of operationsOf(document)) {
      const answer = await fetch(`${gateway.ready.http}${pathOf(operation)}`, { method: operation.method });
      const isOpen = operation.security?.length === 0;
      expect(answer.status, nameOf(operation)).toBe(isOpen ? 200 : 401);
      expect(schemas.faults(operation, answer.status, await answer.json()), nameOf(operation)).toEqual([]);
      const described = Object.keys(operation.responses[String(answer.status)]?.headers ?? {});
      expect(
        TOLD.filter((name) => answer.headers.has(name)).filter((name) => !described.includes(name)),
        nameOf(operation),
      ).toEqual([]);
      expect(answer.headers.has('www-authenticate')).toBe(!isOpen);
    }
  });
});

describe('docs/examples/client.ts', () => {
  it('attaches a number to an agent, and lists calls', async () => {
    const { http, api_key: key, phone_number: number } = gateway.ready;
    const record = await giveNumberToAgent(http, key, '15550100777', 'Be brief.');
    expect(record.inbound?.agent_id).toMatch(/^[\da-f-]{36}$/);
    expect((await gateway.api('GET', '/sip?inbound_id=15550100777')).json['data']).toEqual(record);
    expect((await callsOf(http, key, number)).join('\n')).toContain('CALLER_HANGUP');
    await expect(callsOf(http, key, 'Kim')).rejects.toMatchObject({ name: 'ApiError', status: 400, code: 'VALIDATION' });
  });
});

describe('the command line over HTTP', () => {
  it('finds the running gateway and its key', async () => {
    const listed = await gateway.cli('number', 'list');
    expect([listed.code, listed.stderr]).toEqual([0, `Organization: Demo (${gateway.ready.org_id})\n`]);
    expect(listed.stdout).toContain(gateway.ready.phone_number);
    const traced = await gateway.cli('calls', 'trace', callId);
    expect(traced.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3} {2}sip +→ INVITE /m);
    const live = await liveCall();
    expect((await gateway.cli('calls', 'stop', live)).stdout).toBe(`Call ${live} is being ended.\n`);
  });
});
