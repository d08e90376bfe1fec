import { beforeEach, describe, expect, it } from 'vitest';
import { ConferenceParty } from '../../../../src/gateway/media/conference.js';
import { HoldMusic } from '../../../../src/gateway/media/hold-music.js';
import type { LegAgent } from '../../../../src/gateway/media/leg-agent.js';
import { MediaLeg, type LegMedia } from '../../../../src/gateway/media/leg.js';
import { SampleLegAgent } from '../../../../src/gateway/media/sample-leg-agent.js';
import { SlotClock } from '../../../../src/gateway/media/slot-clock.js';
import { decodeG711, encodeG711, type AudioCodec } from '../../../../src/rtp/codec/g711.js';
import { levelDbfs } from '../../../../src/rtp/codec/level.js';
import { rtpPacket } from '../../../support/media/packets.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// What each says all the time. A sum of two is like no other.
const SAYS = { caller: 1_000, agent: 2_000, party: 4_000 } as const;
const law = (sample: number, codec: AudioCodec = 'PCMU'): Buffer => {
  const payload = Buffer.alloc(160);
  encodeG711(codec, new Int16Array(160).fill(sample), payload);
  return payload;
};

interface End {
  readonly leg: MediaLeg;
  readonly sent: Buffer[];
}

let clock: VirtualClock;
let slots: SlotClock;
let caller: End;
let other: End;
let party: ConferenceParty;
let heardByAgent: Int16Array[];
let digits: number[];
let sequence: number;
let agents: Map<MediaLeg | undefined, LegAgent>;

function open(codec: AudioCodec, agent: () => LegAgent | undefined): End {
  const sent: Buffer[] = [];
  const media: LegMedia = { codec, payloadType: codec === 'PCMU' ? 0 : 8, telephoneEventPayloadType: 101, srtp: null, carrierSuite: null };
  let random = sent.length + 1;
  const leg = new MediaLeg(media, {
    clock,
    random32: () => (random = (random * 69_069 + 1) >>> 0),
    transport: { sendRtp: (buffer, length) => sent.push(Buffer.from(buffer.subarray(12, length))), sendRtcp: () => undefined },
    mediaTimeoutMs: 30_000,
    onEvent: () => undefined,
    agent,
  });
  slots.add(leg);
  return { leg, sent };
}

beforeEach(() => {
  clock = new VirtualClock();
  slots = new SlotClock(clock);
  [heardByAgent, digits, sequence] = [[], [], 0];
  agents = new Map();
  const own = new SampleLegAgent({
    connect: () => Promise.resolve(),
    start: () => undefined,
    digit: (event) => digits.push(event),
    frame: (input, output) => {
      heardByAgent.push(input.slice());
      output.fill(SAYS.agent);
    },
    notify: () => undefined,
    close: () => undefined,
  });
  caller = open('PCMU', () => own);
  other = open('PCMA', () => agents.get(other.leg));
  party = new ConferenceParty(caller.leg, 7);
  agents.set(other.leg, party);
  caller.leg.start();
});

/** Both talk for so long; what was sent and heard before is forgotten. */
function talk(milliseconds: number): void {
  for (const list of [caller.sent, other.sent, heardByAgent]) list.length = 0;
  for (let at = 0; at < milliseconds; at += 20) {
    sequence += 1;
    caller.leg.receiveRtp(rtpPacket({ sequenceNumber: sequence, payloadType: 0, ssrc: 1, payload: law(SAYS.caller) }));
    other.leg.receiveRtp(rtpPacket({ sequenceNumber: sequence, payloadType: 8, ssrc: 2, payload: law(SAYS.party, 'PCMA') }));
    clock.advance(20);
  }
}

/** The level of a frame that is nothing but one level. */
function levelOf(frame: Buffer | undefined, codec: AudioCodec): number {
  const samples = new Int16Array(160);
  if (frame !== undefined) decodeG711(codec, frame, samples, 0, 160);
  return samples[80] ?? 0;
}

const heard = (): { caller: number; party: number; agent: number } => ({
  caller: levelOf(caller.sent.at(-1), 'PCMU'),
  party: levelOf(other.sent.at(-1), 'PCMA'),
  agent: heardByAgent.at(-1)?.[80] ?? 0,
});

/** Within what two passes through G.711 do to it. */
function expectLevels(levels: Partial<ReturnType<typeof heard>>): void {
  for (const [who, level] of Object.entries(levels)) {
    const actual = heard()[who as keyof typeof SAYS];
    expect(Math.abs(actual - level), `${who} hears ${String(actual)}, not ${String(level)}`).toBeLessThan(0.06 * level);
  }
}

describe('a conference', () => {
  it('begins with the ACK of the party: agent and party talk, and the caller hears music', () => {
    talk(1_000);
    expectLevels({ caller: SAYS.agent, agent: SAYS.caller });
    other.leg.start();
    talk(1_000);
    expectLevels({ party: SAYS.agent, agent: SAYS.party });
    const music = new Int16Array(caller.sent.length * 160);
    caller.sent.forEach((frame, index) => decodeG711('PCMU', frame, music.subarray(160 * index), 0, 160));
    expect(new Set(music).size).toBeGreaterThan(20);
    expect([caller.sent.length, other.sent.length]).toEqual([50, 50]);
  });

  it('of three lets each hear the other two, and not itself', () => {
    other.leg.start();
    caller.leg.setThreeWay(true);
    talk(1_000);
    expectLevels({ caller: SAYS.agent + SAYS.party, party: SAYS.agent + SAYS.caller, agent: SAYS.caller + SAYS.party });
    // A frame each 20 ms; the first may be there before.
    expect([50, 51]).toContain(heardByAgent.length);
    caller.leg.setThreeWay(false);
    talk(1_000);
    expectLevels({ party: SAYS.agent, agent: SAYS.party });
  });

  it('ends with the leg of the party: caller and agent hear each other', () => {
    other.leg.start();
    talk(500);
    party.close();
    other.leg.close();
    talk(1_000);
    expectLevels({ caller: SAYS.agent, agent: SAYS.caller });
  });

  it('continues for the agent and the party while the caller’s carrier holds', () => {
    other.leg.start();
    caller.leg.setDirection('sendonly');
    talk(1_000);
    expect(caller.sent).toEqual([]);
    expect(heardByAgent).toHaveLength(50);
    expectLevels({ party: SAYS.agent, agent: SAYS.party });
  });

  it('is silent for the party when the agent is gone', () => {
    other.leg.start();
    caller.leg.releaseAgent();
    talk(1_000);
    expect(levelOf(other.sent.at(-1), 'PCMA')).toBeLessThan(16);
  });

  it('passes digits of the party to the agent', () => {
    other.leg.start();
    party.digit(5);
    expect(digits).toEqual([5]);
  });

  it('needs the leg of the caller', async () => {
    await expect(new ConferenceParty(null, 1).connect()).rejects.toThrow('no leg');
  });
});

describe('hold music', () => {
  it('is audible, not loud, and continues without a pause', () => {
    const music = new HoldMusic();
    const samples = new Int16Array(160);
    let quietFrames = 0;
    for (let frame = 0; frame < 1_000; frame += 1) {
      music.fill(samples);
      const level = levelDbfs(samples);
      expect(level).toBeLessThan(-18);
      quietFrames = level < -50 ? quietFrames + 1 : 0;
      expect(quietFrames).toBeLessThan(5);
    }
  });
});
