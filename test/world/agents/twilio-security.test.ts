import { twilioTokenOf } from '../../support/twilio-token.js';
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot } from '../../support/agent/test-bot.js';
import { World } from '../world.js';

// How a bot knows that it is called by this gateway, and how it ends its call as with Twilio.

const TOKEN = 'operators-own-token';
let site: AgentSite<World>;
let customer: TestBot;
let number: string;
let url: string;

beforeAll(async () => {
  [site, customer] = await Promise.all([
    AgentSite.startOn((all) => World.start(all), { TRUNKLINE_AGENTS_BEARER_TOKEN: TOKEN }),
    TestBot.start(),
  ]);
  url = `${customer.url}/a%20b?customer=7&empty=`;
  number = await site.numberOf({ stream: { url } });
});
afterAll(async () => {
  await site.stop();
  await customer.stop();
});

const sidOf = ({ bot }: AgentCall): string => (bot.start as unknown as { start: { callSid: string } }).start.callSid;

describe('the connection to a bot', () => {
  it('is signed over the exact URL with the organization’s stream key; the operator’s token goes to their own bot alone', async () => {
    const key = await twilioTokenOf(site.gateway, site.gateway.ready.org_id);
    expect(key).toMatch(/^[\w-]{43}$/);
    const signed = (text: string): string => createHmac('sha1', key).update(text).digest('base64');
    const theirs = await site.talking({ number }, customer);
    const { headers, url: path } = theirs.bot.upgrade;
    expect(path).toBe('/stream/a%20b?customer=7&empty=');
    expect(headers['x-twilio-signature']).toBe(signed(url));
    expect(headers.authorization).toBeUndefined();
    await theirs.hangUp();
    const ours = await site.talking();
    expect(ours.bot.upgrade.headers['x-twilio-signature']).toBe(signed(site.bot.url));
    expect(ours.bot.upgrade.headers.authorization).toBe(`Bearer ${TOKEN}`);
    await ours.hangUp();
    expect(await site.gateway.log('gateway')).not.toContain(TOKEN);
  });
});

describe('Twilio’s request to end a call', () => {
  it('ends exactly that call, and gets 404 with 20404 the second time', async () => {
    const [one, other] = [await site.talking(), await site.talking()];
    const { http, org_id: orgId } = site.gateway.ready;
    const token = await twilioTokenOf(site.gateway, orgId);
    const account = `AC${orgId.replaceAll('-', '')}`;
    const complete = (): Promise<Response> =>
      fetch(`${http}/2010-04-01/Accounts/${account}/Calls/${sidOf(one)}.json`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}` },
        body: new URLSearchParams({ Status: 'completed' }),
      });
    const done = await complete();
    expect([done.status, await done.json()]).toEqual([200, expect.objectContaining({ sid: sidOf(one), status: 'completed' })]);
    expect(await one.ended()).toContain('text="AGENT_HANGUP"');
    expect(await one.bot.closed.at(0)).toBe(1_000);
    expect(one.bot.messages.all.at(-1)).toMatchObject({ event: 'stop' });
    expect(await site.gateway.record(one.signalling.callId)).toMatchObject({ reason: 'AGENT_HANGUP' });
    const again = await complete();
    expect([again.status, await again.json()]).toEqual([404, expect.objectContaining({ code: 20_404 })]);
    // The other one goes on.
    const heard = other.bot.of('media').length;
    await other.bot.message('media', heard + 5);
    await other.hangUp();
    expect(await site.gateway.record(other.signalling.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});
