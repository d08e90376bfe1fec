import type { StreamFormat } from '../../../agent-protocol/stream-format.js';

/** Audio on the wire of an agent: a bot's format, or what only providers speak. */
export type WireFormat = StreamFormat | 'pcm16-24000';
