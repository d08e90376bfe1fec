import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TO, type OutboundSite } from '../../support/outbound-site.js';
import { hearEachOther, NUMBER, PACKETS, TransferSite } from '../../support/transfer-site.js';
import { respond } from '../../support/sip-message.js';

// Two calls that rtpengine joins; test/world/gateway/second-leg.test.ts has the rest.

let transfers: TransferSite;
let site: OutboundSite;

beforeAll(async () => {
  transfers = await TransferSite.start();
  site = transfers.outbound;
});

afterAll(() => transfers.destroy());

describe('a transfer whose REFER is refused', () => {
  it('becomes a second call: both parties hear each other, the caller’s carrier gets nothing, and the agent leaves', async () => {
    const { call, leg, end } = await transfers.joined();
    expect(leg.invite.startLine).toContain(`INVITE sip:${TO}@`);
    expect(leg.invite.header('From')).toContain(`<sip:${NUMBER}@`);
    await call.bot.message('stop');
    expect(call.peer.received.some(({ startLine }) => /^(?:INVITE|UPDATE) /.test(startLine))).toBe(false);
    // The other party hangs up: so do we.
    expect((await leg.dialog.ask('BYE')).status).toBe(200);
    expect(await call.ended()).toContain('PEER_HANGUP');
    await end.close();
    const record = await transfers.recordOf(call);
    expect(record).toMatchObject({ reason: 'PEER_HANGUP', parent_call_id: null });
    expect(record.legs).toMatchObject([{ to: TO, reason: 'CALLEE_HANGUP' }]);
    const child = await site.ended(record.legs[0]?.call_id ?? '');
    expect(child).toMatchObject({ direction: 'outbound', parent_call_id: record.call_id, to: TO, from: NUMBER, reason: 'CALLEE_HANGUP' });
    expect(child.quality.relay?.from_carrier.packets).toBeGreaterThan(PACKETS - 5);
  });

  it('continues when the gateway is killed: both parties hear each other, and each may hang up', async () => {
    const { call, leg, end } = await transfers.joined();
    const before = await site.gateway.pidOf('gateway');
    process.kill(before, 'SIGKILL');
    // rtpengine knows nothing of it.
    await hearEachOther(call.end, end);
    await expect.poll(() => site.gateway.pidOf('gateway').catch(() => before)).not.toBe(before);
    const ping = await call.signalling.incoming('OPTIONS');
    respond(call.peer, ping, '200 OK');
    respond(leg.peer, await leg.request('OPTIONS'), '200 OK');
    await hearEachOther(call.end, end);
    expect((await leg.dialog.ask('BYE')).status).toBe(200);
    expect(await call.ended()).toContain('PEER_HANGUP');
    await end.close();
    const record = await transfers.recordOf(call);
    expect(record).toMatchObject({ reason: 'PEER_HANGUP', resumed: 1, legs: [{ to: TO, reason: 'CALLEE_HANGUP' }] });
    expect(record.legs[0]?.answered_at).not.toBeNull();
    expect(await site.ended(record.legs[0]?.call_id ?? '')).toMatchObject({ reason: 'CALLEE_HANGUP', resumed: 1 });
  });
});
