import type { LegDescription, LegEvent, LegFigures, LegFormat, MediaDirection, SrtpKeys } from '../model/media.js';
import { type AudioCodec, FRAME_MS, G711_CLOCK_RATE_HZ, silenceByte, transcodeG711 } from '../../rtp/codec/g711.js';
import type { Clock } from '../../lib/clock.js';
import type { LegAgent, LegFork, LegView, Speech } from './leg-agent.js';
import { type DtmfDigit, DtmfDeduplicator, type DtmfSource } from '../../rtp/dtmf/telephone-event-receiver.js';
import { QualityLog, type ReceptionFigures } from '../../rtp/quality.js';
import { ClaimedPackets } from '../../rtp/claimed-packets.js';
import { RtcpSchedule, RtcpSession } from '../../rtp/rtcp-session.js';
import type { Conference, ConferenceHost } from './conference.js';
import { RingBack } from './ring-back.js';
import { RtpReceiver, type HeardPackets, type ReceiveOutcome } from './rtp-receiver.js';
import { RtpSender } from './rtp-sender.js';
import { MAX_SRTP_PACKET_BYTES, SRTCP_TRAILER_BYTES, SrtpSession } from '../../srtp/srtp.js';
import { TurnWatch } from './turn-watch.js';

/** All legs of a thread share it: the socket copies what it sends. */
const REPORT = Buffer.alloc(512 + SRTCP_TRAILER_BYTES);

/** Where a leg's packets go. The leg reuses the buffer at once. */
export interface LegTransport {
  sendRtp(buffer: Uint8Array, lengthBytes: number): void;
  sendRtcp(buffer: Uint8Array, lengthBytes: number): void;
}

export interface LegContext {
  readonly clock: Clock;
  /** Cryptographically random numbers from 0 to 2^32 - 1. */
  readonly random32: () => number;
  readonly transport: LegTransport;
  readonly mediaTimeoutMs: number;
  /** Gets no digits: the log has them only in redacted fields. */
  readonly onEvent: (event: LegEvent) => void;
  /** The call's agent, also while it is being connected. */
  readonly agent: () => LegAgent | undefined;
  /** Gets each RTCP packet in clear, if set; the buffer is reused afterwards. */
  readonly onRtcp?: (direction: 'in' | 'out', packet: Uint8Array, wallMs: number) => void;
}

/** The part of `LegDescription` that packets need. */
export type LegMedia = LegFormat & Pick<LegDescription, 'srtp' | 'carrierSuite'>;

/** So much later than 20 ms after the one before it a frame of speech may leave; then silence takes its place. */
const MOST_LATE_MS = 15;
/** Without a look at the packets, which come 50 a second. */
const STOOD_STILL_MS = 1_000;

/**
 * One media leg without its sockets: packets in, packets out, one agent. Its owner passes it every datagram of the peer and calls `tick`
 * each 20 ms; of a held leg, which sends nothing, seldom. The test caller's side of a call is a leg too.
 */
export class MediaLeg implements ConferenceHost {
  readonly #carrierSuite: string | null;
  #keys: SrtpKeys | null = null;
  #sendSrtp: SrtpSession | null = null;
  #receiveSrtp: SrtpSession | null = null;
  readonly #sender: RtpSender;
  readonly #receiver: RtpReceiver;
  readonly #rtcp: RtcpSession;
  readonly #rtcpSchedule: RtcpSchedule;
  #quality: QualityLog | undefined;
  #packetsAtLastSample = 0;
  #agent: LegAgent | undefined;
  /** The codec of the agent's frames: the leg's at the start. */
  #agentCodec: AudioCodec;
  readonly #forks = new Map<string, LegFork>();
  #dtmf: DtmfDeduplicator | undefined;
  readonly #heard: HeardPackets;
  #startedMs: number | undefined;
  #firstPacketMs: number | undefined;
  #watchedFromMs: number | undefined;
  #lookedMs = -Infinity;
  /** The peer's. */
  #direction: MediaDirection = 'sendrecv';
  /** When the last frame became due: each one before it was sent or passed. */
  #passedMs = 0;
  /** Frames that are due and have not left: one while the agent may still begin to speak, two while the rest of its speech is late. */
  #unsent = 0;
  #sentMs = -Infinity;
  /** The agent fills a frame: it may have more to say, which comes after it. */
  #isFilling = false;
  /** The next frame leaves when it is due, whatever is in it: it is the first one, or the first after a hold. */
  #isFirst = true;
  #lastReportMs = -Infinity;
  #isTimedOut = false;
  readonly #claimed = new ClaimedPackets();
  #needsPackets = false;
  /** Until the next packet arrives. */
  #isKnownDead = false;
  #isClosed = false;
  #digits = 0;
  #framesLate = 0;
  /** From the first audio of either side. */
  #turns: TurnWatch | undefined;
  #ringBack: RingBack | undefined;
  #conference: Conference | null = null;

  /** @throws RangeError if an SRTP key has the wrong length */
  constructor(
    media: LegMedia,
    private readonly context: LegContext,
  ) {
    this.#carrierSuite = media.carrierSuite;
    this.#agentCodec = media.codec;
    const { random32, transport } = context;
    this.#sender = new RtpSender(media, { ssrc: random32(), sequenceNumber: random32(), rtpTimestamp: random32() }, (buffer, lengthBytes) =>
      transport.sendRtp(buffer, lengthBytes),
    );
    this.#receiver = new RtpReceiver(media, media.carrierSuite !== null);
    this.#secure(media.srtp, this.#sender.ssrc);
    // RFC 7022 §4.2: a short-term name of at least 96 random bits.
    this.#rtcp = new RtcpSession([random32(), random32(), random32()].map((word) => word.toString(16).padStart(8, '0')).join(''));
    this.#rtcpSchedule = new RtcpSchedule(() => random32() / 2 ** 32);
    this.#heard = {
      onDtmf: (digit) => this.#digit(digit, 'media'),
      onAudio: (packet) => {
        const { codec, buffer, offset, lengthBytes, nowMs } = packet;
        (this.#turns ??= new TurnWatch()).heard(codec, buffer, offset, lengthBytes, nowMs);
        if (this.#conference !== null) this.#conference.hear('caller', packet);
        else (this.#agent ?? context.agent())?.hear(packet);
        if (this.#forks.size > 0) for (const fork of this.#forks.values()) fork.hear(packet);
      },
    };
  }

  /**
   * Starts audio and the agent, or the agent that has taken its place. Without an agent the leg is silent.
   * @param isAgentConnected else it is started by a later call
   */
  start(isAgentConnected = true): void {
    if (this.#isClosed) return;
    const nowMs = this.context.clock.nowMs();
    if (this.#startedMs === undefined) {
      this.#startedMs = nowMs;
      this.#watchedFromMs = nowMs;
      this.#passedMs = nowMs;
      for (const fork of this.#forks.values()) fork.start(this.#sender.format.codec, nowMs);
    }
    const agent = this.context.agent();
    if (agent === this.#agent || !isAgentConnected) return;
    this.#agent = agent;
    this.#agentCodec = this.#sender.format.codec;
    agent?.start(this.#agentCodec, nowMs);
  }

  /** Copies the leg's audio from now on, or from the leg's start. */
  addFork(streamSid: string, fork: LegFork): void {
    this.#forks.set(streamSid, fork);
    if (this.#startedMs !== undefined && !this.#isClosed) fork.start(this.#sender.format.codec, this.context.clock.nowMs());
  }

  /** Ends a copy; nothing when there is none. */
  removeFork(streamSid: string): void {
    this.#forks.get(streamSid)?.close();
    this.#forks.delete(streamSid);
  }

  /** The leg is silent until `start` finds the next agent. */
  releaseAgent(): void {
    this.#agent = undefined;
  }

  /**
   * Changes the keys; `null`: plain RTP. Under another key the leg sends as a new source: a receiver counts rollovers by source (RFC 3711
   * §3.3.1), and may go on where the key before ended.
   * @throws RangeError if a key has the wrong length
   */
  setKeys(keys: SrtpKeys | null): void {
    if (!this.#isClosed) this.#secure(keys, this.context.random32());
  }

  /** Changes the format of packets. The agent keeps the codec that it started with. */
  setFormat(format: LegFormat): void {
    this.#sender.format = format;
    this.#receiver.format = format;
  }

  /**
   * Changes the directions of media, as the peer announced them. The leg sends nothing to a peer that wants none. It does not watch a peer
   * whose direction excludes packets, and restarts the watchdog when they are allowed again.
   */
  setDirection(direction: MediaDirection): void {
    if (direction === this.#direction) return;
    const nowMs = this.context.clock.nowMs();
    this.#passHeldFrames(nowMs);
    this.#direction = direction;
    this.#watchedFromMs = nowMs;
    if (!this.isHeld) return;
    this.#passFrames(nowMs, this.#unsent);
    this.#unsent = 0;
    this.#isFirst = true;
  }

  /** The peer hears that somebody else's phone rings, wherever the agent says nothing. */
  setRingBack(isOn: boolean): void {
    if (isOn) this.#ringBack ??= new RingBack();
    else this.#ringBack = undefined;
  }

  /** `null`: it rings nowhere. */
  get ringBack(): RingBack | null {
    return this.#ringBack ?? null;
  }

  /** The agent and the peer are in a conference; `null`: they have each other again. */
  setConference(conference: Conference | null): void {
    this.#conference = conference;
  }

  /** Receiver reports alone are no sign of the caller any more. */
  needPackets(): void {
    this.#needsPackets = true;
  }

  /** All three of the conference talk with each other, or the agent with the second party alone; nothing without one. */
  setThreeWay(isOn: boolean): void {
    if (this.#conference !== null) this.#conference.isThreeWay = isOn;
  }

  agentNow(): ReturnType<ConferenceHost['agentNow']> {
    return this.#agent === undefined || this.#isClosed ? null : { agent: this.#agent, codec: this.#agentCodec };
  }

  /** Queues a digit; false without negotiated telephone-events, or if too many wait. */
  sendDigit(event: number, durationMs: number): boolean {
    return this.#sender.sendDtmf(event, durationMs);
  }

  /** Takes a digit that arrived in signalling. */
  takeDigit(event: number, durationMs: number): void {
    if (!this.#isClosed) this.#digit({ event, durationMs }, 'signalling');
  }

  /** Takes an RTP datagram of the peer and modifies it in place. */
  receiveRtp(datagram: Uint8Array): ReceiveOutcome {
    if (this.#isClosed || datagram.length > MAX_SRTP_PACKET_BYTES) return 'not-rtp';
    const nowMs = this.context.clock.nowMs();
    const outcome = this.#receiver.receive(datagram, nowMs, this.#heard);
    if (outcome === 'taken' && this.#firstPacketMs === undefined) {
      this.#firstPacketMs = nowMs;
      this.#rtcpSchedule.start(nowMs);
      this.#emit({ type: 'media-started' });
    }
    if (outcome === 'taken') this.#isKnownDead = false;
    this.#passHeldFrames(nowMs);
    return outcome;
  }

  /** Takes an RTCP datagram of the peer and modifies it in place. */
  receiveRtcp(datagram: Uint8Array): ReceiveOutcome {
    if (this.#isClosed || datagram.length > MAX_SRTP_PACKET_BYTES) return 'not-rtp';
    const srtp = this.#receiveSrtp;
    const lengthBytes = srtp === null ? datagram.length : srtp.tryUnprotectRtcp(datagram, datagram.length);
    if (lengthBytes < 0) return 'not-authentic';
    const { clock, onRtcp } = this.context;
    const [nowMs, wallMs] = [clock.nowMs(), clock.wallMs()];
    const packet = datagram.subarray(0, lengthBytes);
    if (!this.#rtcp.read(packet, this.#sender.ssrc, nowMs, wallMs)) return 'not-rtp';
    onRtcp?.('in', packet, wallMs);
    this.#watchReport(nowMs);
    return 'taken';
  }

  /** A report is a sign of life, unless it claims packets of which none arrive: then what lies between is dead, and the call may be moved. */
  #watchReport(nowMs: number): void {
    const report = this.#rtcp.takeSenderReport();
    if (report === null && this.#needsPackets) return;
    const { packetsReceived: received, lastPacketMs } = this.#receiver;
    // A process that stood still may find the packets after the report.
    const hasStoodStill = nowMs - this.#lookedMs > STOOD_STILL_MS;
    const quietMs = hasStoodStill ? 0 : nowMs - Math.max(this.#watchedFromMs ?? nowMs, lastPacketMs ?? -Infinity);
    const isLost = report !== null && this.#claimed.areLost({ ssrc: report.ssrc, claimed: report.packets, received }, quietMs);
    if (!isLost || this.#direction !== 'sendrecv') {
      this.#lastReportMs = nowMs;
      return;
    }
    if (this.#isKnownDead || this.#startedMs === undefined) return;
    this.#isKnownDead = true;
    this.#emit({ type: 'media-dead' });
  }

  /**
   * `skip` frames passed unsent and `send` frames are due. A held leg counts its frames itself, by the clock.
   *
   * A frame of speech leaves when it is there, from the time on at which it is due; silence leaves only when the next frame is due, so that
   * an agent that begins to speak is not behind a silence that has just left. Timestamps are those of the time at which a frame is due.
   * True: a frame is late, and `again` is to be called.
   */
  tick(skip: number, send: number): boolean {
    const nowMs = this.context.clock.nowMs();
    const digit = this.#receiver.pollDtmf(nowMs);
    if (digit !== undefined) this.#digit(digit, 'media');
    if (this.#startedMs === undefined || this.#isClosed) return false;
    if (this.isHeld) {
      this.#passHeldFrames(nowMs);
      return false;
    }
    this.#framesLate += Math.max(0, skip + send - 1);
    if (skip > 0) {
      this.#sendUnsent(nowMs);
      this.#passFrames(nowMs, skip);
    }
    this.#passedMs = nowMs;
    this.#unsent += send;
    // After a stall each frame leaves at once.
    if (skip + send > 1 || this.#isFirst) this.#sendUnsent(nowMs);
    else this.#sendReady(nowMs);
    if (this.#rtcpSchedule.take(nowMs)) this.#sendReport(false);
    if (this.#direction === 'sendrecv') this.#watch(nowMs);
    return this.#unsent > 1;
  }

  /** Between two ticks. True: a frame is still late. */
  again(): boolean {
    if (this.#isClosed) return false;
    this.#sendReady(this.context.clock.nowMs());
    return this.#unsent > 1;
  }

  /** The agent has something to say. False: it waits for a frame to be due. */
  speak(): boolean {
    if (this.#startedMs === undefined || this.isHeld || this.#conference !== null || this.#isFilling) return true;
    if (this.#unsent === 0) return false;
    if (this.#speech === 'ready') this.#sendReady(this.context.clock.nowMs());
    return true;
  }

  /** In a conference, and without an agent, there is always a frame. */
  get #speech(): Speech {
    return this.#conference !== null || this.#agent === undefined ? 'ready' : (this.#agent.speech ?? 'ready');
  }

  /** Speech, and silence that can become speech no more. */
  #sendReady(nowMs: number): void {
    while (this.#unsent > 0 && !this.#mayWait(nowMs)) this.#sendOne(nowMs);
  }

  #mayWait(nowMs: number): boolean {
    const speech = this.#speech;
    if (speech === 'ready') return false;
    return this.#unsent === 1 || (speech === 'expected' && nowMs - this.#sentMs < FRAME_MS + MOST_LATE_MS);
  }

  #sendUnsent(nowMs: number): void {
    while (this.#unsent > 0) this.#sendOne(nowMs);
  }

  #sendOne(nowMs: number): void {
    this.#unsent -= 1;
    this.#isFirst = false;
    this.#sentMs = nowMs;
    this.#isFilling = true;
    this.#frame(nowMs);
    this.#isFilling = false;
  }

  /** Sends an RTCP BYE, frees keys and agent; a second call returns the same figures. */
  close(): LegFigures {
    if (!this.#isClosed) {
      if (this.#sender.packetsSent > 0 && !this.isHeld) this.#sendReport(true);
      this.#isClosed = true;
      for (const fork of this.#forks.values()) fork.close();
      this.#sendSrtp?.close();
      this.#receiveSrtp?.close();
    }
    return this.figures();
  }

  /** `ReceptionStatistics.takeDelayMs`. */
  takeArrivalDelayMs(): number | null {
    return this.#receiver.takeDelayMs();
  }

  /** The leg's figures so far. */
  figures(): LegFigures {
    const { firstAudioMs: agentAudioMs = null, delaysMs: turnDelaysMs = [] } = this.#turns ?? {};
    return {
      packetsSent: this.#sender.packetsSent,
      packetsReceived: this.#receiver.packetsReceived,
      packetsLost: this.#receiver.packetsLost,
      jitterMs: this.#receiver.jitterMs,
      roundTripMs: this.#rtcp.roundTripMs,
      firstAudioMs: this.#firstPacketMs === undefined ? null : Math.max(0, this.#firstPacketMs - (this.#startedMs ?? this.#firstPacketMs)),
      digitsReceived: this.#digits,
      framesLate: this.#framesLate,
      agentAudioMs: agentAudioMs === null ? null : agentAudioMs - (this.#startedMs ?? 0),
      turnDelaysMs,
      samples: this.#quality?.samples ?? [],
    };
  }

  /** The agent's interface to the leg. */
  view(): LegView {
    const { codec } = this.#sender.format;
    return { figures: this.figures(), codec, carrierSuite: this.#carrierSuite, bufferedMs: this.context.agent()?.bufferedMs ?? 0 };
  }

  /** The peer wants no media: the leg needs no tick each 20 ms. */
  get isHeld(): boolean {
    return this.#direction === 'sendonly' || this.#direction === 'inactive';
  }

  #secure(keys: SrtpKeys | null, ssrc: number): void {
    const [before, earlierSend, earlierReceive] = [this.#keys, this.#sendSrtp, this.#receiveSrtp];
    const sends = !isSameKey(before?.send, keys?.send);
    const receives = !isSameKey(before?.receive, keys?.receive);
    const [send, receive] =
      keys === null
        ? [null, null]
        : [sends ? new SrtpSession(keys.send, 'send') : null, receives ? new SrtpSession(keys.receive, 'receive') : null];
    this.#keys = keys;
    if (sends) {
      this.#sendSrtp = send;
      this.#sender.setSrtp(send, ssrc);
      earlierSend?.close();
    }
    if (receives) {
      this.#receiveSrtp = receive;
      this.#receiver.setSrtp(receive);
      earlierReceive?.close();
    }
  }

  /** Lets the frames pass whose time went by during a hold, so that the timestamp follows the clock (RFC 3550 §5.1). */
  #passHeldFrames(nowMs: number): void {
    if (!this.isHeld || this.#startedMs === undefined || this.#isClosed) return;
    const frames = Math.floor((nowMs - this.#passedMs) / FRAME_MS);
    if (frames === 0) return;
    this.#passedMs += frames * FRAME_MS;
    this.#passFrames(nowMs, frames);
  }

  #passFrames(nowMs: number, frames: number): void {
    // In a conference the other leg goes on.
    if (this.#conference === null) this.#agent?.pass(nowMs, frames);
    for (const fork of this.#forks.values()) fork.pass(nowMs, frames);
    this.#sender.skipFrames(frames);
  }

  #frame(nowMs: number): void {
    const { payload } = this.#sender;
    if (this.#conference !== null) this.#conference.fill('caller', this.#agentCodec, payload, nowMs);
    else if (this.#agent === undefined) payload.fill(silenceByte(this.#agentCodec));
    else this.#agent.fill(payload, nowMs);
    if (this.#agentCodec !== this.#sender.format.codec) transcodeG711(this.#agentCodec, payload, payload);
    (this.#turns ??= new TurnWatch()).sent(this.#sender.format.codec, payload, nowMs);
    this.#ringBack?.mix(this.#sender.format.codec, payload);
    if (this.#forks.size > 0) for (const fork of this.#forks.values()) fork.sent(this.#sender.format.codec, payload, nowMs);
    // The agent may have ended the leg.
    if (this.#isClosed) return;
    this.#sender.sendFrame();
    this.#rtcpSchedule.start(nowMs);
  }

  #watch(nowMs: number): void {
    // A process that stood still received nothing meanwhile.
    if (nowMs - this.#lookedMs > STOOD_STILL_MS) this.#watchedFromMs = nowMs;
    this.#lookedMs = nowMs;
    const quietSinceMs = Math.max(this.#watchedFromMs ?? nowMs, this.#receiver.lastPacketMs ?? -Infinity, this.#lastReportMs);
    if (this.#isTimedOut || nowMs - quietSinceMs < this.context.mediaTimeoutMs) return;
    this.#isTimedOut = true;
    this.#emit({ type: 'media-timeout' });
  }

  #digit(digit: DtmfDigit, source: DtmfSource): void {
    this.#dtmf ??= new DtmfDeduplicator();
    if (!this.#dtmf.take(source, digit.event, digit.durationMs, this.context.clock.nowMs())) return;
    this.#digits += 1;
    this.#emit({ type: 'digit', event: digit.event, durationMs: digit.durationMs });
    this.context.agent()?.digit(digit.event);
  }

  #emit(event: LegEvent): void {
    if (!this.#isClosed) this.context.onEvent(event);
  }

  #sample(received: ReceptionFigures | null): void {
    const nowMs = this.context.clock.nowMs();
    const hasHeard = this.#receiver.packetsReceived > this.#packetsAtLastSample;
    this.#packetsAtLastSample = this.#receiver.packetsReceived;
    const peer = this.#rtcp.takePeerReport();
    this.#quality ??= new QualityLog();
    this.#quality.add({
      atMs: nowMs - (this.#startedMs ?? nowMs),
      fromCaller: received === null || !hasHeard ? null : { lossRate: received.fractionLost / 256, jitterMs: this.#receiver.jitterMs },
      toCaller: peer === null ? null : { lossRate: peer.lossRate, jitterMs: (peer.jitterTicks / G711_CLOCK_RATE_HZ) * 1_000 },
      roundTripMs: this.#rtcp.roundTripMs,
    });
  }

  #sendReport(isBye: boolean): void {
    const { clock, transport, onRtcp } = this.context;
    const wallMs = clock.wallMs();
    const received = this.#receiver.takeReport();
    this.#sample(received?.figures ?? null);
    const nowMs = clock.nowMs();
    // By the times at which frames are due, not by those at which they leave.
    const sinceDueMs = this.#startedMs === undefined ? 0 : this.#unsent * FRAME_MS + nowMs - this.#passedMs;
    const plainBytes = this.#rtcp.write(REPORT, this.#sender.figuresAt(sinceDueMs), received, nowMs, wallMs, isBye);
    onRtcp?.('out', REPORT.subarray(0, plainBytes), wallMs);
    const lengthBytes = this.#sendSrtp === null ? plainBytes : this.#sendSrtp.tryProtectRtcp(REPORT, plainBytes);
    if (lengthBytes > 0) transport.sendRtcp(REPORT, lengthBytes);
  }
}

function isSameKey(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0;
}
