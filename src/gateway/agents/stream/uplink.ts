import type { AudioPacket } from '../../../rtp/audio-packet.js';
import { type AudioCodec, FRAME_BYTES, FRAME_MS, decodeG711, transcodeG711 } from '../../../rtp/codec/g711.js';
import { RateDoubler } from '../../../rtp/codec/rate-doubler.js';
import { RateTripler } from '../../../rtp/codec/rate-tripler.js';
import { ReorderBuffer } from '../../../rtp/reorder-buffer.js';
import { MAX_SRTP_PACKET_BYTES } from '../../../srtp/srtp.js';
import type { MessageWriter } from './messages.js';
import type { AgentSocket } from './socket.js';
import type { WireFormat } from './wire-format.js';

/** More than this unsent, and the agent counts as slow: about half a second. */
const MAX_UNSENT_BYTES = 16_384;

/** Where the frames go; of one connection. */
export interface UplinkTarget {
  readonly socket: Pick<AgentSocket, 'unsentBytes' | 'sendUtf8' | 'sendBinary'>;
  /** Makes the messages of the format `twilio`; `null`: it is another one. */
  readonly writer: Pick<MessageWriter, 'media'> | null;
}

export interface UplinkEvents {
  /** Each frame in order, as 16-bit linear at 8 kHz, where `wantsSamples`; valid for the time of the call only. */
  onSamples(samples: Int16Array, timestampMs: number): void;
  /** A slow agent reads again; the uplink dropped this much of the oldest audio. */
  onDropped(milliseconds: number): void;
}

/** Share of `maxUnsentMs` that may be in flight; the rest waits here, where the oldest frames can still be dropped. */
const IN_FLIGHT = 3 / 4;

interface WaitingFrame {
  readonly timestampMs: number;
  readonly bytes: Uint8Array;
}

/** The caller's audio on its way to an agent: in order, in frames of 20 ms, in the agent's format, bounded when the agent is slow. */
export class Uplink {
  readonly #codec: AudioCodec;
  /** Maximum of frames in flight, and of frames that wait behind them. */
  readonly #maxInFlight: number;
  readonly #maxBehind: number;
  readonly #reorderBuffer: ReorderBuffer;
  readonly #frame = new Uint8Array(FRAME_BYTES);
  #scratch: Uint8Array | undefined;
  #samples: Int16Array | undefined;
  #doubler: { readonly rate: RateDoubler; readonly samples: Int16Array } | undefined;
  #tripler: RateTripler | undefined;
  #filled = 0;
  #target: UplinkTarget | null = null;
  #frames = 0;
  #waiting: WaitingFrame[] = [];
  #droppedMs = 0;
  /** Frames sent on this connection, and how many of them the agent has read. */
  #sent = 0;
  #read = 0;
  /** Samples of each frame are wanted, for the detection of speech. */
  wantsSamples = false;

  /** @param legCodec of the leg: linear formats are decoded from it without another law between */
  constructor(
    private readonly format: WireFormat,
    legCodec: AudioCodec,
    maxUnsentMs: number,
    private readonly events: UplinkEvents,
  ) {
    this.#codec = wireCodecOf(format, legCodec);
    const frames = Math.max(2, Math.floor(maxUnsentMs / FRAME_MS));
    this.#maxInFlight = Math.floor(IN_FLIGHT * frames);
    this.#maxBehind = frames - this.#maxInFlight;
    this.#reorderBuffer = new ReorderBuffer(this.#codec, (buffer, offset, length) => this.#collect(buffer, offset, length));
  }

  get latePackets(): number {
    return this.#reorderBuffer.figures.latePackets;
  }

  /** What waits to be in order, or for a slow agent. */
  get bufferedMs(): number {
    return this.#reorderBuffer.heldMs + this.#waiting.length * FRAME_MS;
  }

  /** A connection begins, and its times at 0; `null`: there is none, and what is heard is lost. */
  connect(target: UplinkTarget | null): void {
    this.#target = target;
    this.#frames = 0;
    this.#waiting = [];
    this.#droppedMs = 0;
    this.#sent = 0;
    this.#read = 0;
  }

  /** Frames that this connection was given so far: what a ping that is sent now stands behind. */
  get sentFrames(): number {
    return this.#sent;
  }

  /** Frames are on their way that the agent has not read. */
  get hasUnread(): boolean {
    return this.#sent > this.#read;
  }

  /** The agent answered a ping sent after this many frames: it has read them. (The kernel buffers seconds of unread audio.) */
  acknowledge(frames: number): void {
    this.#read = Math.max(this.#read, Math.min(frames, this.#sent));
    if (this.#waiting.length > 0) this.#flush();
  }

  start(nowMs: number): void {
    this.#reorderBuffer.start(nowMs);
  }

  hear({ codec, ssrc, rtpTimestamp, buffer, offset, lengthBytes, nowMs }: AudioPacket): void {
    if (codec === this.#codec) {
      this.#reorderBuffer.push(ssrc, rtpTimestamp, buffer, offset, lengthBytes, nowMs);
      return;
    }
    if (lengthBytes > MAX_SRTP_PACKET_BYTES) return;
    this.#scratch ??= new Uint8Array(MAX_SRTP_PACKET_BYTES);
    transcodeG711(codec, buffer, this.#scratch, offset, lengthBytes);
    this.#reorderBuffer.push(ssrc, rtpTimestamp, this.#scratch, 0, lengthBytes, nowMs);
  }

  /** Each 20 ms; during a hold with each packet only. */
  tick(nowMs: number): void {
    // What a hold left out: the times of the frames after it follow the clock. (The tick itself counts those that it brings.)
    const skipped = this.#reorderBuffer.tick(nowMs);
    this.#frames += skipped;
    if (this.#waiting.length > 0) this.#flush();
  }

  #collect(buffer: Uint8Array, offset: number, length: number): void {
    if (this.#filled === 0 && length === FRAME_BYTES) {
      this.#take(buffer, offset);
      return;
    }
    for (let at = offset, end = offset + length; at < end;) {
      const part = Math.min(FRAME_BYTES - this.#filled, end - at);
      this.#frame.set(buffer.subarray(at, at + part), this.#filled);
      this.#filled += part;
      at += part;
      if (this.#filled < FRAME_BYTES) return;
      this.#filled = 0;
      this.#take(this.#frame, 0);
    }
  }

  #take(buffer: Uint8Array, offset: number): void {
    const timestampMs = this.#frames * FRAME_MS;
    this.#frames += 1;
    if (this.wantsSamples) this.events.onSamples(this.#decode(buffer, offset), timestampMs);
    const target = this.#target;
    if (target === null) return;
    if (this.#waiting.length === 0 && this.#mayPass(target)) {
      this.#send(target, buffer, offset, timestampMs);
      return;
    }
    this.#waiting.push({ timestampMs, bytes: buffer.slice(offset, offset + FRAME_BYTES) });
    // What waits can go out at once when the agent reads again.
    if (this.#waiting.length > Math.max(this.#maxBehind, this.#maxInFlight - (this.#sent - this.#read))) {
      this.#waiting.shift();
      this.#droppedMs += FRAME_MS;
    }
    this.#flush();
  }

  #flush(): void {
    const target = this.#target;
    if (target === null) return;
    while (this.#mayPass(target)) {
      const frame = this.#waiting.shift();
      if (frame === undefined) return;
      if (this.#droppedMs > 0) {
        this.events.onDropped(this.#droppedMs);
        this.#droppedMs = 0;
      }
      this.#send(target, frame.bytes, 0, frame.timestampMs);
    }
  }

  #mayPass({ socket }: UplinkTarget): boolean {
    return socket.unsentBytes <= MAX_UNSENT_BYTES && this.#sent - this.#read < this.#maxInFlight;
  }

  #send({ socket, writer }: UplinkTarget, buffer: Uint8Array, offset: number, timestampMs: number): void {
    this.#sent += 1;
    switch (this.format) {
      case 'twilio':
        if (writer !== null) socket.sendUtf8(writer.media(buffer, offset, timestampMs));
        return;
      case 'pcmu':
      case 'pcma':
        socket.sendBinary(buffer.subarray(offset, offset + FRAME_BYTES));
        return;
      case 'pcm16-8000':
        socket.sendBinary(bytesOf(this.#decode(buffer, offset)));
        return;
      case 'pcm16-16000': {
        this.#doubler ??= { rate: new RateDoubler(), samples: new Int16Array(2 * FRAME_BYTES) };
        this.#doubler.rate.process(this.#decode(buffer, offset), this.#doubler.samples);
        socket.sendBinary(bytesOf(this.#doubler.samples));
        return;
      }
      case 'pcm16-24000':
        this.#tripler ??= new RateTripler();
        socket.sendBinary(bytesOf(this.#tripler.process(this.#decode(buffer, offset))));
        return;
    }
  }

  #decode(buffer: Uint8Array, offset: number): Int16Array {
    this.#samples ??= new Int16Array(FRAME_BYTES);
    decodeG711(this.#codec, buffer, this.#samples, offset, FRAME_BYTES);
    return this.#samples;
  }
}

/** The law in which audio is put in order. */
function wireCodecOf(format: WireFormat, legCodec: AudioCodec): AudioCodec {
  if (format === 'twilio' || format === 'pcmu') return 'PCMU';
  return format === 'pcma' ? 'PCMA' : legCodec;
}

/** Little-endian, as the machines that Node.js runs on are. */
function bytesOf(samples: Int16Array): Uint8Array {
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
}
