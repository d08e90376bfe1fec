import { isUtf8 } from 'node:buffer';
import { randomFillSync } from 'node:crypto';

// Frames of WebSocket (RFC 6455 §5), as a client reads and writes them.

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
type Opcode = (typeof OPCODE)[keyof typeof OPCODE];

/** Codes of close frames (RFC 6455 §7.4.1); 1005 and 1006 are never sent: no code, no close frame. */
export const CLOSE_CODE = { normal: 1_000, protocolError: 1_002, none: 1_005, abnormal: 1_006, notUtf8: 1_007, tooBig: 1_009 } as const;
/** With these a peer is done, and nothing failed: 1005 stands for a close without a code, 1001 for a peer that goes away. */
export const DONE_CODES: ReadonlySet<number> = new Set([CLOSE_CODE.normal, 1_001, CLOSE_CODE.none]);

const FIN = 0x80;
const RESERVED = 0x70;
const MASKED = 0x80;
const MAX_CONTROL_BYTES = 125;
const MAX_HEAD_BYTES = 10;
const MAX_REASON_BYTES = 123;

/** What comes in. The bytes are those of `buffer[start, end)`, for the time of the call only. */
export interface FrameEvents {
  /** False: they are no UTF-8. */
  onText(buffer: Buffer, start: number, end: number): boolean;
  onBinary(buffer: Buffer, start: number, end: number): void;
  onPing(buffer: Buffer, start: number, end: number): void;
  onPong(buffer: Buffer, start: number, end: number): void;
  /** Nothing is read after it. */
  onClose(code: number, reason: string): void;
  /** The peer broke a rule or a limit, for which the connection ends with this code; nothing is read after it. */
  onFault(code: number): void;
}

/** Reads a server's frames, which come in pieces of any size; a message in one piece is not copied. */
export class FrameReader {
  #isOver = false;
  /** The head of a frame that has not arrived as a whole. */
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES);
  #headBytes = 0;
  /** The present frame's. */
  #first = 0;
  #lengthBytes = 0;
  /** The payload of a frame that has not arrived as a whole. */
  #payload: Buffer | null = null;
  #filledBytes = 0;
  /** A message in several frames: its opcode, and what has come of it. */
  #opcode: Opcode | null = null;
  #message = Buffer.alloc(0);
  #messageBytes = 0;

  constructor(
    private readonly maxMessageBytes: number,
    private readonly events: FrameEvents,
  ) {}

  /** Reads `buffer[start, end)`, whose bytes may change after the call. */
  read(buffer: Buffer, start: number, end: number): void {
    for (let at = start; !this.#isOver;) {
      if (this.#payload !== null) {
        at += this.#fill(this.#payload, buffer, at, end);
        if (this.#filledBytes < this.#lengthBytes) return;
        const payload = this.#payload;
        this.#payload = null;
        this.#takeFrame(payload, 0, payload.length);
        continue;
      }
      if (at >= end) return;
      const headBytes = this.#headBytes === 0 && end - at > 1 ? headBytesOf(buffer[at + 1] ?? 0) : MAX_HEAD_BYTES;
      if (headBytes <= end - at && this.#headBytes === 0) {
        if (!this.#takeHead(buffer, at)) return;
        at += headBytes;
      } else {
        this.#head[this.#headBytes] = buffer[at] ?? 0;
        this.#headBytes += 1;
        at += 1;
        // The rest of a wrong one may never come.
        if (this.#headBytes === 2 && !this.#isAllowed(this.#head, 0)) return void this.#fault(CLOSE_CODE.protocolError);
        if (this.#headBytes < 2 || this.#headBytes < headBytesOf(this.#head[1] ?? 0)) continue;
        this.#headBytes = 0;
        if (!this.#takeHead(this.#head, 0)) return;
      }
      if (this.#lengthBytes <= end - at) {
        const from = at;
        at += this.#lengthBytes;
        this.#takeFrame(buffer, from, at);
      } else {
        this.#payload = Buffer.allocUnsafeSlow(this.#lengthBytes);
        this.#filledBytes = 0;
      }
    }
  }

  #fill(payload: Buffer, buffer: Buffer, at: number, end: number): number {
    const copied = buffer.copy(payload, this.#filledBytes, at, end);
    this.#filledBytes += copied;
    return copied;
  }

  /** Checks a head, and keeps its first byte and its length; false: a fault. */
  #takeHead(head: Buffer, at: number): boolean {
    if (!this.#isAllowed(head, at)) return this.#fault(CLOSE_CODE.protocolError);
    const second = head[at + 1] ?? 0;
    this.#first = head[at] ?? 0;
    this.#lengthBytes = second === 126 ? head.readUInt16BE(at + 2) : second === 127 ? lengthOf(head, at + 2) : second;
    const isControl = (this.#first & 0x0f) >= OPCODE.close;
    const isTooBig = !isControl && this.#messageBytes + this.#lengthBytes > this.maxMessageBytes;
    return !isTooBig || this.#fault(CLOSE_CODE.tooBig);
  }

  /** By the first two bytes of a head. */
  #isAllowed(head: Buffer, at: number): boolean {
    const [first, second] = [head[at] ?? 0, head[at + 1] ?? 0];
    // A server masks nothing.
    if ((first & RESERVED) !== 0 || (second & MASKED) !== 0) return false;
    const opcode = first & 0x0f;
    return opcode >= OPCODE.close
      ? opcode <= OPCODE.pong && (first & FIN) !== 0 && second <= MAX_CONTROL_BYTES
      : opcode <= OPCODE.binary && (opcode === OPCODE.continuation) !== (this.#opcode === null);
  }

  #takeFrame(buffer: Buffer, start: number, end: number): void {
    const opcode = (this.#first & 0x0f) as Opcode;
    switch (opcode) {
      case OPCODE.ping:
        return this.events.onPing(buffer, start, end);
      case OPCODE.pong:
        return this.events.onPong(buffer, start, end);
      case OPCODE.close:
        return this.#takeClose(buffer, start, end);
      default:
        return this.#takeData(opcode, buffer, start, end);
    }
  }

  #takeData(opcode: Opcode, buffer: Buffer, start: number, end: number): void {
    const isLast = (this.#first & FIN) !== 0;
    if (this.#opcode === null && isLast) return this.#takeMessage(opcode, buffer, start, end);
    this.#opcode ??= opcode;
    this.#append(buffer, start, end);
    if (!isLast) return;
    const [whole, message, messageBytes] = [this.#opcode, this.#message, this.#messageBytes];
    this.#opcode = null;
    this.#message = Buffer.alloc(0);
    this.#messageBytes = 0;
    this.#takeMessage(whole, message, 0, messageBytes);
  }

  /** Frames of a few bytes each would be millions. */
  #append(buffer: Buffer, start: number, end: number): void {
    const neededBytes = this.#messageBytes + end - start;
    if (neededBytes > this.#message.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.maxMessageBytes, Math.max(neededBytes, 2 * this.#message.length)));
      this.#message.copy(larger, 0, 0, this.#messageBytes);
      this.#message = larger;
    }
    buffer.copy(this.#message, this.#messageBytes, start, end);
    this.#messageBytes = neededBytes;
  }

  #takeMessage(opcode: Opcode, buffer: Buffer, start: number, end: number): void {
    if (opcode === OPCODE.binary) return this.events.onBinary(buffer, start, end);
    if (!this.events.onText(buffer, start, end)) this.#fault(CLOSE_CODE.notUtf8);
  }

  #takeClose(buffer: Buffer, start: number, end: number): void {
    const lengthBytes = end - start;
    const code = lengthBytes === 0 ? CLOSE_CODE.none : lengthBytes === 1 ? 0 : buffer.readUInt16BE(start);
    if (lengthBytes > 0 && !isSentCode(code)) return void this.#fault(CLOSE_CODE.protocolError);
    const reason = buffer.subarray(Math.min(end, start + 2), end);
    if (!isUtf8(reason)) return void this.#fault(CLOSE_CODE.notUtf8);
    this.#isOver = true;
    this.events.onClose(code, reason.toString());
  }

  #fault(code: number): false {
    this.#isOver = true;
    this.events.onFault(code);
    return false;
  }
}

function headBytesOf(second: number): number {
  const length = second & 0x7f;
  return length === 127 ? 10 : length === 126 ? 4 : 2;
}

/** More than 32 bits are too many for any limit. */
function lengthOf(head: Buffer, at: number): number {
  return head.readUInt32BE(at) > 0 ? Infinity : head.readUInt32BE(at + 4);
}

/** Whether a peer may send it (RFC 6455 §7.4; IANA's registry for 1012 to 1014). */
function isSentCode(code: number): boolean {
  return (code >= 1_000 && code <= 1_014 && code !== 1_004 && code !== 1_005 && code !== 1_006) || (code >= 3_000 && code < 5_000);
}

/** A close frame's content. */
export function closePayload(code: number, reason = ''): Buffer {
  const text = Buffer.from(reason).subarray(0, MAX_REASON_BYTES);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code);
  payload.set(text, 2);
  return payload;
}

/** Masks that nobody can foresee (RFC 6455 §5.3), as words; one pool serves all connections of a thread. */
const MASKS = new Int32Array(1_024);
let nextMask = MASKS.length;

function newMask(): number {
  if (nextMask === MASKS.length) {
    randomFillSync(MASKS);
    nextMask = 0;
  }
  nextMask += 1;
  return MASKS[nextMask - 1] ?? 0;
}

/** Where a payload is masked, four bytes at a time. */
const WORDS = new Int32Array(2_048);
const BYTES = Buffer.from(WORDS.buffer);

/** A client's frame, whole and masked. A text is UTF-8. */
export function frameOf(opcode: Opcode, payload: Uint8Array | string): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const lengthBytes = bytes.length;
  const maskAt = lengthBytes <= MAX_CONTROL_BYTES ? 2 : lengthBytes < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(maskAt + 4 + lengthBytes);
  frame[0] = FIN | opcode;
  if (maskAt === 2) frame[1] = MASKED | lengthBytes;
  else if (maskAt === 4) {
    frame[1] = MASKED | 126;
    frame[2] = lengthBytes >> 8;
    frame[3] = lengthBytes & 0xff;
  } else {
    frame[1] = MASKED | 127;
    frame.writeUInt32BE(0, 2);
    frame.writeUInt32BE(lengthBytes, 6);
  }
  const mask = newMask();
  WORDS[0] = mask;
  for (let i = 0; i < 4; i += 1) frame[maskAt + i] = BYTES[i] ?? 0;
  for (let at = 0; at < lengthBytes; at += BYTES.length) {
    const part = lengthBytes <= BYTES.length ? bytes : bytes.subarray(at, at + BYTES.length);
    BYTES.set(part);
    for (let i = 0; i < part.length >> 2; i += 1) WORDS[i] = (WORDS[i] ?? 0) ^ mask;
    if ((part.length & 3) !== 0) WORDS[part.length >> 2] = (WORDS[part.length >> 2] ?? 0) ^ mask;
    BYTES.copy(frame, maskAt + 4 + at, 0, part.length);
  }
  return frame;
}
