import { expect, it } from 'vitest';
import { answerOk, HandMadeCall } from '../../support/invite.js';
import { PlayedGateway } from '../../support/played-gateway.js';
import { offerSdp } from '../../support/sdp.js';

it('a call that is ended on behalf of its agent gets BYE with AGENT_HANGUP', async () => {
  const gateway = await PlayedGateway.start();
  try {
    const call = new HandMadeCall(gateway.peer, '+15550100100');
    await call.answered(offerSdp());
    await expect.poll(() => gateway.started).toBe(1);
    const [callId = ''] = gateway.callIds;
    expect(gateway.inbound.find(callId)).toMatchObject({ callId, orgId: 'o', from: '+15550100999', to: '+15550100100' });
    gateway.inbound.hangUp(callId);
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toContain('text="AGENT_HANGUP"');
    answerOk(gateway.peer, bye);
    await gateway.inbound.whenIdle();
    expect(gateway.inbound.find(callId)).toBeNull();
    expect(gateway.records.map(({ reason }) => reason)).toEqual(['AGENT_HANGUP']);
  } finally {
    await gateway.stop();
  }
});
