import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { TestBot, type BotCall } from '../../support/agent/test-bot.js';
import { World } from '../world.js';

// What is set over HTTP is what the bot of the next call is told.

const NUMBER = '+15550102900';
let site: AgentSite<World>;
let other: TestBot;

beforeAll(async () => {
  [site, other] = await Promise.all([AgentSite.startOn((all) => World.start(all)), TestBot.start()]);
});
afterAll(async () => {
  await site.stop();
  await other.stop();
});

const parametersOf = (bot: BotCall): Record<string, string> =>
  (bot.start as unknown as { start: { customParameters: Record<string, string> } }).start.customParameters;

async function api(method: 'POST' | 'DELETE', path: string, body?: object): Promise<Record<string, unknown>> {
  const { status, json } = await site.gateway.api(method, path, body);
  expect(status, JSON.stringify(json)).toBe(200);
  return json;
}

/** A call from its INVITE to its end: what the bot was told of it. */
async function told(bot?: TestBot): Promise<Record<string, string>> {
  const call = await site.talking({ number: NUMBER }, bot);
  const parameters = parametersOf(call.bot);
  await call.hangUp();
  return parameters;
}

describe('the HTTP API', () => {
  it('creates, changes and deletes an agent and changes its bot, each with effect from the next call on', async () => {
    const { agent } = await api('POST', '/v1/agents', { name: 'desk', prompt: 'The first.', language: 'GER', max_duration: 7 });
    const { agent_id: id } = agent as { agent_id: string };
    await api('POST', '/sip/attach', { phone_number: NUMBER, directions: ['inbound'], service: 'sip', agent_id: id });
    const first = { prompt: 'The first.', language: 'GER', max_duration: '7', agent_id: id };
    expect(await told()).toMatchObject(first);

    const settings = { prompt: 'The second.', first_sentence: 'Good day.', language: 'ENG', max_duration: null };
    expect(await api('POST', `/v1/agents/${id}`, settings)).toMatchObject({ updates: { ...settings, max_duration: 30 } });
    const second = { prompt: 'The second.', first_sentence: 'Good day.', language: 'ENG', max_duration: '30' };
    expect(await told()).toMatchObject(second);

    await api('POST', `/v1/agents/${id}`, { stream: { url: other.url, bearer_token: 'of-the-owner' } });
    expect(await told(other)).toMatchObject(second);
    expect(other.calls.all[0]?.upgrade.headers.authorization).toBe('Bearer of-the-owner');

    const refused = await site.gateway.api('DELETE', `/v1/agents/${id}`);
    expect([refused.status, refused.json.errors]).toMatchObject([409, [{ error: 'AGENT_IN_USE' }]]);
    await api('POST', '/sip/update', { phone_number: NUMBER, updates: { type: 'inbound', agent_id: null } });
    await api('DELETE', `/v1/agents/${id}`);
    expect(await told()).toMatchObject({ agent_id: '' });
  });

  it('returns the log of a batch that was written at the command line, and the audit log names the batch', async () => {
    const { gateway } = site;
    const made = await gateway.cli('batch', 'create', 'Reminders', '--json');
    const { batch_id: id } = JSON.parse(made.stdout) as { batch_id: string };
    const payload = { calls_total: 3, calls_failed: 1, calls_successful: 2 };
    expect((await gateway.cli('batch', 'append', id, 'complete', '--payload', JSON.stringify(payload))).code).toBe(0);
    const { json } = await gateway.api('GET', `/v2/batches/${id}/logs`);
    expect(json).toMatchObject({ status: 'success', data: [{ batch_id: id, event_type: 'complete', payload }], errors: null });
    const audit = await gateway.api('GET', '/v1/audit?take=1');
    expect(audit.json).toMatchObject({ entries: [{ action: 'batch.create', record: id, by: { name: 'demo' } }] });
  });

  it('has no warning about the demo agent', async () => {
    const { agent_id: id } = site.gateway.ready;
    const answer = await api('POST', `/v1/agents/${id}`, { metadata: { changed: true } });
    expect(answer).toMatchObject({ updates: { metadata: { changed: true } }, warnings: [] });
  });
});
