import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorEnvelope } from '../../../src/gateway/api/schemas/api-error.js';
import { workerRedis } from '../../support/worker-redis.js';
import { freshNumber } from '../../unit/gateway/store/store-contract.js';
import { openHttpApi, type HttpApi } from './http-fixture.js';

describe('the API over HTTP with a real Redis', () => {
  let api: HttpApi;
  let key: string;
  let otherKey: string;
  beforeAll(async () => {
    api = await openHttpApi((await workerRedis()).url);
    [key, otherKey] = [await newKey('one'), await newKey('two')];
  });
  afterAll(() => api.close());

  async function newKey(name: string, sip_enabled = true): Promise<string> {
    const org = await api.stores.orgs.create({ name, sip_enabled });
    return (await api.stores.keys.create(org.org_id, name)).key;
  }
  const inbound = (phone_number: string) => ({ phone_number, directions: ['inbound'], service: 'sip' });

  it('attaches, updates, reads, lists and detaches a number', async () => {
    const number = freshNumber();
    const attached = await api.request('POST', '/sip/attach', key, { ...inbound(number), options: { allowed_sources: [] } });
    expect(attached.status).toBe(200);
    expect(attached.record.inbound?.options.allowed_sources).toEqual([]);
    const updated = await api.request('POST', '/sip/update', key, {
      phone_number: number,
      updates: { type: 'outbound', sip_endpoint: 'sips:pbx.example.com:5061' },
    });
    expect(updated.record).toMatchObject({ inbound: attached.record.inbound, outbound: { sip_endpoint: 'sips:pbx.example.com:5061' } });
    for (const id of [updated.record.inbound_id, number, encodeURIComponent(number)]) {
      expect((await api.request('GET', `/sip?inbound_id=${id}`, key)).record).toEqual(updated.record);
    }
    expect((await api.request('GET', '/sip', key)).body.data).toEqual([updated.record]);
    const detach = { phone_number: number, directions: ['inbound', 'outbound'], service: 'sip' };
    expect((await api.request('POST', '/sip/detach', key, detach)).body).toEqual({ status: 'success', data: null, errors: null });
    expect((await api.request('POST', '/sip/detach', key, detach)).status).toBe(404);
    expect((await api.request('GET', '/sip', key)).body.data).toEqual([]);
  });

  it('answers a wrong key with 401, and a missing entitlement and a disabled organization with 403', async () => {
    expect((await api.request('GET', '/sip', `tl_${'x'.repeat(32)}`)).failure.errors[0]?.error).toBe('UNAUTHENTICATED');
    const off = await api.request('POST', '/sip/attach', await newKey('off', false), {});
    expect([off.status, off.failure.errors[0]?.error]).toEqual([403, 'SIP_NOT_ENABLED']);
    const org = await api.stores.orgs.create({ name: 'disabled', sip_enabled: true });
    const { key: disabledKey } = await api.stores.keys.create(org.org_id, 'k');
    await api.stores.orgs.change(org.org_id, { disabled: true });
    const disabled = await api.request('GET', '/sip', disabledKey);
    expect([disabled.status, disabled.failure.errors[0]?.error]).toEqual([403, 'ORG_DISABLED']);
  });

  it('lets exactly one of two concurrent attaches by two organizations win, 200 times over', async () => {
    for (let round = 0; round < 200; round += 1) {
      const number = freshNumber();
      const answers = await Promise.all([key, otherKey].map((one) => api.request('POST', '/sip/attach', one, inbound(number))));
      expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409]);
      const winner = answers.findIndex((answer) => answer.status === 200);
      const [winnerKey, loserKey] = winner === 0 ? [key, otherKey] : [otherKey, key];
      expect((await api.request('GET', `/sip?inbound_id=${number}`, winnerKey)).record).toEqual(answers[winner]?.record);
      expect((await api.request('GET', `/sip?inbound_id=${number}`, loserKey)).body.data).toBeNull();
      expect(answers[1 - winner]?.failure.errors[0]?.error).toBe('NUMBER_TAKEN');
    }
    const sweep = await api.stores.numbers.sweep();
    expect(sweep).toMatchObject({ added: 0, removed: 0 });
  });

  it('keeps indexes and record in agreement when attach, update and detach of one number run at once', async () => {
    const number = freshNumber();
    const detach = { phone_number: number, directions: 'inbound', service: 'sip' };
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        [key, otherKey, key, otherKey].flatMap((one) => [
          api.request('POST', '/sip/attach', one, inbound(number)),
          api.request('POST', '/sip/detach', one, detach),
        ]),
      );
    }
    expect(await api.stores.numbers.sweep()).toMatchObject({ added: 0, removed: 0 });
  });

  it('survives bytes that are not HTTP, and answers them in the usual form', async () => {
    const raw = (text: string) =>
      new Promise<string>((resolve, reject) => {
        let received = '';
        const socket = connect(api.port, '127.0.0.1', () => socket.write(text));
        socket.setEncoding('utf8');
        socket.on('data', (chunk) => (received += chunk.toString()));
        socket.on('close', () => resolve(received));
        socket.on('error', reject);
      });
    const bodyOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as ErrorEnvelope;
    const garbage = await raw('INVITE sip:a@b SIP/2.0\r\n\r\n');
    expect(garbage).toMatch(/^HTTP\/1\.1 400 .*\r\n/);
    expect(garbage).toContain('\r\nx-request-id: ');
    expect(bodyOf(garbage).errors[0]?.error).toBe('VALIDATION');
    const headers = await raw(`GET /sip HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`);
    expect(headers).toMatch(/^HTTP\/1\.1 431 /);
    expect(bodyOf(headers).errors[0]?.error).toBe('TOO_LARGE');
    expect((await api.request('GET', '/healthz', key)).status).toBe(200);
  });
});
