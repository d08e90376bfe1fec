import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../support/hand-made-call.js';
import { offerSdp } from '../support/sdp.js';
import { startWorld } from './world.js';

const NUMBER = '+15550100100';

describe('a call', () => {
  it('is answered by the test line, and leaves one record when the caller hangs up', async () => {
    const world = await startWorld();
    const call = new HandMadeCall(await world.carrier(), NUMBER);
    const ok = await call.answered(offerSdp());
    expect(ok.body).toMatch(/m=audio \d+ RTP\/SAVP 0 101/);
    await world.pass(3_000);
    await call.hangUp(ok);
    await world.pass(1_000);
    expect(await world.records()).toMatchObject([{ reason: 'CALLER_HANGUP', sip_call_id: call.callId }]);
    expect(world.rtpengine.sessions.size).toBe(0);
  });
});
