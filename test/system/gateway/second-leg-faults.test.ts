import { afterEach, describe, expect, it } from 'vitest';
import { CallEnd } from '../../support/media/call-end.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { botHears, followCaller, TransferSite } from '../../support/transfer-site.js';
import { nothingLeft, sessionsOf } from '../../support/trunk.js';
import { respond } from '../../support/sip-message.js';

// Two calls of ours where rtpengine passes SRTP through; test/world/gateway/second-leg-faults.test.ts has the rest.

let transfers: TransferSite;
let relays: RunningRtpengine[] = [];

afterEach(async () => {
  await transfers.destroy();
  for (const relay of relays) await relay.stop();
  relays = [];
});

describe('an rtpengine that dies', () => {
  it('before the transfer still lets the caller who moved be joined', async () => {
    relays = [await RunningRtpengine.start(200), await RunningRtpengine.start(200)];
    transfers = await TransferSite.start({ TRUNKLINE_RTPENGINE: relays.map(({ name }) => name).join(',') });
    const call = await transfers.talking();
    const [one, other] = relays as [RunningRtpengine, RunningRtpengine];
    const [busy, idle] = (await sessionsOf(one.port)) === 0 ? [other, one] : [one, other];
    followCaller(call);
    await busy.kill();
    await call.signalling.incoming('INVITE');
    await botHears(call, call.end, 5_000);
    // rtpengine passes the caller's SRTP through since then: the other party's key is another one, which the caller gets by re-INVITE.
    const transfer = await transfers.joined(call);
    expect((await transfer.leg.dialog.ask('BYE')).status).toBe(200);
    expect(await call.ended()).toContain('PEER_HANGUP');
    await transfer.end.close();
    await nothingLeft(idle.port);
  });
});

describe('a carrier of the caller', () => {
  it('[3264 §8] that refuses the re-INVITE of joining, which pass-through SRTP needs, leaves the caller with the agent', async () => {
    transfers = await TransferSite.start({ TRUNKLINE_MEDIA_AGENT_LEG: 'srtp' });
    const { call, leg } = await transfers.dialled();
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    respond(call.peer, await call.signalling.incoming('INVITE'), '488 Not Acceptable Here');
    const bye = await leg.request('BYE');
    respond(leg.peer, bye, '200 OK');
    expect(await call.bot.message('transfer', 1)).toMatchObject({ transfer: { id: 't1', state: 'failed' } });
    await botHears(call, call.end, 7_000);
    expect(call.bot.of('stop')).toEqual([]);
    await call.hangUp();
    await end.close();
    expect(await transfers.recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});
