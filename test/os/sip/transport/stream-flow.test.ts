import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { FlowListener } from '../../../../src/sip/transport/flow.js';
import { StreamFlow } from '../../../../src/sip/transport/stream-flow.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const TIMEOUT_MS = 5_000;
const END = { address: '127.0.0.1', port: 5061 };
const OPTIONS = Buffer.from(
  [
    'OPTIONS sip:127.0.0.1 SIP/2.0',
    'Via: SIP/2.0/TCP 127.0.0.1:40000;branch=z9hG4bK1',
    'From: <sip:a@127.0.0.1>;tag=1',
    'To: <sip:b@127.0.0.1>',
    'Call-ID: 1',
    'CSeq: 1 OPTIONS',
    'Max-Forwards: 70',
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n'),
);

function connection() {
  const clock = new VirtualClock();
  const socket = new Socket();
  const seen = { messages: 0, closes: 0 };
  const listener: FlowListener = {
    onMessage: () => {
      seen.messages += 1;
    },
    onSpoiled: () => undefined,
    onClose: () => {
      seen.closes += 1;
    },
  };
  const limits = { maxHeadBytes: 16_384, maxBodyBytes: 65_536, messageTimeoutMs: TIMEOUT_MS, maxUnsentBytes: 1 << 20 };
  const flow = new StreamFlow(socket, 'TCP', END, END, listener, limits, clock);
  return { clock, flow, seen, read: (bytes: Buffer) => socket.emit('data', bytes) };
}

describe('the time limit of a message', () => {
  it('does not expire on a busy connection whose reads never end where a message ends', () => {
    const { clock, flow, seen, read } = connection();
    const stream = Buffer.concat(Array.from({ length: 100 }, () => OPTIONS));
    // One byte over one message: the seam wanders through the message and is never at its end before the last read.
    const size = OPTIONS.length + 1;
    for (let at = 0; at + size < stream.length; at += size) {
      read(stream.subarray(at, at + size));
      clock.advance(TIMEOUT_MS / 2);
    }
    expect(clock.nowMs()).toBeGreaterThan(20 * TIMEOUT_MS);
    expect(seen).toEqual({ messages: 99, closes: 0 });
    expect(flow.isOpen).toBe(true);
  });

  it('starts with the first byte of the incomplete message', () => {
    const { clock, flow, seen, read } = connection();
    read(OPTIONS.subarray(0, 40));
    clock.advance(TIMEOUT_MS - 1);
    read(Buffer.concat([OPTIONS.subarray(40), OPTIONS.subarray(0, 40)]));
    clock.advance(TIMEOUT_MS - 1);
    expect(flow.isOpen).toBe(true);
    clock.advance(1);
    expect(seen).toEqual({ messages: 1, closes: 1 });
    expect(flow.isOpen).toBe(false);
  });

  it('is not extended by single bytes', () => {
    const { clock, flow, read } = connection();
    for (let at = 0; at < 50; at += 1) {
      read(OPTIONS.subarray(at, at + 1));
      clock.advance(TIMEOUT_MS / 50);
    }
    expect(flow.isOpen).toBe(false);
  });

  it('does not start with CRLF keepalives', () => {
    const { clock, flow, read } = connection();
    read(Buffer.from('\r'));
    read(Buffer.from('\n'));
    clock.advance(10 * TIMEOUT_MS);
    expect(flow.isOpen).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });
});
