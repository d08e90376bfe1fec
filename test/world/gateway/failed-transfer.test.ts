import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PACKETS, TransferSite } from '../../support/transfer-site.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// A carrier that lets its caller go with a REFER that fails, and keeps the call, as Asterisk does.

let site: TransferSite<World>;

beforeEach(async () => {
  site = await TransferSite.startOn((settings) => World.start(settings), { TRUNKLINE_MEDIA_TIMEOUT_MS: '4000' });
});

afterEach(async () => {
  await site.destroy();
});

describe('a call whose transfer failed', () => {
  it.each([
    [true, 'MEDIA_TIMEOUT'],
    [false, 'CALLER_HANGUP'],
  ])('with receiver reports alone ends by itself: %s, with %s, where the carrier had accepted the transfer', async (isAccepted, reason) => {
    const call = await site.talking();
    await call.end.peer.speak(new Int16Array(PACKETS * 160));
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: '+8131234567' } });
    respond(call.peer, await call.signalling.incoming('REFER'), isAccepted ? '202 Accepted' : '603 Decline');
    if (isAccepted) {
      const headers = ['Event: refer', 'Subscription-State: terminated;reason=noresource', 'Content-Type: message/sipfrag;version=2.0'];
      await call.signalling.request('NOTIFY', call.ok, 'SIP/2.0 486 Busy Here\r\n', headers);
    }
    expect(await call.bot.message('transfer', isAccepted ? 1 : 0)).toMatchObject({
      transfer: { id: 't1', state: 'failed', status: isAccepted ? 486 : 603 },
    });
    for (let second = 0; second < 8; second += 1) {
      call.end.peer.sendReceiverReport();
      await site.outbound.gateway.pass(1_000);
    }
    if (isAccepted) {
      const bye = await call.signalling.incoming('BYE');
      respond(call.peer, bye, '200 OK');
      await call.close();
    } else await call.hangUp();
    expect(await site.recordOf(call)).toMatchObject({ reason });
  });
});
