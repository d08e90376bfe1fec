import { byteAt, uint16At, writeUint16 } from '../rtp-packet.js';

export const TELEPHONE_EVENT_BYTES = 4;
/** 0-9, 10 `*`, 11 `#`, 12-15 A-D (RFC 4733 §3.2). */
export const LAST_DTMF_EVENT = 15;
/** RFC 4733 §2.3.5: the longest duration that one segment of an event can state. */
export const MAX_DURATION_TICKS = 0xffff;

const DIGITS = '0123456789*#ABCD';

/** The event code of a digit, or `undefined`. */
export function eventOfDigit(digit: string): number | undefined {
  const event = digit.length === 1 ? DIGITS.indexOf(digit.toUpperCase()) : -1;
  return event < 0 ? undefined : event;
}

/** The digit of an event code 0 to 15, else `undefined`. */
export function digitOfEvent(event: number): string | undefined {
  return DIGITS[event];
}

/** One event of a telephone-event payload (RFC 4733 §2.3). */
export interface TelephoneEvent {
  readonly event: number;
  readonly isEnd: boolean;
  /** In -dBm0. */
  readonly volume: number;
  readonly durationTicks: number;
}

/** Reads the four bytes at `offset`. */
export function readTelephoneEvent(buffer: Uint8Array, offset: number): TelephoneEvent {
  const flags = byteAt(buffer, offset + 1);
  return {
    event: byteAt(buffer, offset),
    isEnd: (flags & 0x80) !== 0,
    volume: flags & 0x3f,
    durationTicks: uint16At(buffer, offset + 2),
  };
}

/** Writes the four bytes at `offset`. */
export function writeTelephoneEvent(target: Uint8Array, offset: number, event: TelephoneEvent): void {
  target[offset] = event.event;
  target[offset + 1] = (event.isEnd ? 0x80 : 0) | (event.volume & 0x3f);
  writeUint16(target, offset + 2, event.durationTicks);
}
