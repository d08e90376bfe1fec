import { expect } from 'vitest';
import { deliver, readMessage, served, valuesOf, withoutTopVia, type Outcome, type Way } from '../../support/wire.js';

/** What a torture message comes to. */
export type Expected =
  /** The application gets it byte by byte, save the note of its source in the top Via, and its answer goes back. */
  | 'forwarded'
  /** The same, but what follows it in the stream is none of SIP: the connection closes, and with it the call. */
  | 'forwarded, then closed'
  /** Nothing comes of it. */
  | 'dropped'
  /** The stream waits for the rest. */
  | 'waits'
  /** The server answers: status and reason. */
  | { readonly answered: string; readonly thenCloses?: boolean };

export const answered = (status: string): Expected => ({ answered: status });
export const answeredAndClosed = (status: string): Expected => ({ answered: status, thenCloses: true });

/** A row of the table: sends the message in a datagram and over a connection. */
export function torture(read: () => string, expected: Expected, overStream: Expected = expected): () => Promise<void> {
  return async () => {
    const text = read();
    await check(text, 'datagram', expected);
    await check(text, 'stream', overStream);
    await check(text, 'dripping stream', overStream);
  };
}

/** As `torture` for the messages of one RFC; `names` are those that have a row. */
export function tortureOf(rfc: string): {
  row: (name: string, expected: Expected, overStream?: Expected) => () => Promise<void>;
  names: string[];
} {
  const names: string[] = [];
  return {
    names,
    row: (name, expected, overStream) => {
      names.push(name);
      return torture(() => readMessage(rfc, name), expected, overStream);
    },
  };
}

async function check(text: string, way: Way, expected: Expected): Promise<void> {
  const bench = await served(way);
  const outcome = await deliver(bench, text, way);
  const isClosed = expected === 'forwarded, then closed' || (typeof expected === 'object' && expected.thenCloses === true);
  expect(outcome.isConnected, way).toBe(!isClosed);
  if (expected === 'forwarded') {
    checkForwarded(text, outcome);
    return;
  }
  if (expected === 'forwarded, then closed') {
    expect(outcome.forwarded.map((message) => message.split(' ')[0])).toEqual(['INVITE', 'CANCEL']);
    expect(withoutTopVia(outcome.forwarded[0]!)).toBe(withoutTopVia(sized(text)));
    return;
  }
  expect(outcome.forwarded, way).toEqual([]);
  if (typeof expected !== 'object') expect(outcome.answers, way).toEqual([]);
  else {
    expect(outcome.answers, way).toHaveLength(1);
    expect(outcome.answers[0], way).toMatch(`SIP/2.0 ${expected.answered}\r\n`);
    checkAnswer(text, outcome.answers[0]!);
  }
  if (expected === 'waits') {
    await bench.pass(10_001);
    expect(bench.isCallerConnected, 'after the time limit').toBe(false);
  }
}

function checkForwarded(sent: string, { forwarded, answers }: Outcome): void {
  expect(forwarded).toHaveLength(1);
  expect(withoutTopVia(forwarded[0]!)).toBe(withoutTopVia(unfolded(sized(sent))));
  expect(answers).toHaveLength(1);
  expect(answers[0]).toMatch('SIP/2.0 404 Not Found\r\n');
  checkAnswer(sent, answers[0]!);
}

/** Folded headers stand on one line, which every application can read; the others are as they came. */
function unfolded(text: string): string {
  const headEnd = text.indexOf('\r\n\r\n');
  const lines = text.slice(0, headEnd).split(/\r\n(?![ \t])/);
  const single = (line: string): string =>
    line.includes('\r\n') ? line.replace(/\r\n[ \t]+/g, ' ').replace(/^([^:]*):[ \t]*(.*?)[ \t]*$/, '$1: $2') : line;
  return lines.map(single).join('\r\n') + text.slice(headEnd);
}

/** Without what follows the body in the datagram; with a Content-Length where it has none, which the application always gets. */
function sized(text: string): string {
  const headEnd = text.indexOf('\r\n\r\n');
  const stated = valuesOf(text, 'content-length')[0] ?? valuesOf(text, 'l')[0];
  if (stated !== undefined) return text.slice(0, headEnd + 4 + Number(stated));
  return `${text.slice(0, headEnd)}\r\nContent-Length: ${text.length - headEnd - 4}${text.slice(headEnd)}`;
}

/** RFC 3261 §8.2.6.2: an answer has the request's Via values in order, its From, Call-ID and CSeq, and its To with a tag. */
export function checkAnswer(sent: string, answer: string): void {
  const [top, ...others] = valuesOf(sent, 'via');
  const [answeredTop = '', ...answeredOthers] = valuesOf(answer, 'via');
  expect(answeredOthers).toEqual(others);
  // The source is noted behind the first of several values in the line (RFC 3261 §18.2.1), or its rport filled in.
  expect(answeredTop.replace(/;received=127\.0\.0\.1/, '').replace(';rport=6000', ';rport')).toBe(top);
  for (const name of ['from', 'call-id', 'cseq']) expect(valuesOf(answer, name)).toEqual(valuesOf(sent, name).slice(0, 1));
  const [to] = valuesOf(sent, 'to');
  const [answeredTo = ''] = valuesOf(answer, 'to');
  if (to === undefined) return;
  if (/;[ \t]*tag/i.test(to)) expect(answeredTo).toBe(to);
  else expect(answeredTo.replace(/;tag=[\w-]+$/, '')).toBe(to);
  expect(answeredTo).toMatch(/;[ \t]*tag[ \t]*=/);
}
