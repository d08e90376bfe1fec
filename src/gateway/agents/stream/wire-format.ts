import { silenceByte } from '../../../rtp/codec/g711.js';
import type { StreamFormat } from '../../../agent-protocol/stream-format.js';

/** Audio on the wire of an agent: a bot's format, or what only providers speak. */
export type WireFormat = StreamFormat | 'pcm16-24000';

/** A frame of 20 ms without a sound. */
export function silenceOf(format: WireFormat): Uint8Array {
  switch (format) {
    case 'pcmu':
    case 'twilio':
      return new Uint8Array(160).fill(silenceByte('PCMU'));
    case 'pcma':
      return new Uint8Array(160).fill(silenceByte('PCMA'));
    case 'pcm16-8000':
      return new Uint8Array(320);
    case 'pcm16-16000':
      return new Uint8Array(640);
    case 'pcm16-24000':
      return new Uint8Array(960);
  }
}
