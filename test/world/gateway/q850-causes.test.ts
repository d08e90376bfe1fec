import { afterEach, describe, expect, it } from 'vitest';
import { q850CauseOf } from '../../../src/gateway/call/call-dialog.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { OutboundSite } from '../../support/outbound-site.js';
import { offerSdp } from '../../support/sdp.js';
import { World } from '../world.js';

let world: World;
afterEach(() => world.destroy());

describe('[3326] the Q.850 cause of a Reason header', () => {
  it('of a BYE is in the record', async () => {
    world = await World.start();
    const call = new HandMadeCall(await world.carrier(), world.ready.phone_number);
    const ok = await call.answered(offerSdp());
    await call.request('BYE', ok, '', ['Reason: SIP;cause=200;text="Q.850;cause=1, no", Q.850;cause=31;text="Normal, unspecified"']);
    expect(await world.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP', q850_cause: 31 });
    expect(q850CauseOf('SIP;cause=487')).toBeNull();
    expect(q850CauseOf(undefined)).toBeNull();
  });

  it.each([19, 20, 31])('[6432] %i of a refusal is in the record of the placed call, whose reason is NO_ANSWER', async (cause) => {
    const site = await OutboundSite.startOn((settings) => World.start(settings));
    world = site.gateway;
    const { callId, call } = await site.placed();
    call.respond('480 Temporarily Unavailable', { extra: [`Reason: Q.850;cause=${String(cause)}`] });
    expect(await site.ended(callId)).toMatchObject({ reason: 'NO_ANSWER', q850_cause: cause });
    await site.trunk.close();
  });
});
