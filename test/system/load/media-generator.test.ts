import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Server } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { meanOpinionScore } from '../../../src/rtp/quality.js';
import { middle32, ntpFromUnixMs } from '../../../src/rtp/ntp.js';
import { reserveMediaPorts } from '../../support/gateway.js';
import { EchoEnd, type Answering } from '../../support/load/echo-end.js';
import { MediaGenerator, refusalOf, type StartOptions } from '../../support/load/media-generator.js';

const FRAMES = 50;
const STAMP_BYTES = 17;
const SILENCE = 0xff;

let firstPort: number;
let lock: Server;
let generator: MediaGenerator;
const ends: EchoEnd[] = [];

beforeAll(async () => {
  ({ first: firstPort, lock } = await reserveMediaPorts());
  generator = await MediaGenerator.start(4, firstPort);
});

afterEach(() => {
  for (const end of ends.splice(0)) end.close();
});

afterAll(async () => {
  generator.kill();
  await new Promise((done) => lock.close(done));
});

/** A far end on ports above those of the generator, with a call to it. */
async function call(slot = 0, options: StartOptions = {}): Promise<EchoEnd> {
  const end = await EchoEnd.open(generator.slot(slot), firstPort + 100 + 2 * ends.length);
  ends.push(end);
  generator.call(slot, end.far, options);
  return end;
}

/** The figures of a call of which the first frames are answered so. */
async function figures(answering: Answering, options: StartOptions = {}): Promise<Readonly<Record<string, unknown>>> {
  const end = await call(0, options);
  await end.answer(FRAMES, answering);
  return generator.stop(0);
}

/** The number of the packet, from 0 on, in calls to one `Answering`. */
function numbered(answering: (number: number, ...args: Parameters<Answering>) => readonly Buffer[]): Answering {
  let number = -1;
  return (...args) => answering((number += 1), ...args);
}

const echo: Answering = ({ payload, payloadType }, end) => [end.packet(payload, payloadType)];
const isTenth = (number: number): boolean => number % 10 === 4;
const CLEAN = {
  received: FRAMES,
  expected: FRAMES,
  lost: 0,
  out_of_order: 0,
  duplicates: 0,
  rejected: 0,
  strangers: 0,
  dropped: 0,
  unsent: 0,
  tone: 'heard',
};

describe('the media generator’s figures of a call', () => {
  it.each([
    ['PCMU', 0 as const],
    ['PCMA', 8 as const],
  ])('have no loss, its own tone, the delay, and the score of both for an echo (%s)', async (_codec, payloadType) => {
    const said = await figures(echo, { payloadType });
    expect(said).toMatchObject({ ...CLEAN, slot: 0, digits: '', digits_answered: 0 });
    expect(said['sent']).toBeGreaterThan(FRAMES);
    expect(said['seconds']).toBeGreaterThan(1);
    const delay = said['delay_ms'] as Record<'p50' | 'p99' | 'max', number>;
    expect(delay.p50).toBeGreaterThan(0);
    expect(delay.p50).toBeLessThanOrEqual(delay.p99);
    expect(delay.p99).toBeLessThanOrEqual(delay.max);
    expect(said['mos']).toBeCloseTo(meanOpinionScore({ lossRate: 0, delayMs: delay.p50 / 2 }), 2);
  });

  it.each([
    ['each tenth packet is lost', (number: number, made: Buffer[]) => (isTenth(number) ? [] : made), { received: 45, lost: 5 }],
    ['each tenth packet comes twice', (number: number, made: Buffer[]) => (isTenth(number) ? [...made, ...made] : made), { duplicates: 5 }],
    [
      'each tenth packet is damaged, and so lost',
      (number: number, made: Buffer[]) => (isTenth(number) ? made.map(damaged) : made),
      { received: 45, lost: 5, rejected: 5 },
    ],
  ])('show when %s', async (_what, then, more) => {
    const said = await figures(numbered((number, packet, end) => then(number, [...echo(packet, end)])));
    expect(said).toMatchObject({ ...CLEAN, ...more });
    const delayMs = (said['delay_ms'] as { p50: number }).p50 / 2;
    expect(said['mos']).toBeCloseTo(meanOpinionScore({ lossRate: Number(said['lost']) / FRAMES, delayMs }), 2);
  });

  it('show when each tenth packet comes after the one that follows it', async () => {
    const held: Buffer[] = [];
    const said = await figures(
      numbered((number, packet, end) => {
        const made = echo(packet, end);
        if (!isTenth(number)) return [...made, ...held.splice(0)];
        held.push(...made);
        return [];
      }),
    );
    expect(said).toMatchObject({ ...CLEAN, out_of_order: 5 });
  });

  it('have the jitter of RFC 3550: it grows with the difference of transits, far beyond the machine’s own', async () => {
    const even = await figures(echo);
    // The timestamp of every second packet is four seconds on.
    const odd = await figures(
      numbered((number, packet, end) => {
        if (number % 2 === 1) for (let unsent = 0; unsent < 200; unsent += 1) end.packet(packet.payload);
        return echo(packet, end);
      }),
    );
    expect(odd['jitter_ms']).toBeGreaterThan(1_000);
    expect(even['jitter_ms']).toBeLessThan(Number(odd['jitter_ms']) / 2);
  });

  it('have no delay, score or tone when nothing comes back', async () => {
    expect(await figures(() => [])).toMatchObject({ received: 0, expected: 0, lost: 0, delay_ms: null, mos: null, tone: 'silent' });
  });

  it('count packets from another address and leave them out', async () => {
    const other = createSocket('udp4').bind(0, '127.0.0.1');
    await once(other, 'listening');
    const said = await figures(
      numbered((number, packet, end) => {
        const made = echo(packet, end);
        if (!isTenth(number)) return made;
        for (const copy of made) void end.send(copy, other);
        return [];
      }),
    );
    other.close();
    expect(said).toMatchObject({ ...CLEAN, received: 45, lost: 5, strangers: 5 });
  });
});

describe('the tone that comes back to the media generator', () => {
  /** As a transcoder or another framing does it: the stamps are gone. */
  const unstamped: Answering = ({ payload }, end) => [
    end.packet(Buffer.concat([Buffer.alloc(STAMP_BYTES, SILENCE), payload.subarray(STAMP_BYTES)])),
  ];

  it('counts as its own without any stamp, but then without a delay', async () => {
    expect(await figures(unstamped)).toMatchObject({ ...CLEAN, delay_ms: null });
  });

  it.each([1, 80, 150])('counts as its own, with a delay, in frames that begin %i samples later', async (shift) => {
    let tail = Buffer.alloc(shift, SILENCE);
    const said = await figures(({ payload }, end) => {
      const both = Buffer.concat([tail, payload]);
      tail = both.subarray(160);
      return [end.packet(both.subarray(0, 160))];
    });
    expect(said).toMatchObject(CLEAN);
    expect((said['delay_ms'] as { p50: number }).p50).toBeGreaterThan(0);
  });

  it.each([
    ['stamped', echo],
    ['without stamps', unstamped],
  ])('counts as another slot’s: %s', async (_what, answering) => {
    const [mine, other] = [await call(0), await call(1)];
    other.answering = (packet) => {
      for (const made of answering(packet, mine)) void mine.send(made);
      return [];
    };
    await other.hears(FRAMES);
    other.answering = () => [];
    expect(await generator.stop(0)).toMatchObject({ tone: 'wrong', lost: 0 });
    expect(await generator.stop(1)).toMatchObject({ tone: 'silent', received: 0 });
  });

  it('counts as silence when it is noise', async () => {
    expect(await figures((_packet, end) => [end.packet(noise())])).toMatchObject({ ...CLEAN, tone: 'silent' });
  });
});

describe('the media generator’s digits', () => {
  const EVENT = 101;

  it('[4733 §2.5.1.4] last 100 ms, have three end packets, and each waits for the answer to the one before', async () => {
    const end = await call(0, { digits: '1#' });
    let speechFrames = 0;
    end.answering = (packet) => {
      // As the test line does: half a second of speech for each key, else an echo.
      if (packet.payloadType === EVENT && packet.marker) speechFrames = 25;
      if (packet.payloadType === EVENT) return [];
      speechFrames -= 1;
      return [end.packet(speechFrames > 0 ? noise() : packet.payload)];
    };
    await end.heard.until((all) => (all.filter(({ payloadType }) => payloadType === EVENT).length === 14 ? true : undefined));
    await end.hears(100);
    expect(await generator.stop(0)).toMatchObject({ digits: '1#', digits_answered: 2, tone: 'heard', lost: 0 });
    const events = end.heard.all.filter(({ payloadType }) => payloadType === EVENT);
    const durations = [160, 320, 480, 640, 800, 800, 800];
    expect(events.map(({ payload }) => [payload[0], (payload[1] ?? 0) >> 7, payload.readUInt16BE(2)])).toEqual(
      [1, 11].flatMap((event) => durations.map((duration, index) => [event, index >= 4 ? 1 : 0, duration])),
    );
    expect(events.map(({ marker }) => marker)).toEqual([...events.keys()].map((index) => index % 7 === 0));
    expect(new Set(events.slice(0, 7).map(({ rtpTimestamp }) => rtpTimestamp)).size).toBe(1);
    const numbers = end.heard.all.map(({ sequenceNumber }) => sequenceNumber);
    expect(numbers.slice(1).every((number, index) => number === (((numbers[index] ?? 0) + 1) & 0xffff))).toBe(true);
  });

  it('count as unanswered after an echo or silence', async () => {
    const end = await call(0, { digits: '5' });
    await end.answer(60, echo);
    await end.answer(60, (_packet, to) => [to.packet(Buffer.alloc(160, SILENCE))]);
    expect(await generator.stop(0)).toMatchObject({ digits: '5', digits_answered: 0 });
  });
});

describe('the media generator’s RTCP', () => {
  it('[3550 §6.4.1] reports what was sent and received on the port above, and reads the far end’s report', async () => {
    const end = await call();
    end.answering = numbered((number, packet, to) => (isTenth(number) ? (to.packet(packet.payload), []) : echo(packet, to)));
    const [report] = await end.reports.at(0);
    if (report?.type !== 'SR') throw new Error('no sender report');
    expect(report.sender).toMatchObject({ packets: 25, octets: 25 * 160 });
    expect(report.blocks).toMatchObject([{ ssrc: 0x5eed, cumulativeLost: expect.closeTo(2, 0) as number, lastSenderReport: 0 }]);
    const ours = { ssrc: report.ssrc, fractionLost: 0, cumulativeLost: 3, extendedHighestSequence: 1, jitterTicks: 0 };
    const block = { ...ours, lastSenderReport: middle32(report.sender.ntp), delaySinceLastSenderReport: 0 };
    const ntp = ntpFromUnixMs(Date.now());
    const sender = { ntp, rtpTimestamp: 0, packets: 20, octets: 3_200 };
    end.sendReport({ ssrc: 0x5eed, sender, blocks: [block], cname: 'far', isBye: false });
    const [second] = await end.reports.at(1);
    if (second?.type !== 'SR') throw new Error('no sender report');
    expect(second.blocks).toMatchObject([{ lastSenderReport: middle32(ntp) }]);
    // The reports are 5 s apart.
    expect((second.blocks[0]?.delaySinceLastSenderReport ?? 0) / 65_536).toBeGreaterThan(4);
    const said = await generator.stop(0);
    expect(said).toMatchObject({ rtcp_received: 1, remote_lost: 3 });
    expect(said['round_trip_ms']).toBeGreaterThanOrEqual(0);
  });
});

describe('the media generator, when it is late itself,', () => {
  it('counts packets that the kernel dropped while it slept as dropped and not as lost', async () => {
    const end = await call();
    await end.answer(10, echo);
    generator.child.kill('SIGSTOP');
    const flood = 3_000;
    for (let i = 0; i < flood; i += 1) await end.send(end.packet(noise()));
    generator.child.kill('SIGCONT');
    // Its buffer is empty again when it sends.
    await end.answer(10, echo);
    const said = await generator.stop(0);
    expect(said['dropped']).toBeGreaterThan(500);
    expect(said).toMatchObject({ expected: flood + 20, received: flood + 20 - Number(said['dropped']), lost: 0 });
  });

  it('keeps late packets of a call that ended out of the next one', async () => {
    const old = await call();
    await old.answer(10, echo);
    await generator.stop(0);
    const next = await call();
    await next.answer(20, (packet, end) => {
      void old.send(old.packet(packet.payload));
      return echo(packet, end);
    });
    expect(await generator.stop(0)).toMatchObject({ received: 20, rejected: 0, strangers: 0, tone: 'heard' });
    expect(new Set([...old.heard.all, ...next.heard.all].map(({ ssrc }) => ssrc)).size).toBe(2);
  });
});

describe('the media generator’s command line', () => {
  const KEY = 'A'.repeat(40);
  it.each([
    ['dance', 'the commands are start, stop and quit'],
    ['', 'the commands are start, stop and quit'],
    ['stop 4', 'stop: the slot is not a number from 0 to 3'],
    ['stop 0', 'stop: slot 0 has no call'],
    ['start 0', 'start takes <slot> <address> <port> <key> <payload type> <telephone-event payload type or -> <digits or ->'],
    [`start -1 127.0.0.1 4000 ${KEY} 0 101 -`, 'start: the slot is not a number from 0 to 3'],
    [`start 0 example.org 4000 ${KEY} 0 101 -`, 'start: slot 0: the address is no IP address of the family of --address'],
    [`start 0 ::1 4000 ${KEY} 0 101 -`, 'start: slot 0: the address is no IP address of the family of --address'],
    [`start 0 127.0.0.1 65535 ${KEY} 0 101 -`, 'start: the port is not a number from 1 to 65534'],
    [`start 0 127.0.0.1 4000 ${KEY.slice(1)} 0 101 -`, 'start: the key is not 30 bytes in base64'],
    [`start 0 127.0.0.1 4000 ${KEY.slice(1)}= 0 101 -`, 'start: the key is not 30 bytes in base64'],
    [`start 0 127.0.0.1 4000 ${KEY} 9 101 -`, 'start: the payload type is neither 0 (PCMU) nor 8 (PCMA)'],
    [`start 0 127.0.0.1 4000 ${KEY} 0 95 -`, 'start: the telephone-event payload type is neither - nor a number from 96 to 127'],
    [`start 0 127.0.0.1 4000 ${KEY} 0 101 E`, 'start: the digits are neither - nor 1 to 32 of 0-9, *, #, A-D'],
    [`start 0 127.0.0.1 4000 ${KEY} 0 - 1`, 'start: digits need a telephone-event payload type'],
    ['x'.repeat(100_000), 'a command has at most 512 bytes'],
  ])('refuses "%s" with: %s', async (line, text) => {
    generator.say(line);
    expect(await generator.next('error')).toEqual({ event: 'error', text });
  });

  it('refuses a second call in a slot', async () => {
    const end = await call();
    generator.call(0, end.far);
    expect(await generator.next('error')).toEqual({ event: 'error', text: 'start: slot 0 has a call' });
    await end.answer(FRAMES, echo);
    expect(await generator.stop(0)).toMatchObject(CLEAN);
  });

  it.each([
    [[], '--address is missing'],
    [['--address', '127.0.0.1', '--port-min', 40_000, '--port-max', 40_100, '--slots', 5_000], '--slots is not a number that it may be'],
    [['--address', 'here', '--port-min', 40_000, '--port-max', 40_100, '--slots', 1], '--address is no IP address'],
    [['--volume', 11], '--volume is not known'],
  ])('refuses the flags %j with an error', async (flags, text) => {
    const { code, text: said } = await refusalOf(flags);
    expect([code === 0, said]).toEqual([false, expect.stringContaining(`media-generator: ${text}`)]);
  });

  it('leaves out pairs of ports that are taken, and fails when too few are left', async () => {
    const taken = createSocket('udp4');
    taken.bind({ address: '127.0.0.1', port: firstPort + 203, exclusive: true });
    await once(taken, 'listening');
    const other = await MediaGenerator.start(2, firstPort + 200, firstPort + 205);
    expect(other.slots.map(({ port }) => port - firstPort)).toEqual([200, 204]);
    const flags = ['--address', '127.0.0.1', '--port-min', firstPort + 200, '--port-max', firstPort + 206, '--slots', 2];
    expect((await refusalOf(flags)).text).toContain('only 0 pairs of ports are free from --port-min to --port-max');
    await other.quit();
    taken.close();
  });
});

// The last one: it ends the generator.
describe('the media generator’s totals', () => {
  it('cover two slots that talk to each other, which is cross-talk, and all calls', async () => {
    const [first, second] = [generator.slot(2), generator.slot(3)];
    generator.call(2, second);
    generator.call(3, first);
    const seen = await generator.coming('second', ({ calls, received }) => calls === 2 && Number(received) > 90);
    expect(seen).toMatchObject({ lost: 0, dropped: 0 });
    expect(seen['late_ms']).toBeGreaterThanOrEqual(0);
    const before = await generator.stop(2);
    const total = await generator.quit();
    const after = await generator.next('call', ({ slot }) => slot === 3);
    expect([before, after]).toMatchObject([
      { tone: 'wrong', lost: 0, delay_ms: null },
      { tone: 'wrong', lost: 0, delay_ms: null },
    ]);
    expect(total['calls']).toBeGreaterThanOrEqual(2);
    expect(total['received']).toBeGreaterThanOrEqual(Number(before['received']) + Number(after['received']));
    expect(total['tones']).toMatchObject({ wrong: expect.any(Number) as number });
  });
});

function damaged(packet: Buffer): Buffer {
  const copy = Buffer.from(packet);
  copy[20] = (copy[20] ?? 0) ^ 1;
  return copy;
}

/** Loud, and no tone. */
function noise(): Buffer {
  return Buffer.from(Uint8Array.from({ length: 160 }, () => (Math.random() < 0.5 ? 0x90 : 0x10) + Math.floor(Math.random() * 32)));
}
