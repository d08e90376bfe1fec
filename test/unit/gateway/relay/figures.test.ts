import { expect, it } from 'vitest';
import { figuresOf } from '../../../../src/gateway/relay/figures.js';

const stream = (flag: string, ssrc: number, packets: number) => ({
  flags: [flag, 'filled'],
  SSRC: ssrc,
  stats: { packets, bytes: packets * 172, errors: 1 },
});

// The shape of rtpengine 10.5's answer, with what is not read left out.
const REPLY = {
  result: 'ok',
  SSRC: { 7: { 'cumulative loss': 3, 'average MOS': { MOS: 43, 'round-trip time': 2_703, jitter: 4, 'packet loss': 1, samples: 2 } } },
  tags: {
    carrier: { medias: [{ streams: [stream('RTP', 7, 50), stream('RTCP', 7, 4)] }] },
    agent: { medias: [{ streams: [stream('RTP', 8, 40), stream('RTCP', 8, 4)] }] },
  },
};

it('figuresOf tells each side’s RTP from its RTCP and from the other side’s, and finds its quality by SSRC', () => {
  expect(figuresOf(REPLY)).toEqual({
    fromCarrier: { packets: 50, bytes: 8_600, errors: 1, lost: 3, jitterMs: 4, roundTripMs: 2.703, mos: 4.3 },
    fromAgent: { packets: 40, bytes: 6_880, errors: 1, lost: null, jitterMs: null, roundTripMs: null, mos: null },
  });
});

it('figuresOf finds the SSRC of rtpengine 12 too, which lists the incoming ones', () => {
  const { SSRC, ...rest } = stream('RTP', 7, 50);
  const reply = { ...REPLY, tags: { carrier: { medias: [{ streams: [{ ...rest, 'ingress SSRCs': [{ SSRC }] }] }] } } };
  expect(figuresOf(reply)?.fromCarrier).toEqual({
    packets: 50,
    bytes: 8_600,
    errors: 1,
    lost: 3,
    jitterMs: 4,
    roundTripMs: 2.703,
    mos: 4.3,
  });
});

it.each([
  ['nothing', { result: 'ok' }, null],
  [
    'a session without streams',
    { tags: {} },
    { packets: 0, bytes: 0, errors: 0, lost: null, jitterMs: null, roundTripMs: null, mos: null },
  ],
  ['other types', { tags: { carrier: { medias: [7, { streams: ['x', { flags: 'RTP' }] }] } } }, { packets: 0 }],
])('figuresOf reads %s', (_what, reply, expected) => {
  const figures = figuresOf(reply);
  if (expected === null) expect(figures).toBeNull();
  else expect(figures?.fromCarrier).toMatchObject(expected);
});
