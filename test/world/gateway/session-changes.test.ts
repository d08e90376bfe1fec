import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

const NUMBER = '+15550100100';
const SAME = offerSdp();
const HELD = offerSdp({ direction: 'sendonly' });
const T38 = SAME.replace(/m=audio[\s\S]*/, 'm=image 40030 udptl t38\r\na=T38FaxVersion:0\r\n');

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site));

async function answered(sdp = SAME): Promise<{ call: HandMadeCall; ok: WireMessage }> {
  const call = new HandMadeCall(peer, NUMBER);
  return { call, ok: await call.answered(sdp) };
}

/** A re-INVITE, acknowledged; an UPDATE needs no ACK. */
async function change(method: 'INVITE' | 'UPDATE', call: HandMadeCall, ok: WireMessage, sdp: string): Promise<WireMessage> {
  const answer = await call.request(method, ok, sdp);
  if (method === 'INVITE' && answer.status === 200) call.ack(answer);
  return answer;
}

const versionOf = ({ body }: WireMessage): number => Number(/^o=trunkline \d+ (\d+) IN IP4 /m.exec(body)?.[1]);
const codeOf = (answer: WireMessage): string => /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? '';

describe.each(['INVITE', 'UPDATE'] as const)('a change of the session by %s', (method) => {
  it('[3264 §8] [4028 §7.4] gets the same answer, byte by byte, to the same SDP', async () => {
    const { call, ok } = await answered();
    for (let refresh = 0; refresh < 3; refresh += 1) {
      const again = await change(method, call, ok, SAME);
      expect([again.status, again.body]).toEqual([200, ok.body]);
    }
    await call.hangUp(ok);
  });

  it('[3264 §8] gets the next version in o= when our side changed, and only then', async () => {
    const { call, ok } = await answered();
    const held = await change(method, call, ok, HELD);
    const heldAgain = await change(method, call, ok, HELD.replace('o=carrier 1 1', 'o=carrier 1 2'));
    const moved = await change(method, call, ok, offerSdp({ direction: 'sendonly', port: 40_100 }));
    const back = await change(method, call, ok, SAME);
    expect([ok, held, heldAgain, moved, back].map(versionOf)).toEqual([1, 2, 2, 2, 3]);
    expect([held, heldAgain, moved, back].map(({ body }) => /^a=(recvonly|sendrecv)\r$/m.exec(body)?.[1])).toEqual([
      ...Array<string>(3).fill('recvonly'),
      'sendrecv',
    ]);
    // Everything but the version and the direction stays: ports and key above all.
    const rest = ({ body }: WireMessage): string => body.replace(/^o=.*$/m, '').replace(/^a=(recvonly|sendrecv)/m, '');
    expect(new Set([ok, held, heldAgain, moved, back].map(rest)).size).toBe(1);
    await call.hangUp(ok);
  });

  it.each([
    ['sendonly', 'recvonly', offerSdp({ direction: 'sendonly' })],
    ['inactive', 'inactive', offerSdp({ direction: 'inactive' })],
    ['recvonly', 'sendonly', offerSdp({ direction: 'recvonly' })],
    ['c=0.0.0.0', 'recvonly', offerSdp({ address: '0.0.0.0' })],
    ['sendonly for the whole session', 'recvonly', SAME.replace('a=sendrecv\r\n', '').replace('t=0 0', 't=0 0\r\na=sendonly')],
  ])('[3264 §8.4] that holds the call by %s gets %s', async (_what, direction, sdp) => {
    const { call, ok } = await answered();
    expect((await change(method, call, ok, sdp)).body).toContain(`a=${direction}\r\n`);
    expect((await change(method, call, ok, SAME)).body).toContain('a=sendrecv\r\n');
    await call.hangUp(ok);
  });

  it('[3264 §8.4] that holds by c=0.0.0.0 stops the audio to the carrier, which hears all again afterwards', async () => {
    const end = await CallEnd.open();
    const { call, ok } = await answered(end.sdp());
    end.connect(ok.body);
    await end.hearsAgent();
    expect((await change(method, call, ok, end.sdp({ address: '0.0.0.0' }))).status).toBe(200);
    await gateway.time.settle();
    const before = end.peer.received.length;
    await end.peer.speak(new Int16Array(15 * 160));
    expect(end.peer.received.length).toBe(before);
    expect((await change(method, call, ok, end.sdp())).status).toBe(200);
    await end.hearsEcho(3_500);
    await call.hangUp(ok);
    await end.close();
  });

  it('[3264 §8.3.1] to another address and port moves audio, both ways', async () => {
    const first = await CallEnd.open();
    const { call, ok } = await answered(first.sdp());
    first.connect(ok.body);
    await first.hearsAgent();
    const second = await CallEnd.open({ key: first.key });
    second.connect((await change(method, call, ok, second.sdp())).body);
    await second.hearsEcho(4_500);
    const heardBefore = first.peer.received.length;
    await second.hearsEcho(-4_500);
    expect(first.peer.received.length).toBe(heardBefore);
    await call.hangUp(ok);
    await Promise.all([first.close(), second.close()]);
  });

  it('[3264 §8.3.2] to another codec and another type for telephone-events keeps audio and digits, both ways', async () => {
    const first = await CallEnd.open();
    const { call, ok } = await answered(first.sdp());
    first.connect(ok.body);
    await first.hearsAgent();
    const second = await CallEnd.open({ key: first.key, codec: 'PCMA', telephoneEventPayloadType: 96 });
    const changed = await change(method, call, ok, second.sdp());
    expect(changed.body).toMatch(/^m=audio \d+ RTP\/SAVP 8 96\r$/m);
    await second.connect(changed.body).hearsEcho(4_500);
    await call.hangUp(ok);
    await Promise.all([first.close(), second.close()]);
  });

  it.each([
    ['T.38', T38, 'BAD_SDP'],
    ['video alone', SAME.replace('m=audio', 'm=video'), 'BAD_SDP'],
    ['a codec that is not ours', offerSdp({ payloads: '9 101' }), 'NO_COMMON_CODEC'],
    ['no encryption', offerSdp({ profile: 'RTP/AVP', crypto: [] }), 'SRTP_REQUIRED'],
    ['an IPv6 address', SAME.replaceAll('IN IP4 127.0.0.1', 'IN IP6 ::1'), 'ADDRESS_FAMILY_UNSUPPORTED'],
  ])('[3261 §14.2] to %s gets 488, and the call continues as it was', async (_what, sdp, reason) => {
    const { call, ok } = await answered();
    const refused = await change(method, call, ok, sdp);
    expect([refused.status, codeOf(refused)]).toEqual([488, reason]);
    expect((await change(method, call, ok, SAME)).body).toBe(ok.body);
    await call.hangUp(ok);
  });

  it('[3264 §8.1] with one more m-line beside the audio gets that line refused in its place', async () => {
    const { call, ok } = await answered();
    const answer = await change(method, call, ok, `${SAME}m=video 40010 RTP/SAVP 96\r\na=rtpmap:96 H264/90000\r\n`);
    expect(answer.body.match(/^m=\w+ \d+/gm)).toEqual([expect.stringMatching(/^m=audio [1-9]/), 'm=video 0']);
    await call.hangUp(ok);
  });
});

describe('an UPDATE without SDP', () => {
  it('[3311 §5.2] [4028 §7.4] refreshes the session and gets 200 without a body', async () => {
    const { call, ok } = await answered();
    const answer = await call.request('UPDATE', ok);
    expect([answer.status, answer.body, answer.header('Contact')]).toEqual([200, '', ok.header('Contact')]);
    await call.hangUp(ok);
  });
});

describe('a change that rtpengine has not answered yet', () => {
  /** A re-INVITE or UPDATE that waits for rtpengine. */
  async function waiting(method: 'INVITE' | 'UPDATE', call: HandMadeCall, ok: WireMessage): Promise<{ final: Promise<WireMessage> }> {
    gateway.rtpengine.hold('offer');
    const final = call.request(method, ok, HELD);
    await gateway.until(() => gateway.rtpengine.heldCount === 1);
    return { final };
  }

  it.each([
    ['INVITE', 'INVITE'],
    ['INVITE', 'UPDATE'],
    ['UPDATE', 'INVITE'],
    ['UPDATE', 'UPDATE'],
  ] as const)(
    '[3261 §14.2] [3311 §5.2] by %s makes a second one by %s get 500 with Retry-After of 0 to 10 s, and gets its own answer',
    async (one, two) => {
      const { call, ok } = await answered();
      const { final } = await waiting(one, call, ok);
      const second = await call.request(two, ok, SAME);
      expect(second.status).toBe(500);
      expect(Number(second.header('Retry-After'))).toBeLessThanOrEqual(10);
      expect(second.header('Retry-After')).toMatch(/^\d+$/);
      gateway.rtpengine.goOn();
      const first = await final;
      expect([first.status, /^a=recvonly\r$/m.test(first.body)]).toEqual([200, true]);
      if (one === 'INVITE') call.ack(first);
      await call.hangUp(ok);
    },
  );

  it('[3261 §15.1.2] gets 487 to its re-INVITE when BYE comes, which gets 200, and leaves nothing', async () => {
    const { call, ok } = await answered();
    const { final } = await waiting('INVITE', call, ok);
    await call.hangUp(ok);
    expect((await final).status).toBe(487);
    gateway.rtpengine.goOn();
    await gateway.record(call.callId);
    expect(gateway.rtpengine.sessions.size).toBe(0);
  });
});
