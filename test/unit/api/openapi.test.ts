import { beforeAll, describe, expect, it } from 'vitest';
import { openApi, type ApiFixture } from './api-fixture.js';

interface MediaType {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Operation {
  readonly summary?: string;
  readonly security?: readonly object[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>>; readonly securitySchemes: object };
}

describe('/openapi.json', () => {
  let api: ApiFixture;
  let document: Document;
  beforeAll(async () => {
    api = await openApi();
    const answer = await api.send({ method: 'GET', url: '/openapi.json' });
    expect(answer.status).toBe(200);
    document = JSON.parse(answer.text) as Document;
  });

  it('is an OpenAPI 3.1 document', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Trunkline', version: '0.0.0-test' });
    for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
      expect(operation.summary).not.toBe('');
      for (const response of Object.values(operation.responses)) expect(response.description).not.toBe('');
    }
  });

  it('has every route', () => {
    const routes = Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`));
    expect(routes.sort()).toEqual([
      'delete /v1/agents/{agent_id}',
      'delete /v1/tools/{tool_id}',
      'get /healthz',
      'get /openapi.json',
      'get /readyz',
      'get /sip',
      'get /v1/agents',
      'get /v1/agents/{agent_id}',
      'get /v1/audit',
      'get /v1/calls',
      'get /v1/calls/{call_id}',
      'get /v1/calls/{call_id}/trace',
      'get /v1/tools',
      'get /v1/voices',
      'get /v1/webhooks/dead-letters',
      'get /v2/batches',
      'get /v2/batches/{batch_id}/logs',
      'post /sip/attach',
      'post /sip/check',
      'post /sip/detach',
      'post /sip/update',
      'post /v1/agents',
      'post /v1/agents/{agent_id}',
      'post /v1/calls/{call_id}/stop',
      'post /v1/tools',
      'post /v1/tools/{tool_id}/invoke',
      'post /v1/webhooks/dead-letters/{delivery_id}/resend',
    ]);
  });

  it('every reference leads somewhere, and no named schema is without use', () => {
    const text = JSON.stringify(document);
    const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]);
    expect([...new Set(references)].sort()).toEqual(Object.keys(document.components.schemas).sort());
    expect(text.match(/"\$ref":"(?!#\/components\/schemas\/)/)).toBeNull();
  });

  it('the /sip routes name their failures and the key', () => {
    const failures = (path: string, method: string) => Object.keys(document.paths[path]?.[method]?.responses ?? {});
    expect(failures('/sip/attach', 'post')).toEqual(['200', '400', '401', '403', '409', '412', '413', '415', '429', '500', '503']);
    expect(failures('/sip/detach', 'post')).toEqual(['200', '400', '401', '403', '404', '412', '413', '415', '429', '500', '503']);
    expect(document.paths['/sip']?.get?.security).toEqual([{ apiKey: [] }]);
    expect(document.paths['/sip']?.get?.parameters?.map((parameter) => parameter.name)).toEqual(['inbound_id', 'take', 'skip']);
    expect(Object.keys(document.components.securitySchemes)).toEqual(['apiKey']);
  });

  it('every example of a body is a body that the validator takes', async () => {
    for (const path of [
      '/sip/attach',
      '/sip/update',
      '/sip/detach',
      '/sip/check',
      '/v1/agents',
      '/v1/agents/{agent_id}',
      '/v1/tools',
      '/v1/tools/{tool_id}/invoke',
    ]) {
      const media = document.paths[path]?.post?.requestBody?.content['application/json'];
      // One alone stands by itself.
      const examples = [media?.example ?? [], Object.values(media?.examples ?? {}).map(({ value }) => value)].flat();
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) expect((await api.post(path, example)).status).not.toBe(400);
    }
  });

  it('has pages for people', async () => {
    const answer = await api.send({ method: 'GET', url: '/docs' });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  });
});
