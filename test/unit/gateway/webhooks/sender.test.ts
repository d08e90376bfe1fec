import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery } from '../../../../src/gateway/model/delivery.js';
import { StoreUnavailableError } from '../../../../src/gateway/ports/ports.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { createMemoryStores } from '../../../support/store/memory.js';
import { OUTBOX_LANES, outboxLane, type Stores } from '../../../../src/gateway/ports/stores.js';
import type { Attempt } from '../../../../src/gateway/webhooks/post.js';
import type { AnalysisQuestion, Findings } from '../../../../src/gateway/webhooks/analyst.js';
import { WebhookSender } from '../../../../src/gateway/webhooks/sender.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../api/api-fixture.js';
import { deliveryOf } from '../store/outbox-contract.js';
import { callOf, endedCall } from '../store/store-contract.js';

const DAY_MS = 86_400_000;
const FAILED: Attempt = { kind: 'failed', error: 'it answered 500', retryAfterMs: null };

interface Post {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly atMs: number;
}

let clock: VirtualClock;
let stores: Stores;
let orgId: string;
let posts: Post[];
let lines: LogLine[];
let sender: WebhookSender;
let attempt: (aborted: AbortSignal) => Promise<Attempt>;
let claims: number;
let isAway: boolean;
let questions: AnalysisQuestion[];
let findings: Findings[];

beforeEach(async () => {
  clock = new VirtualClock();
  stores = createMemoryStores({ clock });
  ({ org_id: orgId } = await stores.orgs.create({ name: 'acme', sip_enabled: true }));
  [posts, lines, claims, isAway, questions, findings] = [[], [], 0, false, [], []];
  attempt = () => Promise.resolve({ kind: 'delivered', status: 200 });
  const { outbox } = stores;
  sender = new WebhookSender({
    outbox: {
      dueLanes: () => (isAway ? Promise.reject(new StoreUnavailableError('away')) : outbox.dueLanes()),
      claim: (lane, limit, claimMs) => {
        claims += 1;
        return isAway ? Promise.reject(new StoreUnavailableError('away')) : outbox.claim(lane, limit, claimMs);
      },
      settle: (delivery) => outbox.settle(delivery),
      defer: (delivery, delayMs) => outbox.defer(delivery, delayMs),
      bury: (delivery) => outbox.bury(delivery),
    },
    orgs: stores.orgs,
    calls: stores.calls,
    analyst: {
      find: (question) => {
        questions.push(question);
        return Promise.resolve(findings.length > 1 ? findings.shift()! : findings[0]!);
      },
    },
    post: (url, body, headers, aborted) => {
      posts.push({ url, body, headers, atMs: clock.nowMs() });
      return attempt(aborted);
    },
    schedule: { firstMs: 5_000, maxMs: 3_600_000, giveUpMs: DAY_MS },
    clock,
    log: recordingLog(lines),
    claimMs: 60_000,
    chance: () => 0.5,
  });
});
afterEach(async () => {
  const closed = sender.close();
  await clock.advanceAsync(2_000);
  await closed;
});

const neverAnswered = (aborted: AbortSignal): Promise<Attempt> =>
  new Promise((resolve) => aborted.addEventListener('abort', () => resolve({ kind: 'aborted' })));

async function added(fields: Partial<Delivery> = {}): Promise<Delivery> {
  const delivery: Delivery = { ...deliveryOf(orgId), created_at: new Date(clock.wallMs()).toISOString(), ...fields };
  await stores.outbox.add(delivery);
  return delivery;
}

describe('WebhookSender', () => {
  it('sends a delivery at once when it is kicked, signed with the secret of the organization, and only once', async () => {
    const delivery = await added();
    sender.kick(orgId);
    await clock.advanceAsync(0);
    const { webhook_secret: secret } = (await stores.orgs.get(orgId))!;
    const t = String(clock.wallMs() / 1_000);
    const signature = new Webhook(secret).sign(delivery.delivery_id, new Date(clock.wallMs()), delivery.body);
    expect(posts).toEqual([
      {
        url: delivery.url,
        body: delivery.body,
        headers: { 'webhook-id': delivery.delivery_id, 'webhook-timestamp': t, 'webhook-signature': signature },
        atMs: 0,
      },
    ]);
    sender.start();
    await clock.advanceAsync(DAY_MS / 24);
    expect(posts).toHaveLength(1);
  });

  it('finds what another gateway, or an earlier process, left', async () => {
    sender.start();
    await added();
    await clock.advanceAsync(1_000);
    expect(posts).toHaveLength(1);
  });

  it('tries again with longer and longer waits, under the same id, until it is accepted', async () => {
    attempt = () => Promise.resolve(posts.length < 4 ? FAILED : { kind: 'delivered', status: 200 });
    await added();
    sender.start();
    await clock.advanceAsync(120_000);
    expect(posts.map(({ atMs }) => atMs)).toEqual([0, 5_000, 15_000, 35_000]);
    expect(new Set(posts.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(posts.map(({ headers }) => headers['webhook-signature'])).size).toBe(4);
    expect(lines.filter(({ event }) => event === 'webhook.failed').map(({ fields }) => fields['retry_in_ms'])).toEqual([
      5_000, 10_000, 20_000,
    ]);
  });

  it('gives up after a day, and keeps the delivery with the last error', async () => {
    attempt = () => Promise.resolve(FAILED);
    const delivery = await added();
    sender.start();
    await clock.advanceAsync(DAY_MS + 3_600_000);
    const { letters } = await stores.outbox.dead(orgId, 10, null);
    expect(letters).toMatchObject([{ delivery_id: delivery.delivery_id, attempts: posts.length, last_error: 'it answered 500' }]);
    expect(posts.at(-1)!.atMs).toBeLessThanOrEqual(DAY_MS);
    expect(posts.length).toBeGreaterThan(25);
  });

  it.each([
    [null, ['My card number is…']],
    [0, []],
    [30, []],
  ])('keeps a dead letter’s transcript only where transcripts have no retention of their own: %s days', async (transcript_days, kept) => {
    await stores.orgs.change(orgId, { transcript_days });
    attempt = () => Promise.resolve({ kind: 'refused', error: 'no' });
    const body = JSON.stringify({ call_id: '1', transcript: ['My card number is…'], analysis: { guests: 2 } });
    await added({ body });
    sender.start();
    await clock.advanceAsync(1_000);
    const { letters } = await stores.outbox.dead(orgId, 10, null);
    expect(posts[0]!.body).toBe(body);
    expect(JSON.parse(letters[0]!.body)).toEqual({ call_id: '1', transcript: kept, analysis: { guests: 2 } });
  });

  it.each<[string, Partial<Delivery>, Attempt]>([
    ['that may never be sent', {}, { kind: 'refused', error: 'it is not at an address of the public internet' }],
    ['of an organization that is deleted', { org_id: newUuid() }, { kind: 'delivered', status: 200 }],
  ])('gives up a delivery at once %s', async (_which, fields, outcome) => {
    attempt = () => Promise.resolve(outcome);
    const { org_id: owner } = await added(fields);
    sender.start();
    await clock.advanceAsync(1_000);
    expect((await stores.outbox.dead(owner, 10, null)).letters).toHaveLength(1);
  });

  it('has at most 32 of one lane in progress, and takes the next when one is done', async () => {
    const waiting: ((outcome: Attempt) => void)[] = [];
    attempt = () => new Promise((resolve) => waiting.push(resolve));
    for (let count = 0; count < 40; count += 1) await added();
    sender.start();
    await clock.advanceAsync(5_000);
    expect(posts).toHaveLength(32);
    waiting[0]!({ kind: 'delivered', status: 200 });
    await clock.advanceAsync(0);
    expect(posts).toHaveLength(33);
    for (let sent = 1; sent < 40; sent += 1) {
      waiting[sent]!({ kind: 'delivered', status: 200 });
      await clock.advanceAsync(0);
    }
    expect(posts).toHaveLength(40);
  });

  it('sends those of others while one receiver does not answer', async () => {
    attempt = neverAnswered;
    for (let count = 0; count < 200; count += 1) await added();
    sender.start();
    await clock.advanceAsync(1_000);
    attempt = () => Promise.resolve({ kind: 'delivered', status: 200 });
    let other = (await stores.orgs.create({ name: 'other', sip_enabled: true })).org_id;
    while (outboxLane(other) === outboxLane(orgId)) other = (await stores.orgs.create({ name: 'other', sip_enabled: true })).org_id;
    await added({ org_id: other, url: 'https://other.example.com/' });
    sender.kick(other);
    await clock.advanceAsync(0);
    expect(posts.at(-1)!.url).toBe('https://other.example.com/');
  });

  it('logs once that the store is away, and continues when it is back', async () => {
    isAway = true;
    sender.start();
    await added();
    await clock.advanceAsync(10_000);
    expect(lines.filter(({ event }) => event === 'webhook.outbox.away')).toHaveLength(1);
    isAway = false;
    await clock.advanceAsync(1_000);
    expect(posts).toHaveLength(1);
  });

  it('aborts at close what has no answer, and leaves it to be sent again', async () => {
    attempt = neverAnswered;
    const delivery = await added();
    sender.start();
    await clock.advanceAsync(0);
    const closed = sender.close();
    await clock.advanceAsync(2_000);
    await closed;
    expect(await stores.outbox.claim(outboxLane(orgId), 10, 0)).toEqual([delivery]);
    claims = 0;
    await clock.advanceAsync(60_000);
    expect([claims, clock.pendingTimers]).toEqual([0, 0]);
  });

  it('logs no address of a receiver', async () => {
    attempt = () => Promise.resolve(FAILED);
    await added({ url: 'https://example.com/?token=very-secret' });
    sender.start();
    await clock.advanceAsync(DAY_MS);
    expect(JSON.stringify(lines)).not.toContain('very-secret');
  });
});

describe('the lanes of the outbox', () => {
  it('are used evenly', () => {
    const counts = Array.from({ length: OUTBOX_LANES }, () => 0);
    for (let count = 0; count < 6_400; count += 1) {
      const lane = outboxLane(newUuid());
      counts[lane] = (counts[lane] ?? 0) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(100);
    expect(Math.max(...counts)).toBeLessThan(320);
  });
});

describe('a pending analysis', () => {
  const SCHEMA = { guests: 'integer' };
  const FOUND: Findings = { kind: 'found', kept: { guests: 2 }, wrong: {} };
  const BUSY: Findings = { kind: 'failed', error: 'The text model answered 503.', mayRetry: true };
  const TRANSCRIPT = [{ speaker: 'caller' as const, text: 'Two.', at_ms: 1 }];

  /** A call with its record and its delivery, in the order in which they are written. */
  async function ended(fields: Partial<Delivery> = {}, hasRecord = true): Promise<string> {
    const record = callOf(orgId, clock.wallMs(), { transcript: TRANSCRIPT, analysis_error: 'due' });
    const { call_id: id } = record;
    await added({
      delivery_id: id,
      body: JSON.stringify({ call_id: id, transcript: TRANSCRIPT, analysis: null }),
      analysis_schema: SCHEMA,
      ...fields,
    });
    if (hasRecord) await stores.calls.write(endedCall(record));
    sender.start();
    await clock.advanceAsync(0);
    return id;
  }
  const recordOf = async (id: string): Promise<unknown[]> => {
    const { analysis, analysis_error, analysis_rejected } = (await stores.calls.get(orgId, id))!;
    return [analysis, analysis_error, analysis_rejected];
  };
  const told = (): unknown[] => posts.map(({ body }) => JSON.parse(body) as unknown);

  it('is made first, and is in the record and in the webhook', async () => {
    findings = [FOUND];
    const id = await ended();
    expect(questions).toMatchObject([{ transcript: TRANSCRIPT, schema: SCHEMA, timeoutMs: 20_000, org: { org_id: orgId } }]);
    expect(told()).toEqual([{ call_id: id, transcript: TRANSCRIPT, analysis: { guests: 2 } }]);
    expect(await recordOf(id)).toEqual([{ guests: 2 }, null, null]);
    expect(await stores.outbox.waiting()).toBe(0);
  });

  it('of an agent without a webhook is in the record alone', async () => {
    findings = [{ kind: 'found', kept: {}, wrong: { guests: 'two' } }];
    const id = await ended({ url: null });
    expect([posts, await recordOf(id)]).toEqual([[], [{}, null, { guests: 'two' }]]);
    expect(await stores.outbox.waiting()).toBe(0);
  });

  it('is tried again until 30 s after the call; then the webhook goes without it and with the cause', async () => {
    findings = [BUSY];
    const id = await ended();
    await clock.advanceAsync(20_000);
    expect([questions.length, posts]).toEqual([11, []]);
    expect(questions.at(-1)!.timeoutMs).toBe(10_000);
    await clock.advanceAsync(10_000);
    expect(told()).toEqual([{ call_id: id, transcript: TRANSCRIPT, analysis: null, analysis_error: 'The text model answered 503.' }]);
    expect(await recordOf(id)).toEqual([null, 'The text model answered 503.', null]);
  });

  it('is not tried again where that is useless, nor begun when it is too late', async () => {
    findings = [{ kind: 'failed', error: 'No key for the text model is set.', mayRetry: false }];
    await ended();
    await ended({ created_at: new Date(clock.wallMs() - 31_000).toISOString() });
    expect(questions).toHaveLength(1);
    expect(told()).toMatchObject([
      { analysis: null, analysis_error: 'No key for the text model is set.' },
      { analysis: null, analysis_error: 'The text model did not answer in time.' },
    ]);
  });

  it('waits for the record, which is written after the delivery', async () => {
    findings = [FOUND];
    const id = await ended({}, false);
    expect(posts).toEqual([]);
    await stores.calls.write(endedCall(callOf(orgId, clock.wallMs(), { call_id: id })));
    await clock.advanceAsync(2_000);
    expect([posts.length, await recordOf(id)]).toEqual([1, [{ guests: 2 }, null, null]]);
  });
});
