import { OPERATOR } from '../../support/providers.js';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callDryRun } from '../../../src/gateway/wiring/dry-run.js';
import { newUuid } from '../../../src/lib/ids.js';
import { API_CONNECTION, CALLS_CONNECTION } from '../../../src/gateway/store/redis/redis-stores.js';
import { gatewayCallsKey } from '../../../src/gateway/store/redis/keys.js';
import { ANSWERED, begun, snapshotOf } from '../../support/begun-call.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { toolOf } from '../../support/tool.js';
import { agentOf, callOf, endedCall, freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { openHttpApi, eventually, type HttpApi } from './http-fixture.js';

interface Operation {
  readonly method: string;
  readonly path: string;
}

describe('the Redis connection of calls', () => {
  let redis: WorkerRedis;
  let api: HttpApi;
  let monitor: Socket;
  let monitored = '';
  let [orgId, key] = ['', ''];
  const [agentId, callId, batchId] = [newUuid(), newUuid(), newUuid()];
  const number = freshNumber();
  const tool = toolOf('');
  beforeAll(async () => {
    redis = await workerRedis();
    api = await openHttpApi(redis.url, {
      instance: 'gw',
      checkOf: (stores) =>
        callDryRun(
          stores.checkedRoutes,
          { notReady: null, isSourceTrusted: () => true, relayAddress: '127.0.0.1' },
          {
            operator: OPERATOR,
            standIn: null,
            usage: (one) => stores.providerUsage.usage(one),
            urlRefusal: () => null,
          },
        ),
    });
    // The gateway that has a call answers at once what the API asks of it.
    api.stores.bus.onRequest(() => null);
    ({ org_id: orgId } = await api.stores.orgs.create({ name: 'one', sip_enabled: true }));
    ({ key } = await api.stores.keys.create(orgId, 'k'));
    await api.stores.agents.put(agentOf(orgId, { agent_id: agentId }));
    await api.stores.tools.put({ ...tool, org_id: orgId });
    await api.stores.numbers.attach(orgId, number, { inbound: inboundSetting({}, agentId) });
    await api.stores.calls.write(endedCall(callOf(orgId, Date.now(), { call_id: callId })));
    monitor = connect(redis.port, '127.0.0.1');
    monitor.on('data', (chunk: Buffer) => (monitored += chunk.toString()));
    await once(monitor, 'connect');
    monitor.write('MONITOR\r\n');
    await eventually(
      () => Promise.resolve(monitored),
      (text) => text.startsWith('+OK'),
    );
  });
  afterAll(async () => {
    monitor.destroy();
    await api.close();
  });

  /** Commands that came over the connection of this name. */
  async function commandsOf(name: string): Promise<string[]> {
    // Redis tells in order: what was done before this one is in front of it.
    const mark = newUuid();
    await redis.command(`ECHO ${mark}`);
    await eventually(
      () => Promise.resolve(monitored),
      (text) => text.includes(mark),
    );
    const clients = (await redis.command('CLIENT LIST')).split('\n');
    const addresses = clients.filter((line) => line.includes(` name=${name} `)).map((line) => /addr=(\S+)/.exec(line)?.[1]);
    expect(addresses).toHaveLength(1);
    return monitored.split('\r\n').filter((line) => line.includes(`[0 ${addresses[0] ?? ''}]`));
  }

  async function operations(): Promise<Operation[]> {
    const document = (await api.request('GET', '/openapi.json', key)).text;
    const { paths } = JSON.parse(document) as { readonly paths: Readonly<Record<string, object>> };
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
    );
  }

  const ids: Readonly<Record<string, string>> = {
    agent_id: agentId,
    call_id: callId,
    batch_id: batchId,
    tool_id: tool.tool_id,
    delivery_id: callId,
  };
  const bodies: Readonly<Record<string, object>> = {
    '/sip/attach': { phone_number: freshNumber(), directions: ['inbound'], service: 'sip', agent_id: agentId },
    '/sip/update': { phone_number: number, updates: { type: 'inbound', agent_id: agentId } },
    '/sip/detach': { phone_number: number, directions: 'inbound', service: 'sip' },
    '/sip/check': { phone_number: number },
    '/v1/agents': { prompt: 'Be kind.', tools: [tool.tool_id] },
    '/v1/agents/{agent_id}': { prompt: 'Be kind.', tools: [tool.tool_id] },
    '/v1/tools': { tool: { ...tool.tool, headers: {} } },
  };

  it('carries no command of the API, whatever its routes', async () => {
    // /readyz asks whether calls can be served, so it asks where they do.
    const asked = (await operations()).filter(({ path }) => !['/healthz', '/readyz', '/metrics'].includes(path));
    expect(asked.length).toBeGreaterThan(20);
    const order = ['POST', 'GET', 'DELETE'];
    for (const { method, path } of asked.sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method))) {
      const body = method === 'POST' ? (bodies[path] ?? {}) : undefined;
      const answer = await api.request(
        method,
        path.replace(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? 'x'),
        key,
        body,
      );
      expect([path, answer.status < 500 || path.endsWith('/invoke')], answer.text).toEqual([path, true]);
    }
    // The call that was written above is counted once a second, and its bytes too, by themselves; so do heartbeats come.
    const ofCalls = (await commandsOf(CALLS_CONNECTION)).filter((line) => !/:throughput:|\{stored-calls\}|"beat \d/.test(line));
    expect(ofCalls).toEqual([]);
    expect((await commandsOf(API_CONNECTION)).length).toBeGreaterThan(50);
  });

  it('has a call listed at any time, also between its end and its record', async () => {
    const call = begun(newUuid());
    const own = freshNumber();
    await api.stores.numbers.attach(orgId, own, { inbound: inboundSetting() });
    const state = async (): Promise<unknown> => {
      const { status, body } = await api.request('GET', `/v1/calls/${call.call_id}`, key);
      return status === 200 ? (body as unknown as { readonly call: { readonly state: string } }).call.state : status;
    };
    expect(await state()).toBe(404);
    await api.stores.routes.lookup(own, call);
    expect(await state()).toBe('ringing');
    api.stores.snapshots.persist({ ...snapshotOf(call.call_id, orgId, own), call });
    await eventually(
      () => api.stores.live.get(orgId, call.call_id),
      (live) => live?.answer !== null,
    );
    api.stores.routes.release(call.call_id);
    await eventually(
      () => api.stores.live.get(orgId, call.call_id),
      (live) => live === null,
    );
    expect(await state()).toBe('in_progress');
    for (const part of ['trace', 'quality']) expect((await api.request('GET', `/v1/calls/${call.call_id}/${part}`, key)).status).toBe(200);
    await api.stores.calls.write(endedCall(callOf(orgId, Date.now(), { call_id: call.call_id })));
    expect(await state()).toBe('ended');
    // Redis could not take it off the list.
    await api.stores.routes.lookup(own, call);
    await eventually(
      () => api.stores.live.get(orgId, call.call_id),
      (live) => live !== null,
    );
    expect(await state()).toBe('ended');
    api.stores.routes.release(call.call_id);
  });

  it('carries at most six commands for a call to a cached number, including its end', async () => {
    const own = freshNumber();
    await api.stores.numbers.attach(orgId, own, { inbound: inboundSetting() });
    await api.stores.routes.lookup(own, null);
    const { calls, live, routes, snapshots } = api.stores;
    const commands = async () =>
      (await commandsOf(CALLS_CONNECTION)).filter((line) => !/:throughput:|\{stored-calls\}|"beat \d/.test(line));
    // A heartbeat is there, and scripts are: the second call is as any other.
    for (const callId of [newUuid(), newUuid()]) {
      const before = await commands();
      const call = begun(callId);
      await routes.lookup(own, call);
      await eventually(
        () => live.get(orgId, callId),
        (found) => found !== null,
      );
      const answered = { ...snapshotOf(callId, orgId, own), call };
      snapshots.persist(answered);
      await eventually(
        () => live.get(orgId, callId),
        (found) => found?.answer !== null,
      );
      snapshots.persist({ ...answered, answer: { ...ANSWERED, resumed: 1 } });
      await eventually(
        () => live.get(orgId, callId),
        (found) => found?.answer?.resumed === 1,
      );
      routes.release(callId);
      await eventually(
        () => live.get(orgId, callId),
        (found) => found === null,
      );
      await calls.write(endedCall(callOf(orgId, Date.now(), { call_id: callId })));
      snapshots.delete(callId);
      await eventually(
        () => redis.command(`HEXISTS ${gatewayCallsKey('gw')} ${callId}`),
        (answer) => answer === ':0\r\n',
      );
      const sent = (await commands()).slice(before.length);
      expect(sent.length, sent.join('\n')).toBeLessThanOrEqual(6);
    }
  });

  it('carries the look-ups of calls', async () => {
    await api.stores.routes.lookup(freshNumber(), null);
    expect((await commandsOf(CALLS_CONNECTION)).length).toBeGreaterThan(0);
  });
});
