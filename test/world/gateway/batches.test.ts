import { beforeAll, describe, expect, it } from 'vitest';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

const ALWAYS = { from: '00:00', to: '24:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] };
const numberAt = (index: number): string => `+4930${String(2_000_000 + index)}`;

interface Shown {
  readonly batch_id: string;
  readonly state: string;
  readonly counts: Readonly<Record<string, number>>;
}
interface Entry {
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

describe('a batch over one gateway', () => {
  let site: OutboundSite<World>;
  beforeAll(async () => {
    site = await OutboundSite.startOn((settings) => World.start(settings));
    return () => site.destroy();
  });

  const api = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const { status, json } = await site.gateway.api(method, path, body);
    return { status, json, data: json['data'] as Shown };
  };
  const over = async (id: string): Promise<Shown> => {
    await site.gateway.until(async () => (await api('GET', `/v2/batches/${id}`)).data.state === 'completed');
    return (await api('GET', `/v2/batches/${id}`)).data;
  };
  const log = async (id: string): Promise<readonly Entry[]> =>
    (await api('GET', `/v2/batches/${id}/logs?direction=asc`)).json['data'] as readonly Entry[];

  it('calls the valid numbers of its CSV that are not on the do-not-call list, and logs how each call ended', async () => {
    const rows = [
      'phone_number,time_zone,name',
      `${numberAt(0)},Europe/Berlin,Ada`,
      `${numberAt(1)},,Bob`,
      `${numberAt(2)},,Cid`,
      '12,,Dot',
    ];
    const csv = rows.join('\r\n');
    const body = { name: 'March', from: FROM, csv, calls_per_second: 10, hours: ALWAYS, do_not_call_digit: '9' };
    const made = await api('POST', '/v2/batches', body);
    expect(made, JSON.stringify(made.json)).toMatchObject({
      status: 200,
      data: { state: 'ready', counts: { requested: 4, validated: 3 } },
    });
    const id = made.data.batch_id;
    await site.gateway.pass(5_000);
    expect(site.trunk.invited).toEqual([]);
    // Its owner puts a number on the list before the start.
    expect((await api('POST', '/v1/do-not-call', { phone_numbers: [numberAt(2)] })).status).toBe(200);
    expect((await api('POST', `/v2/batches/${id}/start`)).data.state).toBe('in_progress');
    for (let taken = 0; taken < 2; taken += 1) {
      const call = await site.trunk.call();
      if (call.invite.startLine.includes(numberAt(1))) {
        call.respond('486 Busy Here');
        continue;
      }
      const end = (await CallEnd.open()).connect(call.invite.body);
      await call.answer(end.sdp());
      await end.hearsAgent();
      const { dialog } = call;
      const key = { extra: ['Content-Type: application/dtmf-relay'], body: 'Signal=9\r\nDuration=160\r\n' };
      expect((await dialog.ask('INFO', key)).status).toBe(200);
      await site.gateway.until(async () => JSON.stringify((await api('GET', '/v1/do-not-call')).json).includes(numberAt(0)));
      expect((await dialog.ask('BYE')).status).toBe(200);
      await end.close();
    }
    const counts = {
      validated: 3,
      dispatched: 2,
      successful: 1,
      failed: 2,
      ambiguous: 0,
      waiting: 0,
      dialling: 0,
      answered_today: 1,
      abandoned_today: 0,
    };
    expect((await over(id)).counts).toMatchObject(counts);
    const entries = await log(id);
    expect(entries.map(({ event_type: type, payload }) => payload['state_change'] ?? type)).toEqual(
      expect.arrayContaining(['created', 'validating', 'rows_refused', 'ready', 'in_progress', 'refused', 'completed', 'complete']),
    );
    expect(entries.find(({ event_type: type }) => type === 'rows_refused')?.payload).toMatchObject({
      rows: [{ row: 5, phone_number: '12', reason: 'INVALID_NUMBER' }],
    });
    expect(entries.at(-1)).toMatchObject({ event_type: 'complete', payload: { calls_total: 3, calls_successful: 1, calls_failed: 2 } });
    expect([...site.trunk.invited].sort()).toEqual([numberAt(0), numberAt(1)]);
    // On the list now: a call that is placed by itself is refused too.
    expect(await site.place({ phone_number: numberAt(0) })).toMatchObject({
      status: 403,
      json: { errors: [{ error: 'DIAL_NOT_ALLOWED' }] },
    });
  });
});

describe('a batch over two gateways, one of which is killed', () => {
  const CALLS = 200;
  const OTHER = 'other';
  let site: OutboundSite<World>;
  let world: World;
  let stores: RedisStores;

  beforeAll(async () => {
    site = await OutboundSite.startOn((settings) => World.start(settings, { hasGateway: false }), false);
    world = site.gateway;
    await world.startGateway();
    await world.startGateway(OTHER);
    await site.attach();
    await site.allow('--max-concurrent-calls', '100', '--max-calls-per-day', '10000', '--max-cost-per-day', '10000');
    const url = `redis://127.0.0.1:${world.environment['TRUNKLINE_REDIS_PORT'] ?? ''}`;
    stores = openRedisStores({ url, clock: systemClock, log: silentLog });
    return async () => {
      await stores.close();
      await site.destroy();
    };
  });

  it('[3261 §9.1] sends each number one INVITE, or logs it as ambiguous', async () => {
    const other = { gateway: OTHER };
    const sent: string[] = [];
    site.trunk.takeAll((call) => {
      sent.push(call.callId);
      // Every fifth phone rings until its call is cancelled; the others are busy.
      if (sent.length % 5 !== 0) return call.respond('486 Busy Here');
      call.respond('180 Ringing');
      call.request('CANCEL').then(
        (cancel) => {
          respond(call.peer, cancel, '200 OK', { tag: call.tag });
          call.respond('487 Request Terminated');
        },
        () => undefined,
      );
    });
    const numbers = Array.from({ length: CALLS }, (_, index) => numberAt(index));
    const plan = { calls_per_second: 40, max_concurrent_calls: 30, hours: ALWAYS, ring_timeout: 5 };
    const made = await world.api('POST', '/v2/batches', { name: 'Two', start: true, from: FROM, numbers, ...plan }, other);
    expect(made.status, JSON.stringify(made.json)).toBe(200);
    const { batch_id: batchId } = made.json['data'] as Shown;
    const path = `/v2/batches/${batchId}`;
    await world.until(() => sent.length > 60);
    const ofFirst = async (): Promise<number> =>
      (await stores.batchWork.attempts(batchId)).filter(({ gateway }) => gateway.startsWith('gateway')).length;
    await world.until(async () => (await ofFirst()) > 4);
    world.killGateway();
    const read = async (): Promise<Shown> => (await world.api('GET', path, undefined, other)).json['data'] as Shown;
    while ((await read()).state !== 'completed') await world.pass(1_000);
    const entries = (await world.api('GET', `${path}/logs?take=1000`, undefined, other)).json['data'] as readonly Entry[];
    const ambiguous = entries.filter(({ event_type: type }) => type === 'ambiguous').map(({ payload }) => String(payload['phone_number']));
    const { counts } = await read();
    expect(new Set(site.trunk.invited).size).toBe(site.trunk.invited.length);
    for (const number of numbers) if (!site.trunk.invited.includes(number)) expect(ambiguous).toContain(number);
    expect(counts).toMatchObject({ validated: CALLS, waiting: 0, dialling: 0, failed: CALLS, ambiguous: ambiguous.length });
    expect(ambiguous.length).toBeGreaterThan(0);
  });
});
