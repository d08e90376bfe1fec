import { describe, expect, it } from 'vitest';
import { TimerQueue } from '../../../src/lib/timers.js';
import { parseMessage } from '../../../src/sip/message/parse.js';
import { DEFAULT_TIMERS } from '../../../src/sip/transaction/timers.js';
import { ClientTransaction, type TransactionHost } from '../../../src/sip/transaction/transaction-runner.js';
import type { Flow } from '../../../src/sip/transport/flow.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const LIMITS = { maxHeaders: 30, maxHeaderBytes: 300, maxBodyBytes: 300 };

/** What goes out after an INVITE with these headers got this answer. */
function sentAfter(status: number, extra: readonly string[] = []): string[] {
  const sent: string[] = [];
  const endpoint = { address: '192.0.2.1', port: 5060 };
  const flow: Flow = {
    transport: 'UDP',
    reliable: false,
    remote: endpoint,
    local: endpoint,
    isOpen: true,
    send: (text) => sent.push(text),
    close: () => undefined,
  };
  const host: TransactionHost = {
    timers: new TimerQueue(new VirtualClock()),
    timerSettings: DEFAULT_TIMERS,
    reliableContext: { ...DEFAULT_TIMERS, reliable: true },
    unreliableContext: { ...DEFAULT_TIMERS, reliable: false },
    ended: () => undefined,
  };
  const headers = ['Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKa', 'From: <sip:a@b>;tag=1', 'Call-ID: c1', 'CSeq: 7 INVITE'];
  const text = (lines: readonly string[]): string => `${[...lines, 'Content-Length: 0'].join('\r\n')}\r\n\r\n`;
  const invite = parseMessage(text(['INVITE sip:b@192.0.2.1 SIP/2.0', ...headers, 'To: <sip:b@c>', 'Max-Forwards: 9', ...extra]), LIMITS);
  const answer = parseMessage(text([`SIP/2.0 ${String(status)} No`, ...headers, 'To: <sip:b@c>;tag=2']), LIMITS);
  if (!invite.ok || invite.value.kind !== 'request' || !answer.ok || answer.value.kind !== 'response') throw new Error('no message');
  const owner = { onResponse: () => undefined, onFailure: () => undefined, onEnded: () => undefined };
  new ClientTransaction(host, 'key', invite.value, '<INVITE>', flow, owner).received(answer.value);
  return sent;
}

describe('an INVITE client transaction', () => {
  it('[3261 §17.1.1.3] builds the ACK from the INVITE (URI, Via, From, Call-ID, Route, CSeq number) and the To of the error response', () => {
    const lines = [
      'ACK sip:b@192.0.2.1 SIP/2.0',
      'Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKa',
      'Max-Forwards: 70',
      'From: <sip:a@b>;tag=1',
      'To: <sip:b@c>;tag=2',
      'Call-ID: c1',
      'CSeq: 7 ACK',
    ];
    const routes = ['Route: <sip:p1.example;lr>', 'Route: <sip:p2.example;lr>'];
    const end = 'Content-Length: 0\r\n\r\n';
    expect(sentAfter(486)).toEqual([`${lines.join('\r\n')}\r\n${end}`]);
    expect(sentAfter(300, [...routes, 'Subject: x'])).toEqual([`${[...lines, ...routes].join('\r\n')}\r\n${end}`]);
  });

  it.each([180, 200, 299])('[3261 §17.1.1.3] sends no ACK to a %i', (status) => {
    expect(sentAfter(status)).toEqual([]);
  });
});
