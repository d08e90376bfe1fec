import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RtpPacket } from 'werift-rtp';
import type { AgentDescription } from '../../../../src/gateway/model/agent.js';
import type { LegDescription, LegEvent, MediaAddress } from '../../../../src/gateway/model/media.js';
import { silentLog } from '../../../../src/lib/log.js';
import { RtpEndpoint } from '../../../../src/gateway/media/endpoint.js';
import { CALLS_PER_SOCKET_PAIR } from '../../../../src/gateway/media/port-pair.js';
import type { AgentHost, LegAgent } from '../../../../src/gateway/media/leg-agent.js';
import { systemClock } from '../../../../src/lib/system-clock.js';
import { rtpPacket } from '../../../support/media/packets.js';
import { TestPeer } from '../../../support/media/test-peer.js';
import { freeRange } from '../../../support/ports.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// The endpoint's sockets on loopback, in this thread, with an agent that says silence.

const FIRST = await freeRange(6);
const AGENT = {
  connect: () => Promise.resolve(),
  notify: () => undefined,
  start: () => undefined,
  digit: () => undefined,
  bufferedMs: 0,
  latePackets: 0,
  hear: () => undefined,
  fill: () => undefined,
  pass: (): void => undefined,
  close: () => undefined,
};

let endpoint: RtpEndpoint;
const peers: TestPeer[] = [];

beforeEach(() => {
  endpoint = RtpEndpoint.open(
    { address: '127.0.0.1', rtpPorts: [FIRST, FIRST + 2], mediaTimeoutMs: 60_000 },
    { clock: systemClock, log: silentLog, random32: () => 7, newAgent: () => AGENT },
  );
});

afterEach(async () => {
  endpoint.close();
  for (const peer of peers.splice(0)) await peer.close();
});

/** An endpoint in place of the one that there is. */
function openWith<Time extends VirtualClock>(clock: Time, agent: LegAgent = AGENT): Time {
  endpoint.close();
  endpoint = RtpEndpoint.open(
    { address: '127.0.0.1', rtpPorts: [FIRST], mediaTimeoutMs: 60_000 },
    { clock, log: silentLog, random32: () => 7, newAgent: () => agent },
  );
  return clock;
}

async function newPeer(): Promise<TestPeer> {
  const peer = await TestPeer.open();
  peers.push(peer);
  return peer;
}

/** A peer that no packet needs to reach. */
const far = (port: number): MediaAddress => ({ address: '127.0.0.9', rtpPort: port, rtcpPort: port + 1 });

function open(callId: string, remote: MediaAddress, localRtpPort = FIRST): MediaAddress {
  const leg: LegDescription = {
    callId,
    sipCallId: `${callId}@carrier`,
    localRtpPort,
    remote,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: null,
    srtp: null,
    carrierSuite: null,
  };
  endpoint.openLeg(leg, () => undefined);
  return { address: '127.0.0.1', rtpPort: localRtpPort, rtcpPort: localRtpPort + 1 };
}

const move = (callId: string, remote: MediaAddress): void =>
  endpoint.changeLeg(callId, {
    remote,
    srtp: null,
    format: { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: null },
  });

describe('a leg on a port that the far side already has', () => {
  it('is refused when the port is not ours, is full, or already has that peer', () => {
    expect(() => open('a', far(1_000), FIRST + 1)).toThrow(`port ${String(FIRST + 1)} is not one of`);
    open('a', far(1_000), FIRST);
    expect(() => open('b', far(1_000), FIRST)).toThrow('the peer has another leg');
    for (let serial = 1; serial < CALLS_PER_SOCKET_PAIR; serial += 1) open(String(serial), far(1_000 + 2 * serial), FIRST);
    expect(() => open('c', far(9_000), FIRST)).toThrow('has no free slot');
    open('c', far(9_000), FIRST + 2);
    expect(() => open('d', { ...far(1_000), address: 'localhost' }, FIRST + 2)).toThrow(RangeError);
    expect(endpoint.counters().legs).toBe(CALLS_PER_SOCKET_PAIR + 1);
  });
});

describe('a leg whose far side moves', () => {
  it('sends to the new address and hears it, while the old one is a stranger', async () => {
    const [before, after] = [await newPeer(), await newPeer()];
    const at = open('a', before.address);
    for (const peer of [before, after]) peer.connect(at);
    endpoint.with('a', (leg) => leg.start());
    before.sendPacket(new Uint8Array(160));
    await before.until(() => before.received.length > 3);
    move('a', after.address);
    for (let packet = 0; packet < 3; packet += 1) {
      before.sendPacket(new Uint8Array(160));
      after.sendPacket(new Uint8Array(160));
    }
    after.sendReport();
    await after.until(() => after.received.length > 3 && after.reports.length > 0);
    // One stream, whose frames go to one place each: what the old one still got was on its way.
    const sequence = (packet: { readonly packet: RtpPacket } | undefined): number => packet!.packet.header.sequenceNumber;
    expect((sequence(after.received[0]) - sequence(before.received.at(-1))) & 0xffff).toBe(1);
    expect(endpoint.counters()).toMatchObject({ legs: 1, strangerPackets: 3, malformedPackets: 0 });
    expect(endpoint.closeLeg('a')).toMatchObject({ packetsReceived: 4 });
  });

  it('leaves its old peer free for another leg', () => {
    open('a', far(1_000), FIRST);
    move('a', far(2_000));
    open('b', far(1_000), FIRST);
    expect(() => open('c', far(2_000), FIRST)).toThrow('the peer has another leg');
  });

  it('stays at its address when another leg has that peer, or the address is invalid', () => {
    open('a', far(1_000), FIRST);
    open('b', far(2_000), FIRST);
    expect(() => move('a', far(2_000))).toThrow('the peer has another leg');
    expect(() => move('a', { ...far(3_000), rtcpPort: 2_001 })).toThrow('the peer has another leg');
    expect(() => move('a', { ...far(3_000), address: 'localhost' })).toThrow(RangeError);
    expect(() => move('nobody', far(3_000))).toThrow('the call has no leg');
    expect(() => open('c', far(1_000), FIRST)).toThrow('the peer has another leg');
    move('a', far(1_000));
    move('a', { ...far(1_000), rtcpPort: 1_003 });
  });
});

it('a leg that starts while its agent is connecting is silent, and the agent starts when the leg is started', async () => {
  let isConnected = (): void => undefined;
  const starts: number[] = [];
  const slow = {
    ...AGENT,
    connect: () => new Promise<void>((resolve) => (isConnected = resolve)),
    start: (_codec: unknown, nowMs: number) => void starts.push(nowMs),
  };
  const clock = new VirtualClock();
  const own = RtpEndpoint.open(
    { address: '127.0.0.1', rtpPorts: [FIRST + 4], mediaTimeoutMs: 60_000 },
    { clock, log: silentLog, random32: () => 7, newAgent: () => slow },
  );
  const leg = { callId: 'a', sipCallId: 'a', localRtpPort: FIRST + 4, remote: far(1_000), codec: 'PCMU', payloadType: 0 } as const;
  own.openLeg({ ...leg, telephoneEventPayloadType: null, srtp: null, carrierSuite: null }, () => undefined);
  const connected = own.connectAgent('a', { kind: 'test-line' } as AgentDescription, () => undefined);
  own.start('a');
  clock.advance(100);
  expect([starts, own.figures('a')?.packetsSent]).toEqual([[], 6]);
  isConnected();
  await connected;
  expect(starts).toEqual([]);
  own.start('a');
  expect(starts).toEqual([100]);
  own.close();
});

it.each([
  ['sendrecv', 6],
  ['inactive', 0],
] as const)('a leg that starts as it opens, %s, is silent until its agent starts', async (startsAs, packetsSent) => {
  const starts: number[] = [];
  const agent = { ...AGENT, start: (_codec: unknown, nowMs: number) => void starts.push(nowMs) };
  const clock = new VirtualClock();
  const own = RtpEndpoint.open(
    { address: '127.0.0.1', rtpPorts: [FIRST + 4], mediaTimeoutMs: 60_000 },
    { clock, log: silentLog, random32: () => 7, newAgent: () => agent },
  );
  const leg = { callId: 'a', sipCallId: 'a', localRtpPort: FIRST + 4, remote: far(1_000), codec: 'PCMU', payloadType: 0 } as const;
  own.openLeg({ ...leg, telephoneEventPayloadType: null, srtp: null, carrierSuite: null, startsAs }, () => undefined);
  clock.advance(100);
  expect(own.figures('a')?.packetsSent).toBe(packetsSent);
  await own.connectAgent('a', { kind: 'test-line' } as AgentDescription, () => undefined);
  expect(starts).toEqual([]);
  own.start('a');
  expect(starts).toEqual([100]);
  own.close();
});

it('a frame of speech leaves at once where one is due, and waits else', async () => {
  let speech: 'ready' | 'none' = 'none';
  let speak: AgentHost['speak'] | undefined;
  const agent = {
    ...AGENT,
    get speech() {
      return speech;
    },
    fill: () => (speech = 'none'),
  };
  const clock = new VirtualClock();
  const own = RtpEndpoint.open(
    { address: '127.0.0.1', rtpPorts: [FIRST + 4], mediaTimeoutMs: 60_000 },
    { clock, log: silentLog, random32: () => 7, newAgent: (_description, host) => ((speak = () => host.speak()), agent) },
  );
  const leg = { callId: 'a', sipCallId: 'a', localRtpPort: FIRST + 4, remote: far(1_000), codec: 'PCMU', payloadType: 0 } as const;
  await own.connectAgent('a', { kind: 'test-line' } as AgentDescription, () => undefined);
  expect(speak?.()).toBe(true);
  own.openLeg({ ...leg, telephoneEventPayloadType: null, srtp: null, carrierSuite: null }, () => undefined);
  own.start('a');
  const sent = (): number => own.figures('a')?.packetsSent ?? 0;
  clock.advance(27);
  const before = sent();
  speech = 'ready';
  expect([speak?.(), sent() - before]).toEqual([true, 1]);
  speech = 'ready';
  expect([speak?.(), sent() - before]).toEqual([false, 1]);
  clock.advance(13);
  expect(sent() - before).toBe(2);
  own.close();
});

describe('the delays of half a second', () => {
  it('are the median of what is read late, and the worst of what leaves late', async () => {
    const clock = openWith(new VirtualClock());
    const calls = ['a', 'b', 'c'];
    const callers = await Promise.all(calls.map(newPeer));
    const hear = async (sequenceNumber: number, of: readonly TestPeer[]): Promise<void> => {
      const before = endpoint.counters().packetsReceived;
      for (const peer of of) peer.rtpSocket.send(rtpPacket({ sequenceNumber }), FIRST, '127.0.0.1');
      await expect.poll(() => endpoint.counters().packetsReceived).toBe(before + of.length);
    };
    for (const [index, peer] of callers.entries()) open(calls[index]!, peer.address);
    await hear(1, callers);
    clock.advance(20);
    await hear(2, callers.slice(1));
    clock.advance(70);
    await hear(3, callers.slice(0, 1));
    expect(endpoint.takeDelays()).toEqual({ frameMs: 0, arrivalMs: 0 });
    await hear(3, callers.slice(1));
    expect(endpoint.takeDelays()).toEqual({ frameMs: 0, arrivalMs: 50 });
    expect(endpoint.takeDelays()).toEqual({ frameMs: 0, arrivalMs: 0 });
  });
});

describe('held legs', () => {
  /** A clock that counts the timers that fire. */
  class CountingClock extends VirtualClock {
    fired = 0;

    override setTimer(delayMs: number, fire: () => void): () => void {
      return super.setTimer(delayMs, () => {
        this.fired += 1;
        fire();
      });
    }
  }

  async function openHeld() {
    const passed: number[] = [];
    const agent = { ...AGENT, pass: (_nowMs: number, frames: number) => void passed.push(frames) };
    const clock = openWith(new CountingClock(), agent);
    const peer = await newPeer();
    await endpoint.connectAgent('a', { kind: 'test-line' } as AgentDescription, () => undefined);
    open('a', peer.address);
    endpoint.with('a', (leg) => leg.start());
    clock.advance(1_000);
    return { clock, passed, peer, sent: () => endpoint.figures('a')?.packetsSent ?? 0 };
  }

  it('need no timer of 20 ms: four ticks a second for all of them, one for each', async () => {
    const { clock, passed, sent } = await openHeld();
    for (let serial = 0; serial < 20; serial += 1) {
      open(String(serial), far(1_000 + 2 * serial));
      endpoint.with(String(serial), (leg) => leg.start());
      endpoint.setDirection(String(serial), 'inactive');
    }
    endpoint.setDirection('a', 'sendonly');
    const before = [sent(), passed.length];
    const firedBefore = clock.fired;
    clock.advance(60_000);
    expect(clock.fired - firedBefore).toBeLessThanOrEqual(4 * 61);
    expect([sent(), passed.length - before[1]!]).toEqual([before[0], 60]);
    expect(passed.reduce((sum, frames) => sum + frames, 0)).toBeGreaterThanOrEqual(59 * 50);
    expect(clock.pendingTimers).toBe(1);
    for (const callId of ['a', ...Array.from({ length: 20 }, (_, serial) => String(serial))]) endpoint.closeLeg(callId);
    expect(clock.pendingTimers).toBe(0);
  });

  it('[3550 §5.1] resume at once: the sequence continues, the timestamp follows the time, with the marker', async () => {
    const { clock, peer, sent } = await openHeld();
    await peer.until(() => peer.received.length === sent());
    const last = peer.received.at(-1)!.packet.header;
    // The last frame went out at 1,000 ms.
    expect(sent()).toBe(51);
    clock.advance(7);
    endpoint.setDirection('a', 'inactive');
    clock.advance(33_320);
    endpoint.setDirection('a', 'sendrecv');
    expect(sent()).toBe(52);
    clock.advance(100);
    expect(sent()).toBe(57);
    await peer.until(() => peer.received.length === 57);
    const after = peer.received.slice(51).map(({ packet }) => packet.header);
    expect(after.map(({ sequenceNumber }) => (sequenceNumber - last.sequenceNumber) & 0xffff)).toEqual([1, 2, 3, 4, 5, 6]);
    const ticks = after.map(({ timestamp }) => (timestamp - last.timestamp) >>> 0);
    expect(Math.abs(ticks[0]! - 33_327 * 8)).toBeLessThan(160);
    expect(ticks.map((tick) => tick - ticks[0]!)).toEqual([0, 160, 320, 480, 640, 800]);
    expect(after.map(({ marker }) => marker)).toEqual([true, false, false, false, false, false]);
  });

  it('are processed by the caller’s packets in the meantime', async () => {
    const { clock, passed, peer } = await openHeld();
    peer.connect(endpointAddress());
    endpoint.setDirection('a', 'sendonly');
    passed.length = 0;
    for (let packet = 1; packet <= 10; packet += 1) {
      clock.advance(20);
      peer.sendPacket(new Uint8Array(160));
      await expect.poll(() => endpoint.figures('a')?.packetsReceived).toBe(packet);
    }
    expect(passed).toEqual(Array(10).fill(1));
  });

  const endpointAddress = (): MediaAddress => ({ address: '127.0.0.1', rtpPort: FIRST, rtcpPort: FIRST + 1 });
});

describe('the next call of a peer on the same sockets', () => {
  const clock = new VirtualClock();

  beforeEach(() => {
    endpoint.close();
    endpoint = RtpEndpoint.open(
      { address: '127.0.0.1', rtpPorts: [FIRST], mediaTimeoutMs: 60_000 },
      { clock, log: silentLog, random32: () => 7, newAgent: () => AGENT },
    );
  });

  /** Packets of one call, and how many the leg took of them in the end. */
  async function send(callId: string, peer: TestPeer, packets: number): Promise<number> {
    const seen = (): number => {
      const { earlierCallPackets, strangerPackets } = endpoint.counters();
      let taken = 0;
      endpoint.with(callId, (leg) => (taken = leg.figures().packetsReceived));
      return taken + earlierCallPackets + strangerPackets;
    };
    const before = seen();
    for (let packet = 0; packet < packets; packet += 1) peer.sendPacket(new Uint8Array(160));
    await expect.poll(() => seen() - before).toBe(packets);
    let taken = 0;
    endpoint.with(callId, (leg) => (taken = leg.figures().packetsReceived));
    return taken;
  }

  it('[3550 §5.1] drops late packets of the call before for 2 s, and accepts another source at once', async () => {
    const peer = await newPeer();
    const at = open('a', peer.address);
    peer.connect(at);
    expect(await send('a', peer, 3)).toBe(3);
    endpoint.closeLeg('a');
    expect(open('b', peer.address)).toEqual(at);
    expect(await send('b', peer, 4)).toBe(0);
    expect(endpoint.counters()).toMatchObject({ earlierCallPackets: 4, strangerPackets: 0 });
    // The new call's own source, from the same port.
    peer.rtpSocket.send(rtpPacket({ sequenceNumber: 1, ssrc: 99 }), at.rtpPort, at.address);
    await expect.poll(() => received('b')).toBe(1);
    // 2 s later the same source is nothing strange: a caller may use one for all calls.
    clock.advance(1_999);
    expect(await send('b', peer, 2)).toBe(1);
    clock.advance(1);
    expect(await send('b', peer, 2)).toBe(3);
    expect(endpoint.counters().earlierCallPackets).toBe(6);
  });

  it('a call that moves away and back keeps hearing its own source', async () => {
    const [peer, other] = [await newPeer(), await newPeer()];
    const at = open('a', peer.address);
    peer.connect(at);
    await send('a', peer, 1);
    move('a', other.address);
    move('a', peer.address);
    expect(await send('a', peer, 2)).toBe(3);
    // Another call that moves to where this one was does not hear it.
    move('a', other.address);
    open('b', far(1_000));
    move('b', peer.address);
    expect(await send('b', peer, 2)).toBe(0);
    expect(endpoint.counters().earlierCallPackets).toBe(2);
  });

  function received(callId: string): number {
    let packets = 0;
    endpoint.with(callId, (leg) => (packets = leg.figures().packetsReceived));
    return packets;
  }
});

describe('a call that another process still owns', () => {
  const LEG: LegDescription = {
    callId: 'a',
    sipCallId: 'a',
    localRtpPort: FIRST + 4,
    remote: far(1_000),
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: null,
    srtp: null,
    carrierSuite: null,
    startsAs: 'sendrecv',
  };
  const DESCRIPTION = { kind: 'test-line' } as AgentDescription;
  let clock: VirtualClock;
  let own: RtpEndpoint;
  let hosts: AgentHost[];
  let starts: number[];
  let closed: number;

  beforeEach(() => {
    clock = new VirtualClock();
    [hosts, starts, closed] = [[], [], 0];
    const newAgent = (_description: unknown, host: AgentHost): LegAgent => {
      const index = hosts.push(host) - 1;
      return { ...AGENT, start: () => void starts.push(index), close: () => void (closed += 1) };
    };
    own = new RtpEndpoint(
      { address: '127.0.0.1', rtpPorts: [FIRST + 4], mediaTimeoutMs: 60_000 },
      { clock, log: silentLog, random32: () => 7, newAgent },
    );
  });

  afterEach(() => {
    own.close();
  });

  async function ahead(): Promise<LegEvent[]> {
    const events: LegEvent[] = [];
    own.openAhead(LEG, (event) => events.push(event));
    await own.connectAhead('a', DESCRIPTION, (event) => events.push(event));
    own.bind();
    return events;
  }

  it('gets its leg with the sockets, and its agent speaks as soon as the call is here', async () => {
    await ahead();
    clock.advance(100);
    expect([own.figures('a')?.packetsSent, starts]).toEqual([6, []]);
    own.openLeg(LEG, () => undefined);
    await own.connectAgent('a', DESCRIPTION, () => undefined);
    own.start('a');
    expect([own.figures('a')?.packetsSent, starts, hosts.length]).toEqual([6, [0], 1]);
  });

  it('gets another agent when the first one ended before', async () => {
    const events = await ahead();
    hosts[0]!.emit({ type: 'agent-hangup' });
    own.openLeg(LEG, () => undefined);
    await own.connectAgent('a', DESCRIPTION, (event) => events.push(event));
    own.start('a');
    expect([starts, closed, events]).toEqual([[1], 1, []]);
    hosts[1]!.emit({ type: 'agent-hangup' });
    expect(events).toEqual([{ type: 'agent-hangup' }]);
  });

  it('gets another leg when it has changed, and keeps its agent', async () => {
    await ahead();
    own.openLeg({ ...LEG, remote: far(2_000) }, () => undefined);
    await own.connectAgent('a', DESCRIPTION, () => undefined);
    own.start('a');
    expect([own.figures('a')?.packetsSent, starts, closed]).toEqual([0, [0], 0]);
  });

  it('leaves nothing when it ended in the meantime', async () => {
    await ahead();
    own.closeLeg('a');
    expect([own.figures('a'), closed, own.counters().legs]).toEqual([null, 1, 0]);
  });

  it('waits until all ports are free', () => {
    const other = RtpEndpoint.open(
      { address: '127.0.0.1', rtpPorts: [FIRST + 4], mediaTimeoutMs: 60_000 },
      { clock, log: silentLog, random32: () => 7, newAgent: () => AGENT },
    );
    expect(own.bindIfFree()).toBe(false);
    other.leave();
    expect([own.bindIfFree(), own.rtpPorts]).toEqual([true, [FIRST + 4]]);
  });
});
