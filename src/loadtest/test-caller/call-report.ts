import type { TlsFacts } from '../../sip/transport/flow.js';
import type { CarrierMediaFigures } from './media-leg.js';
import type { SipEvent } from './sip-client.js';

/** Whether one digit was read back. */
export interface DigitReport {
  readonly digit: string;
  /** What the test line was expected to say, or to begin with. */
  readonly phrase: string;
  /** Normalised cross-correlation of the expected phrase with what was heard: 1 is the same audio. */
  readonly score: number;
  readonly threshold: number;
  readonly heard: boolean;
}

/** Everything that a test call saw. All of `checks` must hold for it to have succeeded. */
export interface CallReport {
  readonly ok: boolean;
  readonly outcome: string;
  readonly called: string;
  /** By which the call is found in `trunkline calls list`; `null`: nothing was sent. */
  readonly sip_call_id: string | null;
  /** What was talked to: as the caller said, or as it was recognised. A bot's checks are fewer. `null`: no usable answer came. */
  readonly answered_by: 'test line' | 'bot' | null;
  readonly checks: Readonly<Record<string, boolean>>;
  readonly tls: TlsFacts | null;
  readonly sip: readonly SipEvent[];
  /** `null`: no final answer came. */
  readonly final_status: number | null;
  /** The gateway's own explanation of a refusal. */
  readonly warning: string | null;
  readonly codec: string | null;
  readonly crypto: { readonly tag: string; readonly suite: string } | null;
  readonly answer_ms: number | null;
  readonly media: CarrierMediaFigures | null;
  readonly agent_audio: { readonly heard: boolean; readonly level_dbfs: number | null };
  readonly digits: readonly DigitReport[];
  /** Our own tone came back; `null`: not tried. */
  readonly echo_heard: boolean | null;
  readonly hung_up_by: 'gateway' | 'carrier' | null;
  readonly duration_ms: number;
}

/** Normal call clearing (ITU-T Q.850). */
const CLEARED = 16;

/** What went wrong with a call that the gateway ended, as its BYE says: a reason such as AGENT_LOST; `null`: nothing. @param header `Reason` (RFC 3326) */
export function endFault(header: string | null): string | null {
  const cause = /^Q\.850\s*;\s*cause=(\d+)/i.exec(header ?? '')?.[1];
  if (cause === undefined || Number(cause) === CLEARED) return null;
  return /text="([^"]*)"/.exec(header ?? '')?.[1] ?? `cause ${cause}`;
}

const BY = {
  'test line': 'the test line: keys and echo are looked for',
  bot: 'a bot: keys and echo are not looked for (--digits 1: they are; --bot: it is one)',
  nobody: '-',
} as const;

/** The report as lines for a person. */
export function formatReport(report: CallReport): string {
  const { media } = report;
  const lines = [
    `Called            ${report.called}`,
    `Call-ID           ${report.sip_call_id ?? '-'}`,
    `Answered by       ${BY[report.answered_by ?? 'nobody']}`,
    `TLS               ${report.tls === null ? '-' : `${report.tls.version} ${report.tls.cipher}`}`,
    ...report.sip.map(({ atMs, direction, summary }) => `  ${String(atMs).padStart(6)} ms  ${direction === 'sent' ? '→' : '←'} ${summary}`),
    `Codec, key        ${report.codec ?? '-'}, ${report.crypto === null ? 'no SRTP' : `${report.crypto.suite} (tag ${report.crypto.tag})`}`,
  ];
  if (report.warning !== null) lines.push(`Explanation       ${report.warning}`);
  if (media !== null) {
    lines.push(
      `RTP               sent ${media.packetsSent} (lost ${media.remoteLost ?? '?'}), received ${media.packetsReceived} (lost ${media.packetsLost}, bad ${media.packetsBad}), jitter ${media.jitterMs} ms`,
      `RTCP              sent ${media.rtcpSent}, received ${media.rtcpReceived}, round trip ${media.roundTripMs === null ? '?' : media.roundTripMs.toFixed(2)} ms`,
    );
  }
  lines.push(`Agent heard       ${report.agent_audio.heard ? `yes, ${String(report.agent_audio.level_dbfs)} dBFS` : 'no'}`);
  for (const { digit, score, threshold, heard } of report.digits) {
    lines.push(`Digit ${digit}           ${heard ? 'read back' : 'NOT read back'} (score ${score.toFixed(3)}, threshold ${threshold})`);
  }
  if (report.echo_heard !== null) lines.push(`Echo              ${report.echo_heard ? 'heard' : 'NOT heard'}`);
  const failed = Object.entries(report.checks).flatMap(([name, holds]) => (holds ? [] : [name]));
  if (!report.ok && report.sip_call_id !== null) lines.push('', `More: trunkline calls list --sip-call-id ${report.sip_call_id}`);
  lines.push('', report.ok ? `ok: ${report.outcome}` : `FAILED: ${report.outcome}${failed.length > 0 ? ` (${failed.join(', ')})` : ''}`);
  return lines.join('\n');
}
