import { audioPacket } from '../../../../support/audio-packet.js';
import { describe, expect, it } from 'vitest';
import { MediaFork } from '../../../../../src/gateway/agents/stream/media-fork.js';
import { noAgentCounters } from '../../../../../src/gateway/media/leg-agent.js';
import type { StreamTrack } from '../../../../../src/gateway/model/agent.js';
import { decodeG711, encodeG711, type AudioCodec } from '../../../../../src/rtp/codec/g711.js';
import { silentLog } from '../../../../../src/lib/log.js';
import { PlayedAgent } from '../../../../support/agent/played-socket.js';
import { STREAM } from '../../../../support/agent/stream-leg.js';
import { AGENT_LIMITS } from '../../../../support/media/agent-limits.js';
import { VirtualClock } from '../../../../support/virtual-clock.js';

const SID = `MZ${'0'.repeat(32)}`;
const FRAME = 160;

function openFork(tracks: readonly StreamTrack[] = ['inbound', 'outbound'], codec: AudioCodec = 'PCMU') {
  const clock = new VirtualClock();
  const server = new PlayedAgent();
  const events: object[] = [];
  const counters = noAgentCounters();
  const dependencies = { clock, dial: server.dial, limits: AGENT_LIMITS, counters };
  const fork = new MediaFork({ ...STREAM, streamSid: SID, tracks }, dependencies, (event) => events.push(event), silentLog);
  let packets = 0;
  return {
    clock,
    server,
    events,
    counters,
    fork,
    start: () => fork.start(codec, clock.nowMs()),
    /** 20 ms of a call: a packet of the caller, and a frame that the caller was sent. */
    frame: (heard: number, sent: number): void => {
      fork.hear(audioPacket(codec, 1, 160 * packets, new Uint8Array(FRAME).fill(heard), 0, FRAME, clock.nowMs()));
      packets += 1;
      fork.sent(codec, new Uint8Array(FRAME).fill(sent), clock.nowMs());
      clock.advance(20);
    },
    media: (track: StreamTrack) =>
      server.of('media').flatMap(({ media }) => {
        const one = media as { track: string; chunk: string; timestamp: string; payload: string };
        return one.track === track ? [{ ...one, bytes: Buffer.from(one.payload, 'base64') }] : [];
      }),
  };
}

const closedWith =
  (code: number) =>
  (server: PlayedAgent): void => {
    server.accept();
    server.events.onClosed(code);
  };

describe('a fork', () => {
  it('copies both tracks, each with its own chunks, and sends stop at the end', () => {
    const { server, events, start, frame, media, fork } = openFork();
    start();
    server.accept();
    for (let index = 0; index < 6; index += 1) frame(0x11, 0x22);
    expect(server.of('connected', 'start').length).toBe(2);
    expect(server.of('start')[0]).toMatchObject({ start: { tracks: ['inbound', 'outbound'], streamSid: SID }, streamSid: SID });
    expect(media('outbound').map(({ chunk, timestamp }) => [chunk, timestamp])).toEqual(
      Array.from({ length: 6 }, (_none, index) => [String(index + 1), String(20 * index)]),
    );
    expect(media('outbound').every(({ bytes }) => bytes.every((byte) => byte === 0x22))).toBe(true);
    expect(media('inbound').length).toBeGreaterThan(2);
    expect(media('inbound')[0]).toMatchObject({ chunk: '1' });
    expect(
      media('inbound')
        .at(-1)
        ?.bytes.every((byte) => byte === 0x11),
    ).toBe(true);
    expect(events).toEqual([{ type: 'stream-started', streamSid: SID }]);
    fork.close();
    expect([server.messages.at(-1)?.event, server.ended]).toEqual(['stop', ['closed']]);
    expect(events.length).toBe(1);
  });

  it('sends one track, in µ-law whatever codec the leg has', () => {
    const { server, start, frame, media } = openFork(['outbound'], 'PCMA');
    start();
    server.accept();
    const alaw = new Uint8Array(1);
    encodeG711('PCMA', new Int16Array([8_000]), alaw);
    frame(0x11, alaw[0] ?? 0);
    expect(media('inbound')).toEqual([]);
    const heard = new Int16Array(FRAME);
    decodeG711('PCMU', media('outbound')[0]?.bytes ?? new Uint8Array(FRAME), heard, 0, FRAME);
    expect(
      heard.every((sample) => Math.abs(sample - 8_000) < 600),
      String(heard[0]),
    ).toBe(true);
  });

  it('drops what its server does not accept, and never waits for it', () => {
    const { server, start, frame, media, counters } = openFork(['outbound']);
    start();
    server.accept();
    server.unsentBytes = 1_000_000;
    frame(0, 0x22);
    expect([media('outbound').length, counters.droppedOutboundMs]).toEqual([0, 20]);
  });

  it.each([
    ['refused', (server: PlayedAgent): void => server.events.onFailed('HTTP 403'), 'HTTP 403'],
    ['lost', closedWith(1_006), 'the connection was closed with 1006'],
    ['closed by its server', closedWith(1_000), null],
  ])('ends once when it is %s, and is not connected again', (_name, act, error) => {
    const { server, start, frame, events, clock } = openFork();
    start();
    act(server);
    frame(1, 1);
    clock.advance(60_000);
    expect(events.at(-1)).toEqual({ type: 'fork-ended', streamSid: SID, error });
    expect([events.filter((event) => 'error' in event).length, server.attempts.length]).toEqual([1, 1]);
  });

  it('gives up on a server that does not answer', () => {
    const { server, start, events, clock } = openFork();
    start();
    clock.advance(AGENT_LIMITS.connectTimeoutMs);
    expect(events).toEqual([{ type: 'fork-ended', streamSid: SID, error: `no answer within ${String(AGENT_LIMITS.connectTimeoutMs)} ms` }]);
    expect(server.attempts[0]?.isGivenUp).toBe(true);
  });

  it('ends when no ping is answered', () => {
    const { server, start, frame, events } = openFork();
    start();
    server.accept();
    server.reads = false;
    for (let index = 0; index < (2 * AGENT_LIMITS.pingIntervalMs) / 20 + 2; index += 1) frame(1, 1);
    expect(events.at(-1)).toMatchObject({ type: 'fork-ended', error: expect.stringContaining('no ping') as string });
  });
});
