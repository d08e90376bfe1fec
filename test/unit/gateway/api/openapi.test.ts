import { beforeAll, describe, expect, it } from 'vitest';
import { API_ERRORS } from '../../../../src/gateway/api/schemas/api-error.js';
import {
  AnswerSchemas,
  bodyExamples,
  isTwilios,
  nameOf,
  operationsOf,
  successOf,
  withTwilios,
  type ApiDocument,
} from '../../../support/openapi.js';
import { E164_PATTERN } from '../../../../src/gateway/model/e164.js';
import { accountSidOf } from '../../../../src/gateway/model/twilio-ids.js';
import { openApi, type ApiFixture } from './api-fixture.js';

describe('/openapi.json', () => {
  let api: ApiFixture;
  let document: ApiDocument;
  let twilios: ApiDocument;
  beforeAll(async () => {
    api = await openApi();
    const answer = await api.send({ method: 'GET', url: '/openapi.json' });
    expect(answer.status).toBe(200);
    document = JSON.parse(answer.text) as ApiDocument;
    twilios = JSON.parse((await api.get('/openapi-twilio.json')).text) as ApiDocument;
  });

  it('is an OpenAPI 3.1 document', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Trunkline', version: '0.0.0-test' });
    for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
      expect(operation.summary).not.toBe('');
      for (const response of Object.values(operation.responses)) expect(response.description).not.toBe('');
    }
  });

  it('has no operation that ignores an unknown parameter', async () => {
    const org = await api.stores.orgs.get(api.orgId);
    const sid = accountSidOf(api.orgId);
    const basic = `Basic ${Buffer.from(`${sid}:${org?.twilio_token ?? ''}`).toString('base64')}`;
    const operations = operationsOf(withTwilios(document, twilios));
    expect(operations.length).toBeGreaterThan(40);
    for (const operation of operations) {
      const path = operation.path
        .replace('{accountSid}', sid)
        .replace('{phone_number}', '15550100100')
        .replace(/\{\w+\}/g, '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11');
      const [body] = bodyExamples(operation);
      const isForm = isTwilios(operation);
      const payload =
        body === undefined ? undefined : isForm ? new URLSearchParams(body as Record<string, string>).toString() : JSON.stringify(body);
      const type = payload === undefined ? {} : { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' };
      const headers = { authorization: isForm ? basic : api.key, ...type };
      const answer = await api.send({ method: operation.method, url: `${path}?Nonsense=1`, headers, payload });
      expect([nameOf(operation), answer.status, answer.text]).toEqual([nameOf(operation), 400, expect.stringContaining('Nonsense')]);
    }
  });

  it('has the parameter org_id of an operator in each GET behind a key', () => {
    const keyed = operationsOf(document).filter((one) => one.method === 'GET' && !isTwilios(one) && one.security?.length !== 0);
    expect(keyed.length).toBeGreaterThan(15);
    const without = keyed.filter(({ parameters = [] }) => !parameters.some(({ name }) => name === 'org_id'));
    expect(without.map(nameOf)).toEqual([]);
  });

  it('has every route', () => {
    const routes = Object.entries(withTwilios(document, twilios).paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(routes.sort()).toEqual([
      'delete /v1/agents/{agent_id}',
      'delete /v1/do-not-call/{phone_number}',
      'delete /v1/tools/{tool_id}',
      'get /2010-04-01/Accounts/{accountSid}.json',
      'get /2010-04-01/Accounts/{accountSid}/Calls.json',
      'get /2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json',
      'get /healthz',
      'get /openapi-twilio.json',
      'get /openapi.json',
      'get /readyz',
      'get /sip',
      'get /v1/agents',
      'get /v1/agents/{agent_id}',
      'get /v1/audit',
      'get /v1/calls',
      'get /v1/calls/{call_id}',
      'get /v1/calls/{call_id}/quality',
      'get /v1/calls/{call_id}/trace',
      'get /v1/do-not-call',
      'get /v1/organizations',
      'get /v1/reasons',
      'get /v1/throughput',
      'get /v1/tools',
      'get /v1/voices',
      'get /v1/webhooks/dead-letters',
      'get /v2/batches',
      'get /v2/batches/{batch_id}',
      'get /v2/batches/{batch_id}/logs',
      'post /2010-04-01/Accounts/{accountSid}/Calls.json',
      'post /2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json',
      'post /sip/attach',
      'post /sip/check',
      'post /sip/detach',
      'post /sip/update',
      'post /v1/agents',
      'post /v1/agents/{agent_id}',
      'post /v1/calls',
      'post /v1/calls/{call_id}/stop',
      'post /v1/do-not-call',
      'post /v1/tools',
      'post /v1/tools/{tool_id}/invoke',
      'post /v1/webhooks/dead-letters/{delivery_id}/resend',
      'post /v2/batches',
      'post /v2/batches/{batch_id}/logs',
      'post /v2/batches/{batch_id}/pause',
      'post /v2/batches/{batch_id}/resume',
      'post /v2/batches/{batch_id}/start',
      'post /v2/batches/{batch_id}/stop',
    ]);
  });

  it('names its server, names each operation once, and states for each whether it needs a key', () => {
    expect(document.servers).toEqual([{ url: '/', description: expect.any(String) as string }]);
    const operations = operationsOf(withTwilios(document, twilios));
    const names = operations.map(({ operationId }) => operationId);
    expect(
      names.filter(
        (name) =>
          !/^(?:add|append|attach|check|create|delete|detach|fetch|get|invoke|list|pause|place|remove|resend|resume|start|stop|update)[A-Z][A-Za-z]+$/.test(
            name ?? '',
          ),
      ),
    ).toEqual([]);
    expect(new Set(names).size).toBe(operations.length);
    const open = operations.filter(({ security }) => security?.length === 0).map(nameOf);
    expect(open.sort()).toEqual(['GET /healthz', 'GET /openapi-twilio.json', 'GET /openapi.json', 'GET /readyz']);
    expect(operations.filter(({ security }) => security === undefined)).toEqual([]);
  });

  it('lists the answers that every operation with a key may have, and those with a body', () => {
    const keyed = operationsOf(document).filter(({ security = [] }) => security.some((scheme) => 'apiKey' in scheme));
    expect(keyed.length).toBeGreaterThan(25);
    for (const operation of keyed) {
      const expected = ['400', '401', '403', '429', '500', '503', ...(operation.requestBody === undefined ? [] : ['413', '415'])];
      expect(Object.keys(operation.responses), nameOf(operation)).toEqual(expect.arrayContaining(expected));
    }
  });

  it('has Twilio’s request to change a call in Twilio’s form: HTTP Basic, a form, its failures', () => {
    const operation = operationsOf(twilios).find((one) => nameOf(one) === 'POST /2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json');
    expect(operation).toMatchObject({ tags: ['Calls'], security: [{ basic: [] }] });
    expect(operation?.parameters?.map(({ name, in: where }) => [name, where])).toEqual([
      ['accountSid', 'path'],
      ['callSid', 'path'],
    ]);
    expect(Object.keys(operation?.requestBody?.content ?? {})).toEqual(['application/x-www-form-urlencoded']);
    const { 200: success, ...failures } = operation?.responses ?? {};
    expect(success?.content?.['application/json']?.schema).toMatchObject({
      properties: { sid: { type: 'string' }, status: { type: 'string' } },
    });
    expect(Object.keys(failures)).toEqual(['400', '401', '404', '405', '408', '413', '415', '429', '431', '500', '503']);
    for (const [status, { content, description }] of Object.entries(failures)) {
      expect(content?.['application/json']?.schema, status).toMatchObject({ $ref: '#/components/schemas/TwilioError' });
      expect(description, status).toMatch(/^`[\dA-Z_]+`: /);
    }
    expect(failures['401']?.headers?.['www-authenticate']?.description).toBe('Always `Basic realm="Trunkline"`');
  });

  it('lists which numbers and languages are accepted', () => {
    const { AttachNumberBody, AgentSettings } = document.components.schemas;
    expect(AttachNumberBody).toMatchObject({ properties: { phone_number: { pattern: E164_PATTERN } } });
    expect(AgentSettings).toMatchObject({ properties: { language: { enum: ['ENG', 'GER', null] } } });
  });

  it('has only references that resolve, and no schema without use', () => {
    const text = JSON.stringify(document);
    const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]);
    expect([...new Set(references)].sort()).toEqual(Object.keys(document.components.schemas).sort());
    expect(text.match(/"\$ref":"(?!#\/components\/(?:schemas|headers|responses)\/)/)).toBeNull();
  });

  it('lists the failures and the key of the /sip routes', () => {
    const failures = (path: string, method: string) => Object.keys(document.paths[path]?.[method]?.responses ?? {});
    expect(failures('/sip/attach', 'post')).toEqual([
      '200',
      '400',
      '401',
      '403',
      '405',
      '408',
      '409',
      '412',
      '413',
      '415',
      '429',
      '431',
      '500',
      '503',
    ]);
    expect(failures('/sip/detach', 'post')).toEqual([
      '200',
      '400',
      '401',
      '403',
      '404',
      '405',
      '408',
      '412',
      '413',
      '415',
      '429',
      '431',
      '500',
      '503',
    ]);
    expect(document.paths['/sip']?.get?.security).toEqual([{ apiKey: [] }]);
    expect(document.paths['/sip']?.get?.parameters?.map((parameter) => parameter.name)).toEqual(['inbound_id', 'take', 'skip', 'org_id']);
    expect(Object.keys(document.components.securitySchemes)).toEqual(['apiKey']);
    expect(Object.keys(twilios.components.securitySchemes)).toEqual(['basic']);
  });

  it('has for every operation its purpose, an example of request and answer, and its failures', () => {
    for (const operation of operationsOf(document)) {
      const name = nameOf(operation);
      const { summary = '', description = '', tags = [], parameters = [], requestBody, responses } = operation;
      expect([summary, description], name).not.toContain('');
      expect(tags.length, name).toBe(1);
      expect(
        parameters.filter(({ example }) => example === undefined).map((one) => one.name),
        name,
      ).toEqual([]);
      if (requestBody !== undefined) expect(bodyExamples(operation).length, name).toBeGreaterThan(0);
      const success = String(successOf(operation));
      expect(responses[success]?.content?.['application/json']?.schema?.examples?.length, name).toBe(1);
      const failures = Object.entries(responses).filter(([status]) => status !== success);
      expect(failures.length, name).toBeGreaterThan(0);
      for (const [status, { description: codes }] of isTwilios(operation) ? [] : failures) {
        const named = [...codes.matchAll(/`([A-Z_]+)`: /g)].map(
          ([, code = '']) => (API_ERRORS as Record<string, readonly [number, string]>)[code]?.[0],
        );
        expect([...new Set(named)], `${name} ${status}`).toEqual([status === '431' ? 413 : Number(status)]);
      }
    }
  });

  it('has examples of answers that match their schemas', () => {
    const schemas = new AnswerSchemas(document);
    for (const operation of operationsOf(document)) {
      const success = successOf(operation);
      const [example] = operation.responses[String(success)]?.content?.['application/json']?.schema?.examples ?? [];
      expect(schemas.faults(operation, success, example), nameOf(operation)).toEqual([]);
    }
    for (const [name, { examples }] of Object.entries(document.components.schemas))
      for (const example of examples ?? []) expect(schemas.namedFaults(name, example), name).toEqual([]);
  });

  it('has every code with its status, and the headers of answers', () => {
    for (const [code, [status]] of Object.entries(API_ERRORS))
      expect(document.info.description).toContain(`| ${String(status)} | \`${code}\` |`);
    const limits = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'];
    for (const { path, responses } of operationsOf(document))
      for (const [status, { headers = {} }] of Object.entries(responses)) {
        const isProbe = path === '/healthz' || path === '/readyz';
        const more = { 401: ['www-authenticate'], 429: ['retry-after'], 503: isProbe ? [] : ['retry-after'] }[status] ?? [];
        const isBeforeRoutes = ['405', '408', '431'].includes(status);
        const told = ['x-request-id', ...(isProbe || isBeforeRoutes ? [] : limits), ...(status === '405' ? ['allow'] : []), ...more];
        expect(
          Object.keys(headers).filter((name) => name !== 'etag'),
          `${path} ${status}`,
        ).toEqual(told);
      }
  });

  it('has etag on each answer with a record, and if-match on each request that changes one', () => {
    const named = (has: (operation: ReturnType<typeof operationsOf>[number]) => boolean) =>
      operationsOf(document).filter(has).map(nameOf).sort();
    expect(named(({ responses }) => responses['200']?.headers?.['etag'] !== undefined)).toEqual([
      'GET /openapi-twilio.json',
      'GET /openapi.json',
      'GET /sip',
      'GET /v1/agents/{agent_id}',
      'POST /sip/attach',
      'POST /sip/detach',
      'POST /sip/update',
      'POST /v1/agents',
      'POST /v1/agents/{agent_id}',
      'POST /v1/tools',
    ]);
    const changes = named(({ parameters = [] }) => parameters.some(({ name }) => name === 'if-match'));
    expect(changes).toEqual(named(({ responses }) => responses['412'] !== undefined));
  });

  it('gives each body and each answer a name, and no answer forbids further fields', () => {
    for (const one of [document, twilios])
      for (const [path, methods] of Object.entries(one.paths))
        for (const [method, { operationId = '', requestBody, responses }] of Object.entries(methods)) {
          const title = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}`;
          for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
            const name = type === 'text/csv' ? 'Csv' : 'Body';
            expect(schema, `${method} ${path}`).toEqual({ $ref: `#/components/schemas/${title}${name}` });
          }
          const success = String(successOf({ responses }));
          const [content] = Object.values(responses[success]?.content ?? {});
          expect(content?.schema, `${method} ${path}`).toEqual({ $ref: `#/components/schemas/${title}Answer` });
        }
    const answers = Object.keys(document.components.schemas).filter((name) => name.endsWith('Answer'));
    expect(answers.length).toBeGreaterThan(35);
    for (const name of [...answers, 'Agent', 'Call', 'SipConfiguration', 'Tool', 'Error'])
      expect(JSON.stringify(document.components.schemas[name]), name).not.toContain('"additionalProperties":false');
    expect(document.components.schemas['AttachNumberBody']).toMatchObject({ additionalProperties: false });
  });

  it('tells the variants of a union of objects apart by a field, and no path or answer has an id without its form', () => {
    const { schemas } = document.components;
    const mapping = (names: Readonly<Record<string, string>>) =>
      Object.fromEntries(Object.entries(names).map(([value, name]) => [value, `#/components/schemas/${name}`]));
    expect(schemas['DirectionSettings']).toMatchObject({
      discriminator: {
        propertyName: 'type',
        mapping: mapping({ inbound: 'InboundDirectionSettings', outbound: 'OutboundDirectionSettings' }),
      },
    });
    const voice = { deepgram: 'VoiceModelSettings', 'gemini-live': 'VoiceModelSettings', elevenlabs: 'VoiceModelSettings' };
    expect(schemas['ProviderSettings']).toMatchObject({
      discriminator: {
        propertyName: 'name',
        mapping: mapping({ 'openai-realtime': 'OpenaiSettings', ...voice, 'conversation-relay': 'ConversationRelaySettings' }),
      },
    });
    expect(schemas['Agent']).toMatchObject({ properties: { agent_id: { format: 'uuid' }, org_id: { format: 'uuid' } } });
    const ids = operationsOf(document).flatMap(({ parameters = [] }) =>
      parameters.filter(({ name }) => /^(?:agent|call|batch|delivery)_id$/.test(name)),
    );
    expect(ids.length).toBeGreaterThan(12);
    for (const id of ids) expect(id).toMatchObject({ schema: { format: 'uuid' } });
  });

  it('shows how Twilio’s list of calls reads times and numbers', () => {
    const list = operationsOf(twilios).find(({ operationId }) => operationId === 'listAccountCalls')?.parameters ?? [];
    const schemaOf = (wanted: string) => list.find(({ name }) => name === wanted)?.schema;
    const time = new RegExp(schemaOf('EndTime<')?.pattern ?? '', 'u');
    expect(
      ['2026-01-31', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00.5 02:00', '2026-01-31T12:00-0130'].filter((text) => !time.test(text)),
    ).toEqual([]);
    expect(
      ['2026-13-01', '2026-01-32', '2026-01-31T24:00Z', '2026-01-31T12:00+76:48', '2026-01-31T12:00', ''].filter((text) => time.test(text)),
    ).toEqual([]);
    expect(schemaOf('PageSize')).toMatchObject({ type: 'integer', minimum: 1, maximum: 1000 });
  });

  it('says which fields of a body need or exclude each other', () => {
    const { PlaceCallBody, CreateBatchBody, CreateAgentBody, UpdateAgentBody, AgentSettings } = document.components.schemas;
    expect(PlaceCallBody).toMatchObject({ not: { required: ['agent', 'agent_id'] } });
    expect(CreateBatchBody).toMatchObject({
      not: { required: ['csv', 'numbers'] },
      dependentRequired: { csv: ['from'], numbers: ['from'] },
    });
    const noText = { not: { anyOf: [{ type: 'boolean' }, { type: 'number' }, { type: 'string' }] } };
    const emptyText = { not: { anyOf: [{ type: 'boolean' }, { type: 'number' }, { type: 'string', minLength: 1 }] } };
    expect(AgentSettings).toMatchObject({ properties: { transfer_list: noText, dynamic_data: emptyText } });
    const unset = { enum: [null] };
    const one = { provider: { anyOf: [{ properties: { provider: unset } }, { properties: { stream: unset } }] } };
    for (const settings of [CreateAgentBody, UpdateAgentBody, AgentSettings]) expect(settings).toMatchObject({ dependentSchemas: one });
  });

  it('has the CSV that a batch may be made of', () => {
    const operation = operationsOf(document).find(({ operationId }) => operationId === 'createBatch');
    expect(Object.keys(operation?.requestBody?.content ?? {})).toEqual(['application/json', 'text/csv']);
    const { CreateBatchCsv } = document.components.schemas;
    expect(CreateBatchCsv).toMatchObject({ type: 'string', description: expect.stringContaining('`phone_number`') as string });
  });

  it('says which bodies may be left out', () => {
    const optional = operationsOf(document).filter(({ requestBody }) => requestBody?.required === false);
    const names = optional.map(({ operationId }) => operationId).sort();
    expect(names).toEqual(['pauseBatch', 'resumeBatch', 'startBatch', 'stopBatch', 'stopCall']);
  });

  it('has nothing that generators of clients stumble over', () => {
    const text = JSON.stringify([document.paths, document.components.schemas, twilios.paths, twilios.components.schemas]);
    expect(text.match(/"const":|"readOnly":|9007199254740991|"default":[[{n]/g)).toBeNull();
    expect(text.match(/"[^"]+":{"type":"null"/g)).toBeNull();
    expect(
      text.match(/"anyOf":\[[^\]]*"type":"array"[^\]]*"type":"object"|"anyOf":\[[^\]]*"type":"object"[^\]]*"type":"array"/g),
    ).toBeNull();
  });

  it('describes times, whole numbers and the choice of a direction as what they are', () => {
    const { Call, ListedNumber, SipConfiguration, UpdateNumberBody } = document.components.schemas;
    expect(SipConfiguration).toMatchObject({ properties: { created_at: { type: 'string', format: 'date-time' } } });
    expect(ListedNumber).toMatchObject({ properties: { added_at: { format: 'date-time' } } });
    expect(Call).toMatchObject({ properties: { sip_status: { type: ['integer', 'null'] }, answered_at: { format: 'date-time' } } });
    expect(UpdateNumberBody).toMatchObject({ properties: { updates: { discriminator: { propertyName: 'type' } } } });
    const page = operationsOf(document).find(({ operationId }) => operationId === 'listCalls')?.parameters ?? [];
    expect(page.find(({ name }) => name === 'limit')).toMatchObject({ schema: { type: 'integer', minimum: 1, maximum: 500 } });
  });

  it('is sent compressed to those who take gzip, and not again to those who have it', async () => {
    const whole = await api.get('/openapi.json');
    const etag = String(whole.headers['etag']);
    const zipped = await api.send({ method: 'GET', url: '/openapi.json', headers: { 'accept-encoding': 'br, gzip;q=0.5' } });
    expect(zipped.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding', etag });
    expect(Number(zipped.headers['content-length'])).toBeLessThan(Number(whole.headers['content-length']) / 5);
    const plain = await api.send({ method: 'GET', url: '/openapi.json', headers: { 'accept-encoding': 'gzip;q=0' } });
    expect(plain.headers['content-encoding']).toBeUndefined();
    const again = await api.send({ method: 'GET', url: '/openapi.json', headers: { 'if-none-match': `"other", W/${etag}` } });
    expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', etag]);
  });

  it('has pages for people', async () => {
    const answer = await api.send({ method: 'GET', url: '/docs' });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(answer.headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/);
    expect(answer.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    expect(answer.text).toContain('<title>Trunkline');
    const script = await api.send({ method: 'GET', url: '/docs/static/swagger-initializer.js' });
    expect(script.text).toContain(
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"').toString('base64').slice(0, 60),
    );
  });
});
