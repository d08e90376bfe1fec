import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';

const NUMBER = '+15550100100';

let peer: SipPeer;
withWorld((site) => ({ peer } = site));

type Sender = (extra: readonly string[]) => Promise<WireMessage>;

/** The same headers in each request that may carry them; a call that was answered is hung up at the end. */
const SENDERS: readonly (readonly [string, Sender])[] = [
  [
    'INVITE',
    async (extra) => {
      const call = new HandMadeCall(peer, NUMBER);
      call.invite(offerSdp(), extra);
      const answer = await call.final();
      if (answer.status === 200) {
        call.ack(answer);
        await call.hangUp(answer);
      }
      return answer;
    },
  ],
  ['re-INVITE', (extra) => within('INVITE', offerSdp(), extra)],
  ['UPDATE', (extra) => within('UPDATE', '', extra)],
];

async function within(method: 'INVITE' | 'UPDATE', sdp: string, extra: readonly string[]): Promise<WireMessage> {
  const call = new HandMadeCall(peer, NUMBER);
  const ok = await call.answered(offerSdp());
  const answer = await call.request(method, ok, sdp, extra);
  if (method === 'INVITE' && answer.status === 200) call.ack(answer);
  await call.hangUp(ok);
  return answer;
}

const timerOf = (answer: WireMessage): (number | string | undefined)[] => [
  answer.status,
  answer.header('Session-Expires'),
  answer.header('Require'),
];

describe.each(SENDERS)('the session timer of an %s', (_method, send) => {
  it.each([
    ['no refresher', ['Supported: timer', 'Session-Expires: 1800'], '1800;refresher=uac', 'timer'],
    ['refresher=uac', ['Supported: 100rel, timer', 'Session-Expires: 600;refresher=uac'], '600;refresher=uac', 'timer'],
    ['refresher=uas', ['Supported: timer', 'Session-Expires: 600;refresher=uas'], '600;refresher=uas', 'timer'],
    ['timer in Require', ['Require: timer', 'Session-Expires: 90'], '90;refresher=uac', 'timer'],
    ['a proxy asks, the caller does not support timers', ['Session-Expires: 1800'], '1800;refresher=uas', undefined],
    ['a proxy asks for too little', ['Session-Expires: 30'], '90;refresher=uas', undefined],
    ['the compact form', ['Supported: timer', 'x: 300;refresher=uas'], '300;refresher=uas', 'timer'],
  ])('[4028 §9] follows Session-Expires: %s', async (_what, extra, expires, require) => {
    expect(timerOf(await send(extra))).toEqual([200, expires, require]);
  });

  it('[4028 §9] does not run without Session-Expires', async () => {
    expect(timerOf(await send(['Supported: timer']))).toEqual([200, undefined, undefined]);
  });

  it('[4028 §6] below 90 s gets 422 with Min-SE when the caller supports timers', async () => {
    const answer = await send(['Supported: timer', 'Session-Expires: 89;refresher=uac']);
    expect([answer.status, answer.header('Min-SE')]).toEqual([422, '90']);
    expect(answer.header('Warning')).toContain('SESSION_INTERVAL_TOO_SMALL');
  });
});
