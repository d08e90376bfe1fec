import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isWebhookOfTrunkline } from '../../../docs/examples/webhook-signature.js';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { FakeTextModel } from '../../support/provider/fake-text-model.js';
import { timesLogged } from '../../support/trunk.js';
import { WebhookReceiver, type ReceivedWebhook } from '../../support/webhook-receiver.js';
import { World } from '../world.js';

// The call-completion webhook, behind the whole product.

const RETRY_MS = 50;
const GIVE_UP_MS = 5_000;
let site: AgentSite<World>;
let receiver: WebhookReceiver;
let textModel: FakeTextModel;
let secret: string;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  textModel = await FakeTextModel.start();
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_ANALYSIS_URL: textModel.url,
    TRUNKLINE_ANALYSIS_API_KEY: 'sk-operator',
    TRUNKLINE_WEBHOOKS_RETRY_FIRST_MS: String(RETRY_MS),
    TRUNKLINE_WEBHOOKS_RETRY_MAX_MS: String(RETRY_MS),
    TRUNKLINE_WEBHOOKS_GIVE_UP_MS: String(GIVE_UP_MS),
  });
  secret = (await site.gateway.cli('org', 'webhook-secret', site.gateway.ready.org_id)).stdout.trim();
});
afterAll(async () => {
  await site.stop();
  await receiver.stop();
  await textModel.stop();
});

async function talking(path: string, settings: object = {}): Promise<AgentCall> {
  return site.talking({ number: await site.numberOf({ stream: { url: site.bot.url }, webhook: receiver.url(path), ...settings }) });
}

async function recordOf({ signalling }: AgentCall): Promise<Readonly<Record<string, unknown>>> {
  const { call_id: callId } = await site.gateway.record(signalling.callId);
  const { json } = await site.gateway.api('GET', `/v1/calls/${String(callId)}`);
  return (json['call'] ?? json['data']) as Readonly<Record<string, unknown>>;
}

const isGenuine = ({ text, headers }: ReceivedWebhook): boolean => isWebhookOfTrunkline(text, headers, secret);

describe('the call-completion webhook', () => {
  it('has what the record says, in exactly the fields of the interface, signed', async () => {
    const call = await talking('/complete', { metadata: { campaign: 7 }, analysis_schema: { guests: 'integer' } });
    call.bot.send({ event: 'transcript', transcript: { entries: [{ speaker: 'agent', text: 'Hello.' }] } });
    call.bot.send({ event: 'analysis', analysis: { data: { guests: 2 } } });
    // Both were taken when the answer to what was sent after them is here.
    call.bot.send({ event: 'analysis', analysis: { id: 'last', data: { nobody: 'asked' } } });
    await call.bot.message('error');
    await call.hangUp();
    const [webhook] = await receiver.first('/complete', 1);
    const record = await recordOf(call);
    const { call_id, from, to, reason, started_at, answered_at, ended_at, quality, transcript } = record;
    expect(webhook!.body).toEqual({
      call_id,
      from,
      to,
      reason,
      started_at,
      answered_at,
      ended_at,
      quality,
      transcript,
      analysis: { guests: 2 },
      metadata: { campaign: 7 },
    });
    expect(transcript).toMatchObject([{ speaker: 'agent', text: 'Hello.' }]);
    expect(reason).toBe('CALLER_HANGUP');
    expect(webhook!.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': call_id });
    expect(isGenuine(webhook!)).toBe(true);
    expect(new Webhook(secret).verify(webhook!.text, webhook!.headers as Record<string, string>)).toEqual(webhook!.body);
    expect(isGenuine({ ...webhook!, text: webhook!.text.replace('CALLER', 'callee') })).toBe(false);
  });

  it('has what a text model found in the transcript, where the agent sent no analysis', async () => {
    expect((await site.gateway.cli('org', 'enable-operator-keys', site.gateway.ready.org_id)).code).toBe(0);
    textModel.answers = [503, '{"guests":2,"mood":7}'];
    const call = await talking('/analysed', { analysis_schema: { guests: 'integer', mood: 'string' } });
    call.bot.send({ event: 'transcript', transcript: { entries: [{ speaker: 'caller', text: 'A table for two.' }] } });
    // It was taken when the answer to what was sent after it is here.
    call.bot.send({ event: 'tool', tool: { id: 'last', name: 'none', input: {} } });
    await call.bot.message('error');
    await call.hangUp();
    const [webhook] = await receiver.first('/analysed', 1);
    expect(webhook!.body).toMatchObject({ transcript: [{ text: 'A table for two.' }], analysis: { guests: 2 } });
    expect(await recordOf(call)).toMatchObject({ analysis: { guests: 2 }, analysis_error: null, analysis_rejected: { mood: 7 } });
    expect(textModel.requests.map(({ key }) => key)).toEqual(['Bearer sk-operator', 'Bearer sk-operator']);
    expect([isGenuine(webhook!), textModel.problems]).toEqual([true, []]);
  });

  it('comes again as the same delivery until the receiver accepts it, and then no more', async () => {
    receiver.answers.set('/again', [500, 302, 429]);
    await (await talking('/again')).hangUp();
    const all = await receiver.first('/again', 4);
    expect(new Set(all.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(all.map(({ text }) => text)).size).toBe(1);
    expect(all.every(isGenuine)).toBe(true);
    // Another call's webhook comes after any fifth attempt would have been due.
    receiver.answers.set('/later', [500]);
    await (await talking('/later')).hangUp();
    await receiver.first('/later', 2);
    expect(receiver.at('/again')).toHaveLength(4);
  });

  it('is not sent for a call that was refused', async () => {
    const number = await site.numberOf({ stream: { url: site.bot.url }, webhook: receiver.url('/refused') });
    const updates = { type: 'inbound', options: { allowed_sources: ['203.0.113.1'] } };
    expect((await site.gateway.api('POST', '/sip/update', { phone_number: number, updates })).status).toBe(200);
    const refused = await site.invite({ number });
    expect((await refused.signalling.final()).status).toBe(403);
    await refused.close();
    await site.gateway.record(refused.signalling.callId);
    await (await talking('/after-refused')).hangUp();
    await receiver.first('/after-refused', 1);
    expect(receiver.at('/refused')).toEqual([]);
  });

  it('is given up when the receiver never accepts it, is listed, and can be sent again', async () => {
    receiver.answers.set('/dead', Array<number>(100).fill(503));
    const call = await talking('/dead');
    await call.hangUp();
    const { call_id: id } = await site.gateway.record(call.signalling.callId);
    await site.gateway.logged('gateway', '"msg":"webhook.given_up"');
    const listed = await site.gateway.api('GET', '/v1/webhooks/dead-letters');
    expect(listed.json).toMatchObject({
      dead_letters: [{ delivery_id: id, call_id: id, url: receiver.url('/dead'), error: 'it answered 503' }],
      next: null,
    });
    const tried = receiver.at('/dead').length;
    expect(tried).toBeGreaterThan(2);
    receiver.answers.set('/dead', []);
    const orgId = site.gateway.ready.org_id;
    expect((await site.gateway.cli('webhook', 'dead', orgId)).stdout).toContain(String(id));
    const sent = await site.gateway.cli('webhook', 'resend', orgId, String(id));
    expect([sent.code, sent.stdout]).toEqual([0, `Delivery ${String(id)} is sent again.\n`]);
    const last = (await receiver.first('/dead', tried + 1)).at(-1)!;
    expect(last.headers['webhook-id']).toBe(id);
    expect(isGenuine(last)).toBe(true);
    expect((await site.gateway.api('POST', `/v1/webhooks/dead-letters/${String(id)}/resend`)).status).toBe(404);
  });

  it('survives a gateway that is killed between two attempts', async () => {
    const failures = (): Promise<number> => timesLogged(site.gateway, 'gateway', '"msg":"webhook.failed"');
    const before = await failures();
    receiver.answers.set('/killed', [500, 500]);
    await (await talking('/killed')).hangUp();
    const [first] = await receiver.first('/killed', 2);
    // Between two attempts: during one, the next waits until its claim has run out.
    await site.gateway.until(async () => (await failures()) === before + 2);
    site.gateway.killGateway();
    await site.gateway.startGateway();
    const [, , third] = await receiver.first('/killed', 3);
    expect(third!.text).toBe(first!.text);
    expect(isGenuine(third!)).toBe(true);
  });
});
