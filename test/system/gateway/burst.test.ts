import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import type { TakenCall } from '../../support/outbound-trunk.js';
import { WebhookReceiver } from '../../support/webhook-receiver.js';
import { respond } from '../../support/sip-message.js';

const CALLS = 600;
const SINGLE = 60;
const ALWAYS = { from: '00:00', to: '24:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] };
const numberAt = (index: number): string => `+4930${String(3_000_000 + index)}`;

let site: OutboundSite;
let hooks: WebhookReceiver;
beforeAll(async () => {
  hooks = await WebhookReceiver.start();
  site = await OutboundSite.start(true, { TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true' });
  await site.allow('--max-calls-per-second', '1000', '--max-concurrent-calls', '1000');
});
afterAll(async () => {
  await site.destroy();
  await hooks.stop();
});

const ENDS = ['486 Busy Here', '603 Decline', '480 Temporarily Unavailable', '404 Not Found', '500 Server Internal Error'];
/** The last ones are placed one by one, and some of them answered: a batch of which too many calls were answered too late stops. */
const FIRST_SINGLE = CALLS - SINGLE;

async function end(call: TakenCall): Promise<void> {
  const index = Number(/\+4930(\d+)@/.exec(call.invite.startLine)?.[1] ?? 0) - 3_000_000;
  if (index >= FIRST_SINGLE && index % 20 === 0) return hangUp(call);
  if (index >= FIRST_SINGLE && index % 2 === 0) return answerBadly(call);
  call.respond(ENDS[index % ENDS.length] ?? '');
}

async function answerBadly(call: TakenCall): Promise<void> {
  call.respond('200 OK', { body: 'v=0\r\n' });
  await call.request('ACK');
  respond(call.peer, await call.request('BYE'), '200 OK');
}

/** Somebody answers, hears the agent and hangs up. */
async function hangUp(call: TakenCall): Promise<void> {
  const carrier = (await CallEnd.open()).connect(call.invite.body);
  await call.answer(carrier.sdp());
  await carrier.hearsAgent();
  await call.dialog.ask('BYE');
  await carrier.close();
}

it('each of 600 placed calls in a burst, with every kind of end, has a record, a trace and a webhook, and counts in its batch', async () => {
  const failures: unknown[] = [];
  site.trunk.takeAll((call) => void end(call).catch((error: unknown) => failures.push(error)));
  const numbers = Array.from({ length: CALLS - SINGLE }, (_, index) => numberAt(index));
  const pace = { calls_per_second: 100, max_concurrent_calls: 1_000, hours: ALWAYS };
  const made = await site.gateway.api('POST', '/v2/batches', {
    name: 'Burst',
    start: true,
    from: FROM,
    numbers,
    webhook: hooks.url('/done'),
    ...pace,
  });
  expect(made.status, JSON.stringify(made.json)).toBe(200);
  const id = (made.json['data'] as { batch_id: string }).batch_id;
  const batch = async (): Promise<Readonly<Record<string, unknown>>> =>
    (await site.gateway.api('GET', `/v2/batches/${id}`)).json['data'] as Readonly<Record<string, unknown>>;
  await expect.poll(async () => (await batch())['state']).toBe('completed');
  const log = (await site.gateway.api('GET', `/v2/batches/${id}/logs?direction=asc&take=1000`)).json['data'] as readonly {
    readonly event_type: string;
    readonly payload: Readonly<Record<string, unknown>>;
  }[];
  expect(log.filter(({ event_type: type }) => type === 'complete').map(({ payload }) => payload['calls_total'])).toEqual([CALLS - SINGLE]);
  const placed = await Promise.all(
    Array.from({ length: SINGLE }, (_, index) => site.place({ phone_number: numberAt(FIRST_SINGLE + index), webhook: hooks.url('/done') })),
  );
  expect(placed.filter(({ status }) => status !== 200)).toEqual([]);
  const told = await hooks.first('/done', CALLS);
  const ids = new Set<string>();
  const reasons = new Set<string>();
  for (let before = ''; ids.size < CALLS;) {
    const { json } = await site.gateway.api('GET', `/v1/calls?state=ended&limit=500${before}`);
    for (const call of json['calls'] as readonly CallRecord[]) {
      ids.add(call.call_id);
      reasons.add(call.reason);
    }
    const { next } = json as { readonly next: string | null };
    if (next === null) break;
    before = `&before=${next}`;
  }
  expect(ids.size).toBe(CALLS);
  expect([...reasons].sort()).toEqual(
    ['BAD_ANSWER', 'BUSY', 'CALLEE_DECLINED', 'CALLEE_HANGUP', 'DIAL_AMBIGUOUS', 'NO_ANSWER', 'TRUNK_REFUSED'].sort(),
  );
  expect(new Set(told.map(({ body }) => body['call_id']))).toEqual(ids);
  for (const callId of [...ids].slice(0, 20)) {
    const { json } = await site.gateway.api('GET', `/v1/calls/${callId}/trace`);
    expect((json['trace'] as readonly unknown[]).length).toBeGreaterThan(0);
  }
  expect(failures).toEqual([]);
});
