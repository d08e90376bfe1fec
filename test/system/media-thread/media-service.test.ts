import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtInGreeting, digitPhrase, goodbyePhrase } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import type { AgentDescription } from '../../../src/gateway/model/agent.js';
import type { LegChange, LegDescription, LegEvent, MediaAddress, SrtpKeys } from '../../../src/gateway/model/media.js';
import type { RtcpSeen } from '../../../src/lib/observed.js';
import { silentLog } from '../../../src/lib/log.js';
import { levelDbfs } from '../../../src/rtp/codec/level.js';
import { throughG711 } from '../../../src/rtp/codec/g711.js';
import { parseRtcpCompound } from '../../../src/rtp/rtcp-packet.js';
import type { MediaService, MediaServiceOptions } from '../../../src/gateway/media-thread/media-service.js';
import { generateSrtpKey } from '../../../src/srtp/srtp.js';
import { createMediaService, MediaUnavailableError } from '../../support/built.js';
import { AGENT_LIMITS } from '../../support/media/agent-limits.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { endOfPhrase, hearsSomeOf } from '../../support/media/pieces.js';
import { TestPeer } from '../../support/media/test-peer.js';
import { freeRange } from '../../support/ports.js';
import { VirtualClock } from '../../support/virtual-clock.js';

// Real sockets on loopback, the real worker thread, the real espeak-ng; no rtpengine.

/** One pair of sockets for each worker. */
async function optionsOf(changes: Partial<MediaServiceOptions> = {}): Promise<MediaServiceOptions> {
  const { workers = 1 } = changes;
  const portMin = await freeRange(2 * workers);
  const portMax = portMin + 2 * workers - 1;
  return { address: '127.0.0.1', portMin, portMax, workers, mediaTimeoutMs: 60_000, agents: AGENT_LIMITS, ...changes };
}

const GREETING = 'Hello, this is Trunkline.';

const speech = new EspeakSpeech();
const said = (text: string): Promise<Int16Array> => speech.synthesize({ text, language: 'ENG' }, []);

interface Call {
  readonly peer: TestPeer;
  /** The endpoint's side. */
  readonly local: MediaAddress;
  readonly events: LegEvent[];
}

function describeLeg(callId: string, peer: TestPeer, localRtpPort: number, changes: Partial<LegDescription> = {}): LegDescription {
  return {
    callId,
    sipCallId: `${callId}@carrier`,
    localRtpPort,
    remote: peer.address,
    codec: 'PCMU',
    payloadType: changes.codec === 'PCMA' ? 8 : 0,
    telephoneEventPayloadType: 101,
    srtp: null,
    carrierSuite: null,
    ...changes,
  };
}

/** The far side is elsewhere. */
const movedTo = ({ address }: TestPeer): LegChange => ({
  remote: address,
  srtp: null,
  format: { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101 },
});

const LINE: AgentDescription = {
  kind: 'test-line',
  accountSid: '',
  firstSentence: GREETING,
  language: 'ENG',
  voice: null,
  pronunciationGuide: [],
};

async function openCall(service: MediaService, callId: string, changes: Partial<LegDescription> = {}, agent = LINE): Promise<Call> {
  const peer = await TestPeer.open({ codec: changes.codec ?? 'PCMU', srtp: changes.srtp ?? null });
  const events: LegEvent[] = [];
  const onEvent = (event: LegEvent): void => {
    // What the line writes down of the conversation is tested with the line itself.
    if (event.type !== 'agent-request') events.push(event);
  };
  await service.connectAgent(callId, agent, onEvent);
  const local = await service.reserve(callId);
  await service.open(describeLeg(callId, peer, local.rtpPort, changes), onEvent);
  peer.connect(local);
  return { peer, local, events };
}

/** Waits until this much audio was heard, in seconds. */
function heardFor({ peer }: Call, seconds: number): Promise<void> {
  return peer.until(() => peer.heard.length >= seconds * 8_000);
}

/** Waits for a phrase in what is heard after `from` samples; returns where it ends. */
async function heardPhrase({ peer }: Call, phrase: Int16Array, from: number): Promise<number> {
  let end = -1;
  let looked = 0;
  await peer.until(() => {
    const { heard } = peer;
    if (heard.length - looked < 1_600) return false;
    looked = heard.length;
    end = endOfPhrase(heard.subarray(from), phrase);
    return end >= 0;
  });
  return from + end;
}

/** Speaks, never the same twice, until some of it comes back. Returns what was said. */
async function speakUntilEchoed({ peer }: Call, codec: 'PCMU' | 'PCMA', seed: number): Promise<Int16Array> {
  const from = peer.heard.length;
  let said = new Int16Array(0);
  for (let part = 0; !hearsSomeOf(peer.heard.subarray(from), said); part += 1) {
    const voice = voiceLikeNoise(3_200, seed + 100 * part);
    await peer.speak(voice);
    said = Int16Array.from([...said, ...throughG711(codec, voice)]);
  }
  return said;
}

/** Presses a key and waits until it is read back. */
async function pressUntilRead(call: Call, key: number): Promise<void> {
  const from = call.peer.heard.length;
  await call.peer.press(key);
  await heardPhrase(call, throughG711('PCMU', await said(digitPhrase(key, 'ENG').text)), from);
}

describe('a media service over loopback', () => {
  let service: MediaService;
  let rtpPort: number;

  beforeAll(async () => {
    const options = await optionsOf();
    rtpPort = options.portMin;
    service = await createMediaService(options, silentLog);
  });
  afterAll(() => service.shutdown());

  it('keeps its pace while the main thread is busy for a second', async () => {
    const call = await openCall(service, 'paced');
    service.send('paced', { do: 'start' });
    await heardFor(call, 0.2);
    const before = (await service.figures('paced'))!.packetsSent;
    const busyUntilMs = performance.now() + 1_000;
    while (performance.now() < busyUntilMs);
    // With pacing in this thread it would be not one packet.
    expect((await service.close('paced'))!.packetsSent - before).toBeGreaterThan(20);
    await call.peer.close();
  });

  // Both at once: their audio takes its time.
  it.concurrent.each([
    ['plain PCMU', 'PCMU', null],
    ['SRTP PCMA', 'PCMA', { send: generateSrtpKey(), receive: generateSrtpKey() }],
  ] as const)(
    'greets, echoes the caller, reads back 1 and 2, and asks for the hang-up on #, with %s',
    async (name, codec, srtp: SrtpKeys | null) => {
      const call = await openCall(service, name, { codec, srtp });
      const { peer, events } = call;
      service.send(name, { do: 'start' });
      await heardPhrase(call, throughG711(codec, await said(GREETING)), 0);
      await speakUntilEchoed(call, codec, 7);

      const before = peer.heard.length;
      await peer.press(1);
      await peer.press(2);
      await peer.press(11);
      const one = await heardPhrase(call, throughG711(codec, await said(digitPhrase(1, 'ENG').text)), before);
      const two = await heardPhrase(call, throughG711(codec, await said(digitPhrase(2, 'ENG').text)), one);
      await heardPhrase(call, throughG711(codec, await said(goodbyePhrase('ENG').text)), two);
      await peer.until(() => events.at(-1)?.type === 'agent-hangup');

      expect(events.map((event) => (event.type === 'digit' ? event.event : event.type))).toEqual([
        'media-started',
        1,
        2,
        11,
        'agent-hangup',
      ]);
      const press = events.find((event) => event.type === 'digit')!;
      expect(press.durationMs).toBe(100);
      const figures = await service.close(name);
      expect(figures).toMatchObject({ packetsReceived: peer.packetsSent, packetsLost: 0, digitsReceived: 3 });
      expect(figures!.packetsSent).toBe(peer.received.length);
      await peer.close();
    },
  );

  it('[3550 §6.4] sends SR on the RTCP port with true counts, and computes the round trip from the answer', async () => {
    const call = await openCall(service, 'rtcp');
    const { peer } = call;
    service.send('rtcp', { do: 'start' });
    await peer.speak(voiceLikeNoise(3_200, 1));
    peer.sendReport();
    await peer.until(() => peer.reports.length > 0);
    const { sr, types } = peer.reports[0]!;
    expect(types).toEqual([200, 202]);
    expect(sr!.senderInfo.packetCount).toBeGreaterThan(20);
    expect(sr!.senderInfo.octetCount).toBe(sr!.senderInfo.packetCount * 160);
    expect(Math.abs(Number(sr!.senderInfo.ntpTimestamp >> 32n) - 2_208_988_800 - Date.now() / 1_000)).toBeLessThan(3_600);
    const block = sr!.reports[0]!;
    expect(block.ssrc).toBe(peer.ssrc);
    expect(block.packetsLost).toBe(0);
    expect(block.lsr).not.toBe(0);
    expect(block.dlsr).toBeGreaterThan(0);
    peer.sendReport();
    peer.sendPacket(new Uint8Array(160));
    await heardFor(call, peer.heard.length / 8_000 + 0.1);
    const figures = await service.close('rtcp');
    expect(figures!.roundTripMs).toBeGreaterThanOrEqual(0);
    await peer.until(() => peer.reports.at(-1)!.types.includes(203));
    expect(peer.reports.at(-1)!.types).toEqual([200, 202, 203]);
    expect(peer.reports.at(-1)!.sr!.senderInfo.packetCount).toBe(figures!.packetsSent);
    await peer.close();
  });

  it('keeps two calls on one pair of sockets apart, and drops and counts a stranger', async () => {
    const [a, b] = [await openCall(service, 'a'), await openCall(service, 'b')];
    const stranger = await TestPeer.open();
    stranger.connect({ address: '127.0.0.1', rtpPort, rtcpPort: rtpPort + 1 });
    const before = await service.counters();
    for (const callId of ['a', 'b']) service.send(callId, { do: 'start' });
    // Digit 5 cuts the greeting short on both.
    await Promise.all([pressUntilRead(a, 5), pressUntilRead(b, 5)]);
    const unheard = voiceLikeNoise(6_400, 23);
    const [ofA, ofB] = await Promise.all([speakUntilEchoed(a, 'PCMU', 21), speakUntilEchoed(b, 'PCMU', 22), stranger.speak(unheard)]);
    for (const [{ peer }, others] of [
      [a, [ofB, unheard]],
      [b, [ofA, unheard]],
    ] as const) {
      for (const voice of others) expect(hearsSomeOf(peer.heard, voice)).toBe(false);
    }
    expect(stranger.received).toEqual([]);
    await expect.poll(async () => (await service.counters()).strangerPackets - before.strangerPackets).toBe(40);
    expect(await service.counters()).toMatchObject({ kernelDrops: 0, earlierCallPackets: 0 });
    // The least that Linux grants unless it is told otherwise is some 100 kB.
    expect(before.receiveBufferBytes).toBeGreaterThan(50_000);
    expect((await service.counters()).legs).toBe(2);
    expect((await service.close('a'))!.packetsReceived).toBe(a.peer.packetsSent);
    expect(await service.close('a')).toBeNull();
    expect((await service.close('b'))!.digitsReceived).toBe(1);
    await Promise.all([a.peer.close(), b.peer.close(), stranger.close()]);
  });

  it('sends nothing before start and while held, and resumes with the marker of a new talkspurt', async () => {
    const call = await openCall(service, 'hold');
    const { peer } = call;
    await peer.speak(voiceLikeNoise(1_600, 3));
    await peer.until(() => call.events.length > 0);
    expect(call.events).toEqual([{ type: 'media-started' }]);
    expect(peer.received).toEqual([]);
    service.send('hold', { do: 'start' });
    await peer.until(() => peer.received.length >= 10);
    service.send('hold', { do: 'direct', direction: 'sendonly' });
    const atHold = (await service.figures('hold'))!.packetsSent;
    await peer.speak(voiceLikeNoise(3_200, 4));
    expect((await service.figures('hold'))!.packetsSent).toBe(atHold);
    service.send('hold', { do: 'direct', direction: 'sendrecv' });
    await peer.until(() => peer.received.length >= atHold + 10);
    const marked = peer.received.filter(({ packet }) => packet.header.marker);
    expect(marked).toHaveLength(2);
    const [first, second] = marked.map(({ packet }) => packet.header);
    // About 200 ms of packets and 400 ms of hold: time passes on the RTP clock, sequence numbers do not.
    const elapsedMs = ((second!.timestamp - first!.timestamp) | 0) / 8;
    expect(elapsedMs).toBeGreaterThan(500);
    const packets = peer.received.map(({ packet }) => packet.header.sequenceNumber);
    packets.forEach((sequenceNumber, i) => expect((sequenceNumber - packets[0]!) & 0xffff).toBe(i));
    expect((await service.close('hold'))!.firstAudioMs).toBe(0);
    await peer.close();
  });

  it('sends digits as telephone-events that differ by timestamp, each with three end packets', async () => {
    const call = await openCall(service, 'dtmf-out');
    const { peer } = call;
    service.send('dtmf-out', { do: 'start' });
    for (const event of [3, 3]) service.send('dtmf-out', { do: 'send-digit', event, durationMs: 100 });
    const ends = (): Buffer[] =>
      peer.received
        .filter(({ packet }) => packet.header.payloadType === 101 && (packet.payload[1]! & 0x80) !== 0)
        .map((p) => p.packet.payload);
    await peer.until(() => ends().length === 6);
    expect(ends().every((payload) => payload[0] === 3 && payload.readUInt16BE(2) === 800)).toBe(true);
    const timestamps = new Set(peer.received.filter((p) => p.packet.header.payloadType === 101).map((p) => p.packet.header.timestamp));
    expect(timestamps.size).toBe(2);
    await service.close('dtmf-out');
    await peer.close();
  });

  it('refuses a second leg of a call; a leg with the same peer, or without a literal address, is lost at once', async () => {
    const call = await openCall(service, 'one');
    const lost: string[] = [];
    const open = (callId: string, changes: Partial<LegDescription>): Promise<unknown> =>
      service.open(describeLeg(callId, call.peer, call.local.rtpPort, changes), ({ type }) => lost.push(`${callId} ${type}`));
    await expect(open('one', {})).rejects.toThrow(MediaUnavailableError);
    await open('two', {});
    await open('three', { remote: { address: 'localhost', rtpPort: 4_000, rtcpPort: 4_001 } });
    await expect.poll(() => lost).toEqual(['two media-lost', 'three media-lost']);
    expect((await service.counters()).legs).toBe(1);
    expect([await service.close('two'), await service.close('three'), service.legs]).toEqual([null, null, 1]);
    await service.close('one');
    await call.peer.close();
  });
});

describe('a media service', () => {
  it('reserves a port before the far side is known, opens a leg on an earlier port, and moves the far side, each in its worker', async () => {
    const options = await optionsOf({ workers: 2 });
    const service = await createMediaService(options, silentLog);
    const [first, moved] = [await TestPeer.open(), await TestPeer.open()];
    const open = (callId: string, rtpPort: number): Promise<void> => service.open(describeLeg(callId, first, rtpPort), () => undefined);
    const at = await service.reserve('late');
    expect(service.legs).toBe(1);
    await expect(service.reserve('late')).rejects.toThrow(MediaUnavailableError);
    await open('late', at.rtpPort);
    service.send('late', { do: 'start' });
    await first.until(() => first.received.length > 3);
    await service.change('late', movedTo(moved));
    await moved.until(() => moved.received.length > 3);
    // The old peer's port is free for a call that a gateway which was killed had there.
    await open('resumed', at.rtpPort);
    await expect(open('elsewhere', options.portMin - 2)).rejects.toThrow(MediaUnavailableError);
    await expect(service.change('late', movedTo(first))).rejects.toThrow('the peer has another leg');
    await expect(service.change('nobody', movedTo(first))).rejects.toThrow(MediaUnavailableError);
    await service.reserve('unused');
    expect([await service.close('unused'), (await service.close('late'))?.packetsReceived, service.legs]).toEqual([null, 0, 1]);
    // In both workers all is free again.
    await service.close('resumed');
    for (let serial = 0; serial < 128; serial += 1) await service.reserve(String(serial));
    await expect(service.reserve('more')).rejects.toThrow(MediaUnavailableError);
    await service.shutdown();
    await Promise.all([first.close(), moved.close()]);
  });

  it.each([null, { send: generateSrtpKey(), receive: generateSrtpKey() }])(
    'reports the RTCP of both directions in clear, also the BYE of a closed leg',
    async (srtp) => {
      const told: RtcpSeen[] = [];
      const options = await optionsOf({ onRtcp: (seen) => told.push(seen) });
      const service = await createMediaService(options, silentLog);
      const call = await openCall(service, 'told', { srtp });
      const { address } = call.peer;
      service.send('told', { do: 'start' });
      await call.peer.speak(voiceLikeNoise(1_600, 1));
      call.peer.sendReport();
      const own = { address: '127.0.0.1', port: options.portMin + 1 };
      const peer = { address: address.address, port: address.rtcpPort };
      const shown = (): string[] =>
        told.map(({ sipCallId, from, to, packet }) => {
          const parsed = parseRtcpCompound(packet);
          return `${sipCallId} ${JSON.stringify([from, to])} ${parsed.ok ? parsed.value.map(({ type }) => type).join() : 'not clear'}`;
        });
      const incoming = `told@carrier ${JSON.stringify([peer, own])} `;
      const outgoing = `told@carrier ${JSON.stringify([own, peer])} `;
      await expect.poll(shown).toEqual(expect.arrayContaining([expect.stringContaining(incoming)]));
      // A leg that has sent nothing says no goodbye.
      await call.peer.until(() => call.peer.received.length > 0);
      await service.close('told');
      await expect.poll(() => shown().at(-1)).toBe(`${outgoing}SR,SDES,BYE`);
      expect(shown().every((one) => (one.startsWith(incoming) || one.startsWith(outgoing)) && !one.includes('not clear'))).toBe(true);
      expect(told.every(({ atMs }) => Math.abs(atMs - Date.now()) < 30_000)).toBe(true);
      await service.shutdown();
      await call.peer.close();
    },
  );

  it('reports media-timeout once when the caller falls silent, but not while held', async () => {
    const service = await createMediaService(await optionsOf({ mediaTimeoutMs: 300 }), silentLog);
    const [quiet, held] = [await openCall(service, 'quiet'), await openCall(service, 'held')];
    service.send('held', { do: 'direct', direction: 'sendonly' });
    service.send('quiet', { do: 'start' });
    service.send('held', { do: 'start' });
    await quiet.peer.until(() => quiet.events.length > 0);
    await heardFor(quiet, 0.8);
    expect(quiet.events).toEqual([{ type: 'media-timeout' }]);
    expect(held.events).toEqual([]);
    await service.shutdown();
    await Promise.all([quiet.peer.close(), held.peer.close()]);
  });

  it('reports the calls of a worker that dies, and replaces it', async () => {
    const workers: Worker[] = [];
    const collect = (worker: Worker): void => void workers.push(worker);
    process.on('worker', collect);
    const service = await createMediaService(await optionsOf({ workers: 2 }), silentLog);
    process.off('worker', collect);
    expect(workers).toHaveLength(2);
    const calls = [await openCall(service, 'x'), await openCall(service, 'y')];
    await workers[0]!.terminate();
    expect(calls.map((call) => call.events)).toEqual([[{ type: 'media-lost' }], []]);
    expect(await service.close('x')).toBeNull();
    expect(service.capacity).toBe(64);
    for (const call of calls) await call.peer.close();
    await expect.poll(() => service.capacity).toBe(128);
    const again = [await openCall(service, 'x'), await openCall(service, 'z')];
    expect((await service.counters()).workerRestarts).toBe(1);
    await service.shutdown();
    for (const call of again) await call.peer.close();
  });

  it('opens the leg of a dead worker at the same port as soon as the next one runs', async () => {
    const workers: Worker[] = [];
    const collect = (worker: Worker): void => void workers.push(worker);
    process.on('worker', collect);
    const service = await createMediaService(await optionsOf(), silentLog);
    process.off('worker', collect);
    const { peer, local, events } = await openCall(service, 'x');
    await workers[0]!.terminate();
    expect(events).toEqual([{ type: 'media-lost' }]);
    const leg = describeLeg('x', peer, local.rtpPort);
    await service.open(leg, (event) => events.push(event));
    service.send('x', { do: 'start' });
    const heardBefore = peer.heard.length;
    await peer.until(() => peer.heard.length >= heardBefore + 800);
    await service.connectAgent('x', LINE, () => undefined);
    service.send('x', { do: 'start' });
    await peer.until(() => levelDbfs(peer.heard.subarray(-1_600)) > -60);
    await service.shutdown();
    await peer.close();
  });

  it('refuses a leg that waits for the next worker at shutdown, or after 10 s', async () => {
    const clock = new VirtualClock();
    const workers: Worker[] = [];
    const collect = (worker: Worker): void => void workers.push(worker);
    process.on('worker', collect);
    const options = await optionsOf();
    const service = await createMediaService(options, silentLog, clock);
    process.off('worker', collect);
    const peer = await TestPeer.open({ codec: 'PCMU', srtp: null });
    await workers[0]!.terminate();
    const waiting = [1, 2].map((count) => service.open(describeLeg(`x${String(count)}`, peer, options.portMin), () => undefined));
    const refused = expect(Promise.all(waiting)).rejects.toThrow(MediaUnavailableError);
    clock.advance(10_000);
    await refused;
    const last = service.open(describeLeg('y', peer, options.portMin), () => undefined);
    const stopped = expect(last).rejects.toThrow(MediaUnavailableError);
    await service.shutdown();
    await stopped;
    await peer.close();
  });

  it('leaves the ports to another one until it may bind them', async () => {
    const options = await optionsOf({ workers: 2 });
    const other = await createMediaService(options, silentLog);
    let isOver: () => void = () => undefined;
    const service = await createMediaService({ ...options, bindAfter: new Promise((resolve) => (isOver = resolve)) }, silentLog);
    await other.shutdown();
    isOver();
    await service.ready();
    expect(service.capacity).toBe(128);
    await service.shutdown();
  });

  it('gives no new calls to a worker that does not report, and replaces it after a while', async () => {
    const clock = new VirtualClock();
    const service = await createMediaService(await optionsOf({ workers: 1 }), silentLog, clock);
    const call = await openCall(service, 'x');
    // No report is read meanwhile: the event loop does not turn.
    for (let count = 0; count < 4; count += 1) clock.advance(500);
    expect(service.delays.frameMs).toBe(2_000);
    await expect(service.reserve('y')).rejects.toThrow('no media worker has capacity');
    for (let count = 0; count < 12; count += 1) clock.advance(500);
    await expect.poll(() => call.events).toEqual([{ type: 'media-lost' }]);
    await expect.poll(() => service.capacity).toBe(64);
    expect([service.delays.frameMs, (await service.counters()).workerRestarts]).toEqual([0, 1]);
    await service.shutdown();
    await call.peer.close();
  });

  it('rejects when no port can be bound, and leaves no socket or thread after a shutdown', async () => {
    const handles = (): string[] => process.getActiveResourcesInfo().filter((name) => /UDP|MessagePort|Worker/i.test(name));
    const before = handles().length;
    const options = await optionsOf();
    const service = await createMediaService(options, silentLog);
    await expect(createMediaService(options, silentLog)).rejects.toThrow(MediaUnavailableError);
    const call = await openCall(service, 'last');
    service.send('last', { do: 'start' });
    await heardFor(call, 0.1);
    await service.shutdown();
    await call.peer.close();
    // The ports are free again.
    const next = await createMediaService(options, silentLog);
    await next.shutdown();
    await expect.poll(() => handles().length).toBeLessThanOrEqual(before);
  });

  it('continues a call without espeak-ng with an echo and one warning', async () => {
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (fields: object, event: string) => void warnings.push(`${event} ${JSON.stringify(fields)}`) };
    const options = await optionsOf({ speechCommand: '/nonexistent/espeak-ng' });
    const service = await createMediaService(options, log);
    const call = await openCall(service, 'mute');
    service.send('mute', { do: 'start' });
    await heardFor(call, 0.2);
    await speakUntilEchoed(call, 'PCMU', 9);
    expect(warnings.filter((line) => line.includes('echoes'))).toEqual([
      'agent.speech.failed {"call_id":"mute","code":"engine-missing","hint":"the test line only echoes"}',
    ]);
    await service.shutdown();
    await call.peer.close();
  });

  it('plays the built-in greeting at speaking volume from the start of the call when the first sentence is empty', async () => {
    const service = await createMediaService(await optionsOf(), silentLog);
    const expected = throughG711('PCMU', (await said(builtInGreeting('ENG').text)).subarray(0, 8_000));
    const call = await openCall(service, 'greeting', {}, { ...LINE, firstSentence: '' });
    service.send('greeting', { do: 'start' });
    await heardPhrase(call, expected, 0);
    expect(levelDbfs(call.peer.heard)).toBeGreaterThan(-35);
    await Promise.all([service.close('greeting'), call.peer.close()]);
    await service.shutdown();
  });
});
