import type { AudioPacket } from '../../rtp/audio-packet.js';
import { silenceByte, type AudioCodec } from '../../rtp/codec/g711.js';
import type { LegAgent } from './leg-agent.js';
import type { RingBack } from './ring-back.js';

/** The agent of a second party's leg that rings: what its carrier sends replaces the caller's ring-back tone. It says nothing. */
export class EarlyMediaParty implements LegAgent {
  readonly bufferedMs = 0;
  readonly latePackets = 0;
  #silence = silenceByte('PCMU');

  /** @param host the caller's leg; `null`: the caller has none here */
  constructor(private readonly host: { readonly ringBack: RingBack | null } | null) {}

  connect(): Promise<void> {
    return Promise.resolve();
  }

  start(codec: AudioCodec): void {
    this.#silence = silenceByte(codec);
  }

  digit(): void {
    // A digit of the carrier's is nobody's.
  }

  hear(packet: AudioPacket): void {
    this.host?.ringBack?.hear(packet);
  }

  fill(payload: Uint8Array): void {
    payload.fill(this.#silence);
  }

  pass(): void {
    // The caller's leg goes on meanwhile.
  }

  notify(): void {
    // It asks for nothing.
  }

  close(): void {
    this.host?.ringBack?.endEarlyMedia();
  }
}
