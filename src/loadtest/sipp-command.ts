import { formatHost, formatHostPort } from '../lib/address.js';

/** How SIPp reaches the gateway: it speaks TLS itself, or to a tunnel on this machine. */
export type SippWay =
  | { readonly kind: 'tls'; readonly certificate: string; readonly key: string; readonly caFile: string }
  | { readonly kind: 'tunnel'; readonly port: number };

/** One SIPp process. */
export interface SippJob {
  readonly way: SippWay;
  readonly target: { readonly host: string; readonly port: number };
  /** This machine's address towards the target. */
  readonly localAddress: string;
  readonly scenario: string;
  /** Whether the scenario logs each answer with its time; of others SIPp's own response times are read. */
  readonly tellsAnswers: boolean;
  readonly called: string;
  readonly caller: string;
  readonly cps: number;
  readonly calls: number;
  readonly holdMs: number;
  readonly setupTimeoutMs: number;
  /** SDP direction of calls without media. */
  readonly direction: 'sendrecv' | 'inactive';
  /** File of slots for calls with media; null: none. */
  readonly slotsFile: string | null;
}

export const STAT_FILE = 'stat.csv';
export const ERROR_FILE = 'errors.log';
export const CALLS_FILE = 'calls.log';

/** Whether this build speaks TLS, by what `sipp -v` prints. */
export function speaksTls(version: string): boolean {
  return /SIPp v[^\s]*-TLS/.test(version);
}

/** The version, such as `v3.6.1-SCTP-PCAP`; null: it is no SIPp. */
export function sippVersion(text: string): string | null {
  return /SIPp (v[0-9][^\s]*?)\.?\s/.exec(text)?.[1] ?? null;
}

/** The discard port: packets of the agent to calls without media go where nobody listens. */
const NOBODY = 9;

export function sippArguments(job: SippJob): string[] {
  const { way, target, localAddress, tellsAnswers } = job;
  const peer = way.kind === 'tunnel' ? `127.0.0.1:${String(way.port)}` : formatHostPort(target.host, target.port);
  const transport = way.kind === 'tunnel' ? ['-t', 't1'] : ['-t', 'l1', '-tls_cert', way.certificate, '-tls_key', way.key];
  const trust = way.kind === 'tls' ? ['-tls_ca', way.caFile] : [];
  const keys = {
    target: formatHostPort(target.host, target.port),
    caller: job.caller,
    audio_ip: formatHost(localAddress),
    direction: job.direction,
  };
  return [
    ...[peer, ...transport, ...trust],
    // Its control port listens on loopback too.
    ...['-i', way.kind === 'tunnel' ? '127.0.0.1' : localAddress, '-ci', '127.0.0.1', '-nostdin', '-timer_resol', '1'],
    ...['-sf', job.scenario, '-s', job.called, '-d', String(job.holdMs), '-recv_timeout', String(job.setupTimeoutMs)],
    ...['-r', String(job.cps), '-m', String(job.calls), '-l', String(job.calls)],
    ...Object.entries({ ...keys, audio_port: String(NOBODY) }).flatMap(([name, value]) => ['-key', name, value]),
    ...(job.slotsFile === null ? [] : ['-inf', job.slotsFile]),
    ...['-trace_stat', '-fd', '1', '-stf', STAT_FILE, '-trace_err', '-error_file', ERROR_FILE, '-trace_logs', '-log_file', CALLS_FILE],
    ...(tellsAnswers ? [] : ['-trace_rtt', '-rtt_freq', '1']),
    // As a carrier: a connection that the gateway closes, as at its reload, is opened again, and the calls on it go on.
    ...['-max_reconnect', '1000000', '-reconnect_close', 'false', '-reconnect_sleep', '0'],
    // The result reports a busy machine; SIPp would end the run.
    ...['-watchdog_minor_maxtriggers', '1000000', '-watchdog_major_maxtriggers', '1000000'],
  ];
}

/** Splits calls and their rate evenly over processes; the first ones get what is left over. */
export function shares(cps: number, calls: number, processes: number): { readonly cps: number; readonly calls: number }[] {
  const count = Math.max(1, Math.min(processes, calls));
  const least = Math.floor(calls / count);
  const more = calls - least * count;
  return Array.from({ length: count }, (_, index) => {
    const own = least + (index < more ? 1 : 0);
    return { calls: own, cps: round((cps * own) / calls) };
  });
}

const round = (value: number): number => Math.max(0.001, Math.round(value * 1_000) / 1_000);
const CPS_A_CONNECTION = 500;

/** Calls a second that one TLS connection, its tunnel and its SIPp carry, about. */
export function connectionsFor(cps: number): number {
  return Math.max(1, Math.ceil(cps / CPS_A_CONNECTION));
}

/**
 * Slots are taken in turn, so a slot comes again after as many calls as there are slots: as many as can be in progress at once when each
 * call takes as long as it may at worst.
 */
export function slotsFor(share: { readonly cps: number; readonly calls: number }, holdMs: number, setupTimeoutMs: number): number {
  const longestMs = holdMs + 2 * setupTimeoutMs;
  return Math.min(share.calls, Math.ceil((share.cps * longestMs) / 1_000) + 8);
}

/** An injection file: the slot, its port and its key. */
export function slotsText(slots: readonly { readonly slot: number; readonly port: number; readonly key: string }[]): string {
  return ['SEQUENTIAL', ...slots.map(({ slot, port, key }) => `${String(slot)};${String(port)};${key}`), ''].join('\n');
}
