import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { PlayedGateway } from '../../support/played-gateway.js';
import { offerSdp } from '../../support/sdp.js';
import type { WireMessage } from '../../support/sip-peer.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';
import { respond } from '../../support/sip-message.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

const TARGET = '+15550100300';

let gateway: PlayedGateway;
let call: HandMadeCall;
let ok: WireMessage;

beforeEach(async () => {
  gateway = await PlayedGateway.start();
  call = new HandMadeCall(gateway.peer, '+15550100100');
  ok = await call.answered(offerSdp());
});

afterEach(async () => {
  await gateway.stop();
});

/** The agent asks for a transfer, and the carrier gets this. */
async function referred(to = TARGET): Promise<WireMessage> {
  await time.until(() => gateway.started === 1);
  gateway.agentSays({ type: 'transfer', requestId: 't1', to });
  return call.incoming('REFER');
}

function notify(status: string, state = 'active;expires=60', event = 'refer'): Promise<WireMessage> {
  const headers = [`Event: ${event}`, `Subscription-State: ${state}`, 'Content-Type: message/sipfrag;version=2.0'];
  return call.request('NOTIFY', ok, `SIP/2.0 ${status}\r\n`, headers);
}

const progress = (state: string, status: number | null): object => ({ type: 'transfer-progress', requestId: 't1', state, status });

async function ended(reason: string): Promise<void> {
  await gateway.inbound.whenIdle();
  expect(gateway.records.map((record) => record.reason)).toEqual([reason]);
}

describe('a transfer by REFER', () => {
  it('[3515 §2.1] [3892 §2.1] is sent in the dialog with the number at the carrier’s host; after NOTIFY 200 we hang up', async () => {
    const refer = await referred();
    expect(refer.header('Refer-To')).toBe(`<sip:${TARGET}@127.0.0.1;user=phone>`);
    expect(refer.header('Referred-By')).toBe(ok.header('Contact'));
    expect(refer.header('Contact')).toBe(ok.header('Contact'));
    expect(refer.header('From')).toBe(ok.header('To'));
    respond(gateway.peer, refer, '202 Accepted');
    await time.settle();
    expect(gateway.told).toEqual([progress('accepted', 202)]);
    expect((await notify('100 Trying')).status).toBe(200);
    expect((await notify('200 OK', 'terminated;reason=noresource')).status).toBe(200);
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toContain('text="TRANSFERRED"');
    respond(gateway.peer, bye, '200 OK');
    await ended('TRANSFERRED');
  });

  it('names a SIP URI as it was given', async () => {
    const refer = await referred('sip:sales@pbx.example;transport=tcp');
    expect(refer.header('Refer-To')).toBe('<sip:sales@pbx.example;transport=tcp>');
    respond(gateway.peer, refer, '603 Decline');
    await time.settle();
    expect(gateway.told).toEqual([progress('failed', 603)]);
    await call.hangUp(ok);
    await ended('CALLER_HANGUP');
    expect(gateway.records[0]?.signalling_error).toBe('REFER: answered with 603');
  });

  it('fails when its target is busy, and the agent learns it; the call continues, and the next transfer is a REFER again', async () => {
    respond(gateway.peer, await referred(), '202 Accepted');
    await time.until(() => gateway.told.length === 1);
    expect((await notify('486 Busy Here', 'terminated;reason=noresource')).status).toBe(200);
    await time.settle();
    expect(gateway.told).toEqual([progress('accepted', 202), progress('failed', 486)]);
    // A refresh shows that the call is whole.
    const again = await call.request('INVITE', ok, offerSdp());
    expect(again.status).toBe(200);
    call.ack(again);
    respond(gateway.peer, await referred(), '603 Decline');
    await time.settle();
    expect(gateway.told.at(-1)).toEqual(progress('failed', 603));
    await call.hangUp(ok);
    await ended('CALLER_HANGUP');
  });

  it('ends the call as TRANSFERRED when the carrier accepts it and then hangs up', async () => {
    respond(gateway.peer, await referred(), '202 Accepted');
    await time.settle();
    expect(gateway.told).toEqual([progress('accepted', 202)]);
    await call.hangUp(ok);
    await ended('TRANSFERRED');
  });

  it('[3261 §12.2.1.2] ends the call when it gets 481 and OPTIONS gets it too', async () => {
    respond(gateway.peer, await referred(), '481 Call/Transaction Does Not Exist');
    respond(gateway.peer, await call.incoming('OPTIONS'), '481 Call/Transaction Does Not Exist');
    await ended('INTERNAL_ERROR');
    expect(gateway.told).toEqual([progress('failed', 481)]);
  });

  it('[3265 §3.2.4] is required before a NOTIFY, which gets 481 otherwise, whatever its body', async () => {
    expect((await notify('200 OK')).status).toBe(481);
    expect((await notify('200 OK', 'active', 'presence')).status).toBe(481);
    const answer = await call.request('NOTIFY', ok, 'x', ['Event: refer', 'Subscription-State: active', 'Content-Type: text/plain']);
    expect(answer.status).toBe(481);
    await call.hangUp(ok);
    await ended('CALLER_HANGUP');
  });
});
