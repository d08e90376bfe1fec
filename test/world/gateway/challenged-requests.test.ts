import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseChallenges, digestAnswer } from '../../../src/lib/digest-access.js';
import type { AgentCall } from '../../support/agent/agent-site.js';
import { NUMBER, TransferSite } from '../../support/transfer-site.js';
import type { WireMessage } from '../../support/sip-peer.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// A carrier that challenges requests of ours in calls that come in.

const ACCOUNT = { username: 'acme', password: 'p4ss' };
const CHALLENGE = 'Digest realm="carrier", qop="auth", algorithm=SHA-256, nonce="n0nce"';
const TARGET = '+8131234567';

let site: TransferSite<World>;

beforeEach(async () => {
  site = await TransferSite.startOn((settings) => World.start(settings));
});

afterEach(async () => {
  await site.destroy();
});

async function update(updates: object): Promise<void> {
  expect((await site.outbound.gateway.api('POST', '/sip/update', { phone_number: NUMBER, updates })).status).toBe(200);
}

/** A call to a number with these options and an account at its trunk. */
async function talking(options: object): Promise<AgentCall> {
  await update({ type: 'inbound', options });
  await update({ type: 'outbound', sip_endpoint: site.outbound.trunk.endpoint, ...ACCOUNT });
  return site.talking();
}

function challenge(call: AgentCall, request: WireMessage): void {
  respond(call.peer, request, '407 Proxy Authentication Required', { extra: [`Proxy-Authenticate: ${CHALLENGE}`] });
}

function expectedAnswer(request: WireMessage, method: string): string {
  const [, uri = ''] = request.startLine.split(' ');
  const cnonce = /cnonce="([^"]*)"/.exec(request.header('Proxy-Authorization') ?? '')?.[1] ?? '';
  return digestAnswer(chooseChallenges([CHALLENGE])[0]!, ACCOUNT, { method, uri, count: 1, cnonce });
}

describe('a request of ours in a call that came in', () => {
  it('[3261 §22.3] is sent again with the account of the trunk when it is challenged: REFER, then BYE', async () => {
    const call = await talking({ allowed_sources: ['127.0.0.0/8'] });
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TARGET } });
    challenge(call, await call.signalling.incoming('REFER'));
    const refer = await call.signalling.incoming('REFER');
    expect(refer.header('Proxy-Authorization')).toBe(expectedAnswer(refer, 'REFER'));
    respond(call.peer, refer, '202 Accepted');
    expect(await call.bot.message('transfer')).toMatchObject({ transfer: { id: 't1', state: 'accepted', status: 202 } });
    call.bot.send({ event: 'hangup', hangup: { after: 'now' } });
    challenge(call, await call.signalling.incoming('BYE'));
    const bye = await call.signalling.incoming('BYE');
    expect(bye.header('Proxy-Authorization')).toBe(expectedAnswer(bye, 'BYE'));
    respond(call.peer, bye, '200 OK');
    await call.close();
  });

  it('fails when it is challenged by whoever may call', async () => {
    const call = await talking({});
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TARGET } });
    challenge(call, await call.signalling.incoming('REFER'));
    expect(await call.bot.message('transfer')).toMatchObject({ transfer: { id: 't1', state: 'failed', status: 407 } });
    await call.hangUp();
    expect(await site.recordOf(call)).toMatchObject({ signalling_error: 'REFER: answered with 407' });
  });
});
