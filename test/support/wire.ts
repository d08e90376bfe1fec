import { readdirSync, readFileSync } from 'node:fs';
import { Bench, type BenchLimits } from './transcript.js';

/** Messages of an RFC as files, bytes as printed there. */
export function readMessage(rfc: string, name: string): string {
  return readFileSync(new URL(`../fixtures/${rfc}/${name}.dat`, import.meta.url), 'latin1');
}

export function messageNames(rfc: string): string[] {
  return readdirSync(new URL(`../fixtures/${rfc}/`, import.meta.url)).map((file) => file.replace(/\.dat$/, ''));
}

/** What came of a message: what went out, what the application got, and how the connection stands. */
export interface Outcome {
  /** Final answers, whole. */
  readonly answers: readonly string[];
  /** What the application got, without the meta lines. */
  readonly forwarded: readonly string[];
  readonly isConnected: boolean;
}

/** How bytes come to the server: a datagram, or a connection, whole or one byte a read. */
export type Way = 'datagram' | 'stream' | 'dripping stream';

/** A server whose one application has asked for every method it may ask for, and a caller at 127.0.0.1:6000. */
export async function served(way: Way, limits: Partial<BenchLimits> = {}): Promise<Bench> {
  const bench = way === 'datagram' ? new Bench('UDP', 6_000, 'messages', limits) : new Bench('TCP', 6_000, 'bytes', limits);
  for (const method of ['invite', 'register', 'options', 'message']) bench.fromApp(`${method}|route|${method}`);
  await bench.settle();
  bench.toApp.length = 0;
  return bench;
}

/** Sends it, and lets the application answer 404 to all that it gets: each answer shows what the server read. */
export async function deliver(bench: Bench, text: string, way: Way): Promise<Outcome> {
  if (way === 'dripping stream') for (const byte of text) bench.fromCaller(byte);
  else bench.fromCaller(text);
  await bench.settle();
  const forwarded = bench.toApp.filter((payload) => payload.includes('|sip|network|'));
  for (const payload of forwarded) bench.fromApp(`a|sip|${payload.split('|')[8] ?? ''}|\r\nSIP/2.0 404 Not Found\r\n\r\n`);
  await bench.settle();
  const answers = bench.toCaller.join('').split(/(?=SIP\/2\.0 \d{3} [^\r\n]*\r\n)/);
  return {
    answers: answers.filter((answer) => /^SIP\/2\.0 [2-6]/.test(answer)),
    forwarded: forwarded.map((payload) => payload.slice(payload.indexOf('\r\n') + 2)),
    isConnected: bench.isCallerConnected,
  };
}

/** The lines of a head; a folded one counts as one. */
function headLines(text: string): string[] {
  return text.slice(0, text.indexOf('\r\n\r\n')).split(/\r\n(?![ \t])/);
}

const LONG: Readonly<Record<string, string>> = { v: 'via', f: 'from', t: 'to', i: 'call-id' };

/** The values of a header, unfolded, as RFC 3261 §7.3 reads them: written without anything of the server's. */
export function valuesOf(text: string, name: string): string[] {
  return headLines(text)
    .slice(1)
    .map((line) => /^([^:]*?)[ \t]*:([\s\S]*)$/.exec(line))
    .filter((match) => match !== null && (LONG[match[1]!.toLowerCase()] ?? match[1]!.toLowerCase()) === name)
    .map((match) => match![2]!.replace(/\r\n[ \t]+/g, ' ').replace(/^[ \t]+|[ \t]+$/g, ''));
}

/** The message without its top Via, in which the server notes where it came from. */
export function withoutTopVia(text: string): string {
  const lines = headLines(text);
  const index = lines.findIndex((line) => /^(via|v)[ \t]*:/i.test(line));
  return [...lines.slice(0, index), ...lines.slice(index + 1)].join('\r\n') + text.slice(text.indexOf('\r\n\r\n'));
}
