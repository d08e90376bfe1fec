import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorEnvelope } from '../../../../src/gateway/api/schemas/api-error.js';
import type { ApiAddress } from '../../../../src/gateway/api/server.js';
import { openApi, type ApiFixture } from '../../../unit/gateway/api/api-fixture.js';

describe('a request that Node.js itself would refuse', () => {
  let api: ApiFixture;
  let address: ApiAddress;
  beforeAll(async () => {
    api = await openApi();
    address = await api.api.listen({ host: '127.0.0.1', port: 0 });
  });
  afterAll(async () => api.api.close());

  const answerTo = async (...lines: readonly string[]) => {
    const socket = connect(address.port, address.host);
    socket.write([...lines, 'connection: close', '', ''].join('\r\n'));
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
    const status = Number(head.split(' ')[1]);
    const id = /^x-request-id: (.+)$/im.exec(head)?.[1];
    return { status, id, failure: JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)) as ErrorEnvelope };
  };

  it('gets our failure and an id when it has no Host', async () => {
    const { status, id, failure } = await answerTo('GET /healthz HTTP/1.1');
    expect([status, failure.errors[0]?.error, failure.message]).toEqual([400, 'VALIDATION', expect.stringContaining('Host')]);
    expect(id).toMatch(/^[\da-f-]{36}$/);
  });

  it('gets our failure and its id when it expects what we do not do', async () => {
    const { status, id, failure } = await answerTo('GET /healthz HTTP/1.1', 'host: a', 'expect: x', 'x-request-id: mine');
    expect([status, id, failure.errors[0]?.error]).toEqual([417, 'mine', 'EXPECTATION_FAILED']);
  });

  it('is answered as ever in HTTP/1.0, which knows no Host', async () => {
    expect((await answerTo('GET /healthz HTTP/1.0')).status).toBe(200);
  });
});
