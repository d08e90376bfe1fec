import { expect, it } from 'vitest';
import { MediaUnavailableError } from '../../../src/gateway/ports.js';
import { silentLog } from '../../../src/lib/log.js';
import { RtpengineError, type NgReply, type RtpengineNode } from '../../../src/rtpengine/node.js';
import { RtpengineRelay } from '../../../src/rtpengine/relay.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** Answers each command with the next of these: how often `delete` is asked, and when, is what these tests are about. */
function relayWith(...answers: (NgReply | RtpengineError)[]) {
  const clock = new VirtualClock();
  const askedAtMs: number[] = [];
  const node: Pick<RtpengineNode, 'command'> = {
    command: () => {
      askedAtMs.push(clock.nowMs());
      const answer = answers.shift() ?? new RtpengineError('timeout', 'no answer');
      return answer instanceof RtpengineError ? Promise.reject(answer) : Promise.resolve(answer);
    },
  };
  return { relay: new RtpengineRelay(node as RtpengineNode, null, clock, silentLog), clock, askedAtMs };
}

/** Lets what has settled run, then moves the clock, a second at a time. */
async function run(clock: VirtualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1_000);
  }
  await new Promise((resolve) => setImmediate(resolve));
}

it('asks for a delete again until rtpengine confirms it, and returns its figures', async () => {
  const lost = new RtpengineError('timeout', 'no answer');
  const { relay, clock, askedAtMs } = relayWith(lost, lost, { result: 'ok', totals: { RTP: { packets: 10, bytes: 1_720, errors: 1 } } });
  const figures = relay.delete({ relayId: 'c1' });
  await run(clock, 5);
  expect(await figures).toEqual({ packets: 10, bytes: 1_720, errors: 1 });
  expect(askedAtMs).toHaveLength(3);
});

it('gives a delete up after about 20 s', async () => {
  const { relay, clock, askedAtMs } = relayWith();
  const figures = relay.delete({ relayId: 'c1' }).catch((error: unknown) => error);
  await run(clock, 30);
  expect(await figures).toBeInstanceOf(MediaUnavailableError);
  expect(askedAtMs).toHaveLength(4);
});

it('gives a delete up at once when the gateway is closing its connection', async () => {
  const { relay, askedAtMs } = relayWith(new RtpengineError('closed', 'closed'));
  await expect(relay.delete({ relayId: 'c1' })).rejects.toThrow(MediaUnavailableError);
  expect(askedAtMs).toHaveLength(1);
});

it.each([
  ['no SDP', { result: 'ok' }],
  ['an empty SDP', { result: 'ok', sdp: '' }],
  ['an SDP that is no text', { result: 'ok', sdp: 7 }],
])('takes an answer with %s for media that cannot be had', async (_what, reply) => {
  const { relay } = relayWith(reply);
  await expect(relay.offer({ relayId: 'c1', fromTag: 'a', insideSrtp: false }, 'v=0')).rejects.toThrow('answered without an SDP');
});

it('passes rtpengine’s own reason on', async () => {
  const { relay } = relayWith(new RtpengineError('refused', 'Ran out of ports'));
  await expect(relay.offer({ relayId: 'c1', fromTag: 'a', insideSrtp: false }, 'v=0')).rejects.toMatchObject({
    name: 'MediaUnavailableError',
    message: 'rtpengine offer: Ran out of ports',
  });
});
