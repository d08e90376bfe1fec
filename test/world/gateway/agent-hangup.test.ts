import { expect, it } from 'vitest';
import { DEFAULT_AGENT_SETTINGS } from '../../../src/gateway/model/agent-record.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { PlayedGateway } from '../../support/played-gateway.js';
import { ROUTE } from '../../support/route.js';
import { offerSdp } from '../../support/sdp.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';
import { respond } from '../../support/sip-message.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

it('a call that its agent ends gets BYE with AGENT_HANGUP', async () => {
  const gateway = await PlayedGateway.start();
  try {
    const call = new HandMadeCall(gateway.peer, '+15550100100');
    await call.answered(offerSdp());
    await time.until(() => gateway.started === 1);
    const [callId = ''] = gateway.callIds;
    expect(gateway.inbound.find(callId)).toMatchObject({ callId, orgId: 'o', from: '+15550100999', to: '+15550100100' });
    expect(gateway.inbound.stop(callId, 'AGENT_HANGUP')).toBe(true);
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toContain('text="AGENT_HANGUP"');
    respond(gateway.peer, bye, '200 OK');
    await gateway.inbound.whenIdle();
    expect([gateway.inbound.find(callId), gateway.inbound.stop(callId, 'AGENT_HANGUP')]).toEqual([null, false]);
    expect(gateway.records.map(({ reason }) => reason)).toEqual(['AGENT_HANGUP']);
  } finally {
    await gateway.stop();
  }
});

it('a call that reaches the maximum duration of its agent gets BYE with MAX_DURATION', async () => {
  const agent = { ...DEFAULT_AGENT_SETTINGS, agent_id: 'a', org_id: 'o', name: '', max_duration: 1, created_at: '', updated_at: '' };
  const gateway = await PlayedGateway.start({ ...ROUTE, agent });
  try {
    const call = new HandMadeCall(gateway.peer, '+15550100100');
    await call.answered(offerSdp());
    const startedMs = time.nowMs;
    const bye = await call.incoming('BYE');
    expect(time.nowMs - startedMs).toBe(60_000);
    expect(bye.header('Reason')).toContain('text="MAX_DURATION"');
    respond(gateway.peer, bye, '200 OK');
    await gateway.inbound.whenIdle();
    expect(gateway.records).toMatchObject([{ reason: 'MAX_DURATION', agent_id: 'a' }]);
  } finally {
    await gateway.stop();
  }
});
