import type { AudioPacket } from '../../rtp/audio-packet.js';
import type { AgentAnswer } from '../model/agent.js';
import { type AudioCodec, FRAME_SAMPLES, decodeG711, encodeG711 } from '../../rtp/codec/g711.js';
import type { LegAgent, Speech } from './leg-agent.js';
import { JitterBuffer } from '../../rtp/jitter-buffer.js';
import { MAX_SRTP_PACKET_BYTES } from '../../srtp/srtp.js';

// All legs of a thread share these: each is used within one call of a method.
const PACKET = new Int16Array(MAX_SRTP_PACKET_BYTES);
const PACKET_FRAME = PACKET.subarray(0, FRAME_SAMPLES);
const HEARD = new Int16Array(FRAME_SAMPLES);
const SPOKEN = new Int16Array(FRAME_SAMPLES);

/** As many frames as the jitter buffer can hold: half a second. */
const MAX_PULLS = 25;

/** An agent that works on samples at the pace of the leg: the built-in test line. */
export interface SampleAgent {
  connect(): Promise<void>;
  /** Starts audio. */
  start(): void;
  /** A digit, reported once (event codes of RFC 4733 §3.2). */
  digit(event: number): void;
  /**
   * One frame of 20 ms: `heard` is the input, `spoken` the output to fill. Both are 16-bit linear at 8 kHz and reused for the next frame.
   * Not called before `start`, nor during hold.
   */
  frame(heard: Int16Array, spoken: Int16Array): void;
  /** It has nothing to say yet, and will call `AgentHost.speak` when it has. Left out: each frame is made as it is due. */
  readonly isWaiting?: boolean;
  notify(answer: AgentAnswer): void;
  close(): void;
}

/** Puts an agent that works on samples on a leg: decodes G.711, with a jitter buffer that makes the input even. */
export class SampleLegAgent implements LegAgent {
  /** From the caller's first packet on. */
  #jitterBuffer: JitterBuffer | undefined;
  #codec: AudioCodec = 'PCMU';

  constructor(private readonly agent: SampleAgent) {}

  get bufferedMs(): number {
    return Math.max(0, this.#jitterBuffer?.depthMs ?? 0);
  }

  get latePackets(): number {
    return this.#jitterBuffer?.figures.latePackets ?? 0;
  }

  get speech(): Speech {
    return this.agent.isWaiting === true ? 'none' : 'ready';
  }

  connect(): Promise<void> {
    return this.agent.connect();
  }

  start(codec: AudioCodec): void {
    this.#codec = codec;
    this.agent.start();
  }

  digit(event: number): void {
    this.agent.digit(event);
  }

  hear({ codec, ssrc, rtpTimestamp, buffer, offset, lengthBytes }: AudioPacket): void {
    if (lengthBytes > MAX_SRTP_PACKET_BYTES) return;
    decodeG711(codec, buffer, PACKET, offset, lengthBytes);
    this.#jitterBuffer ??= new JitterBuffer();
    this.#jitterBuffer.push(ssrc, rtpTimestamp, lengthBytes === FRAME_SAMPLES ? PACKET_FRAME : PACKET.subarray(0, lengthBytes));
  }

  fill(payload: Uint8Array): void {
    if (this.#jitterBuffer === undefined) HEARD.fill(0);
    else this.#jitterBuffer.pull(HEARD);
    // Nothing of another call's frame may be left.
    SPOKEN.fill(0);
    this.agent.frame(HEARD, SPOKEN);
    encodeG711(this.#codec, SPOKEN, payload);
  }

  pass(_nowMs: number, frames: number): void {
    for (let frame = 0; frame < Math.min(frames, MAX_PULLS); frame += 1) this.#jitterBuffer?.pull(HEARD);
  }

  notify(answer: AgentAnswer): void {
    this.agent.notify(answer);
  }

  close(): void {
    this.agent.close();
  }
}
