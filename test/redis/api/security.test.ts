import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newApiKey } from '../../../src/gateway/store/new-records.js';
import { HOSTILE } from '../../support/hostile.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { agentOf, freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { openHttpApi, type HttpApi } from './http-fixture.js';

// What needs sockets, or a real Redis, of test/unit/gateway/api/security.test.ts.

const HEADER_LIMIT = 16_384;

describe('the API against hostile clients, over HTTP with a real Redis', () => {
  let redis: WorkerRedis;
  /** Two gateways over one Redis: nothing is shared between them but that. */
  let one: HttpApi;
  let other: HttpApi;
  let orgId: string;
  let key: string;
  beforeAll(async () => {
    redis = await workerRedis();
    [one, other] = [await openHttpApi(redis.url), await openHttpApi(redis.url)];
    orgId = (await one.stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    key = (await one.stores.keys.create(orgId, 'k')).key;
  });
  afterAll(async () => {
    await one.close();
    await other.close();
  });

  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

  /** Writes the bytes as they are; resolves with the status of the answer. */
  const raw = (text: string) =>
    new Promise<string>((resolve, reject) => {
      let received = '';
      const socket = connect(one.port, '127.0.0.1', () => socket.write(text, 'latin1'));
      socket.setEncoding('latin1');
      socket.on('data', (chunk) => (received += chunk.toString()));
      socket.on('close', () => resolve(received.slice(9, 12)));
      socket.on('error', reject);
    });

  it('refuses a key at once that another gateway revoked', async () => {
    for (let round = 0; round < 20; round += 1) {
      const made = await one.stores.keys.create(orgId, 'short');
      expect((await other.request('GET', '/sip', made.key)).status).toBe(200);
      await one.stores.keys.revoke(made.record.key_id);
      const refused = await other.request('GET', '/sip', made.key);
      expect([refused.status, refused.failure.errors[0]?.error]).toEqual([401, 'UNAUTHENTICATED']);
    }
  });

  it('refuses at once a disabled organization, and one without the entitlement', async () => {
    const org = await one.stores.orgs.create({ name: 'two', sip_enabled: true });
    const made = await one.stores.keys.create(org.org_id, 'k');
    await one.stores.orgs.change(org.org_id, { sip_enabled: false });
    expect((await other.request('GET', '/sip', made.key)).failure.errors[0]?.error).toBe('SIP_NOT_ENABLED');
    await one.stores.orgs.change(org.org_id, { disabled: true });
    expect((await other.request('GET', '/v1/tools', made.key)).failure.errors[0]?.error).toBe('ORG_DISABLED');
  });

  it('compares digests: a record under the digest of another key admits nobody', async () => {
    const forged = newApiKey();
    await redis.command(`COPY key:{${sha256(key)}} key:{${sha256(forged)}}`);
    expect(await redis.command(`EXISTS key:{${sha256(forged)}}`)).toContain(':1');
    expect(await one.stores.keys.find(forged)).toBeNull();
    expect((await one.request('GET', '/sip', forged)).status).toBe(401);
    await redis.command(`HSET key:{${sha256(forged)}} digest ${sha256(forged)}`);
    expect((await one.request('GET', '/sip', forged)).status).toBe(200);
    await redis.command(`DEL key:{${sha256(forged)}}`);
  });

  it('accepts headers of 16 KiB, and answers more with 431', async () => {
    const request = (size: number): string => {
      const head = `GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx: `;
      return `${head}${'y'.repeat(size - head.length - 4)}\r\n\r\n`;
    };
    expect(await raw(request(HEADER_LIMIT - 64))).toBe('200');
    expect(await raw(request(HEADER_LIMIT + 64))).toBe('431');
  });

  it('refuses line breaks in headers and in the request line, which split nothing', async () => {
    const rest = `host: a\r\nauthorization: ${key}\r\nconnection: close\r\n`;
    expect(await raw(`GET /sip HTTP/1.1\r\n${rest}\r\n`)).toBe('200');
    expect(await raw(`GET /sip HTTP/1.1\r\n${rest}x-request-id: a\rb\r\n\r\n`)).toBe('400');
    expect(await raw(`GET /sip HTTP/1.1\r\n${rest}x: a\0b\r\n\r\n`)).toBe('400');
    expect(await raw(`GET /sip\0 HTTP/1.1\r\n${rest}\r\n`)).toBe('400');
    const smuggled = `${rest}content-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`;
    expect(await raw(`POST /sip/detach HTTP/1.1\r\n${smuggled}`)).toBe('400');
  });

  it('lets ids, numbers and names with a meaning for Redis touch no key but those of their record', async () => {
    const bystander = await one.stores.orgs.create({ name: 'bystander', sip_enabled: true });
    const number = freshNumber();
    const agent = agentOf(bystander.org_id);
    await one.stores.agents.put(agent);
    await one.stores.numbers.attach(bystander.org_id, number, { inbound: inboundSetting({}, agent.agent_id) });
    // Reading notes the use of a key once a minute: done now.
    await one.request('GET', '/sip', key);
    const before = await contents();
    for (const hostile of HOSTILE) {
      const id = encodeURIComponent(Buffer.from(hostile).toString());
      for (const path of [
        `/sip?inbound_id=${id}`,
        `/sip?inbound_id=IN-${id}`,
        `/v1/calls?from=${id}`,
        `/v1/calls?before=${id}`,
        `/v1/audit?before=${id}`,
      ])
        expect([200, 400], path).toContain((await one.request('GET', path, key)).status);
      for (const path of [`/v1/agents/${id}`, `/v1/calls/${id}`, `/v1/calls/${id}/trace`, `/v2/batches/${id}/logs`])
        expect([400, 404], path).toContain((await one.request('GET', path, key)).status);
      for (const path of [`/v1/agents/${id}`, `/v1/tools/${id}`])
        expect([400, 404]).toContain((await one.request('DELETE', path, key)).status);
      for (const path of [`/v1/calls/${id}/stop`, `/v1/webhooks/dead-letters/${id}/resend`])
        expect([400, 404]).toContain((await one.request('POST', path, key, {})).status);
      const body = { phone_number: hostile, directions: ['inbound'], service: 'sip' };
      expect((await one.request('POST', '/sip/attach', key, body)).status).toBe(400);
    }
    expect(await contents()).toBe(before);
    await one.stores.orgs.create({ name: 'seen', sip_enabled: true });
    expect(await contents()).not.toBe(before);
    expect((await one.request('GET', '/healthz', key)).status).toBe(200);
  });

  /** A digest of every key and of all that is in them. */
  async function contents(): Promise<string> {
    const each = `for _, name in ipairs(names) do sum = redis.sha1hex(sum .. name .. redis.call('DUMP', name)) end`;
    const answer = await redis.command(
      `EVAL "local names = redis.call('KEYS', '*') table.sort(names) local sum = '' ${each} return sum" 0`,
    );
    expect(answer).toMatch(/^\$40\r\n[\da-f]{40}\r\n$/);
    return answer;
  }
});
