import type { AudioPacket } from '../../rtp/audio-packet.js';
import { decodeG711, encodeG711, FRAME_SAMPLES, type AudioCodec } from '../../rtp/codec/g711.js';
import { mix } from '../../rtp/codec/mix.js';
import { JitterBuffer } from '../../rtp/jitter-buffer.js';
import { MAX_SRTP_PACKET_BYTES } from '../../srtp/srtp.js';
import { HoldMusic } from './hold-music.js';
import type { LegAgent } from './leg-agent.js';

// All conferences of a thread share these: each is used within one call of a method.
const PACKET = new Int16Array(MAX_SRTP_PACKET_BYTES);
const CALLER = new Int16Array(FRAME_SAMPLES);
const PARTY = new Int16Array(FRAME_SAMPLES);
const AGENT = new Int16Array(FRAME_SAMPLES);
const FRAME = new Uint8Array(FRAME_SAMPLES);

/** The caller's leg, as a conference sees it. */
export interface ConferenceHost {
  /** `null`: the leg has none now. `codec`: of its frames. */
  agentNow(): { readonly agent: LegAgent; readonly codec: AudioCodec } | null;
  setConference(conference: Conference | null): void;
}

/**
 * A caller, the caller's agent, and a second party with a leg of its own, on one thread. At first agent and party talk while the caller
 * hears music; then all three may. Whichever leg is due first makes the frames of both.
 */
export class Conference {
  isThreeWay = false;
  readonly #fromCaller = new JitterBuffer();
  readonly #fromParty = new JitterBuffer();
  readonly #music = new HoldMusic();
  readonly #toCaller = new Int16Array(FRAME_SAMPLES);
  readonly #toParty = new Int16Array(FRAME_SAMPLES);
  /** Made and not sent yet. */
  #hasForCaller = false;
  #hasForParty = false;
  #rtpTimestamp = 0;

  /** @param ssrc of what the agent hears */
  constructor(
    private readonly host: ConferenceHost,
    private readonly ssrc: number,
  ) {}

  get partyBufferedMs(): number {
    return Math.max(0, this.#fromParty.depthMs);
  }

  get lateFromParty(): number {
    return this.#fromParty.figures.latePackets;
  }

  /** One packet of the caller or of the party. */
  hear(who: 'caller' | 'party', { codec, ssrc, rtpTimestamp, buffer, offset, lengthBytes }: AudioPacket): void {
    if (lengthBytes > MAX_SRTP_PACKET_BYTES) return;
    decodeG711(codec, buffer, PACKET, offset, lengthBytes);
    (who === 'caller' ? this.#fromCaller : this.#fromParty).push(ssrc, rtpTimestamp, PACKET.subarray(0, lengthBytes));
  }

  /** The next frame of 20 ms for the caller or the party. */
  fill(who: 'caller' | 'party', codec: AudioCodec, payload: Uint8Array, nowMs: number): void {
    if (!(who === 'caller' ? this.#hasForCaller : this.#hasForParty)) this.#step(nowMs);
    if (who === 'caller') this.#hasForCaller = false;
    else this.#hasForParty = false;
    encodeG711(codec, who === 'caller' ? this.#toCaller : this.#toParty, payload);
  }

  #step(nowMs: number): void {
    this.#fromCaller.pull(CALLER);
    this.#fromParty.pull(PARTY);
    const present = this.host.agentNow();
    if (present === null) AGENT.fill(0);
    else {
      present.agent.fill(FRAME, nowMs);
      decodeG711(present.codec, FRAME, AGENT, 0, FRAME_SAMPLES);
    }
    if (this.isThreeWay) {
      mix(AGENT, PARTY, this.#toCaller);
      mix(AGENT, CALLER, this.#toParty);
      mix(CALLER, PARTY, AGENT);
    } else {
      this.#music.fill(this.#toCaller);
      this.#toParty.set(AGENT);
      AGENT.set(PARTY);
    }
    this.#hasForCaller = true;
    this.#hasForParty = true;
    this.#rtpTimestamp = (this.#rtpTimestamp + FRAME_SAMPLES) % 2 ** 32;
    // The agent may have ended the call.
    if (present === null || this.host.agentNow() === null) return;
    encodeG711(present.codec, AGENT, FRAME);
    present.agent.hear({
      codec: present.codec,
      ssrc: this.ssrc,
      rtpTimestamp: this.#rtpTimestamp,
      buffer: FRAME,
      offset: 0,
      lengthBytes: FRAME_SAMPLES,
      nowMs,
    });
  }
}

const NOBODY: ConferenceHost = { agentNow: () => null, setConference: () => undefined };

/** The agent of a second party's leg: the conference with the caller whom the party is to take over, from the ACK on. */
export class ConferenceParty implements LegAgent {
  readonly #conference: Conference;
  #codec: AudioCodec = 'PCMU';
  #isOn = false;

  /** @param host `null`: the caller has no leg here */
  constructor(
    private readonly host: ConferenceHost | null,
    ssrc: number,
  ) {
    this.#conference = new Conference(host ?? NOBODY, ssrc);
  }

  get bufferedMs(): number {
    return this.#conference.partyBufferedMs;
  }

  get latePackets(): number {
    return this.#conference.lateFromParty;
  }

  connect(): Promise<void> {
    return this.host === null ? Promise.reject(new Error('the caller has no leg here')) : Promise.resolve();
  }

  start(codec: AudioCodec): void {
    this.#codec = codec;
    this.#isOn = true;
    this.host?.setConference(this.#conference);
  }

  digit(event: number): void {
    if (this.#isOn) this.host?.agentNow()?.agent.digit(event);
  }

  hear(packet: AudioPacket): void {
    if (this.#isOn) this.#conference.hear('party', packet);
  }

  fill(payload: Uint8Array, nowMs: number): void {
    this.#conference.fill('party', this.#codec, payload, nowMs);
  }

  pass(): void {
    // The caller's leg goes on meanwhile.
  }

  notify(): void {
    // It asks for nothing.
  }

  close(): void {
    if (this.#isOn) this.host?.setConference(null);
    this.#isOn = false;
  }
}
