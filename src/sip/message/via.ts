import { parseHostPort, parseParams } from './uri.js';

/** One Via value (RFC 3261 §20.42). */
export interface Via {
  /** The whole value. */
  readonly text: string;
  /** Upper case: `TLS`, `TCP`, `UDP`, … */
  readonly transport: string;
  /** Sent-by; the host without brackets, in lower case. */
  readonly host: string;
  readonly port: number | null;
  /** '' when there is none. */
  readonly branch: string;
  readonly params: ReadonlyMap<string, string>;
}

/** `;` with nothing after it (RFC 4475 §3.1.2.1). */
const EMPTY_PARAMETER = /;[ \t]*(?:;|$)/;

/** RFC 3261 §8.1.1.7: a branch that begins so is unique by itself. */
export const MAGIC_COOKIE = 'z9hG4bK';

export function parseVia(text: string): Via | undefined {
  const match = /^SIP[ \t]*\/[ \t]*2\.0[ \t]*\/[ \t]*([A-Za-z0-9.!%*_+`'~-]+)[ \t]+([^; \t]+(?:[ \t]*:[ \t]*\d+)?)[ \t]*(;[\s\S]*)?$/i.exec(
    text,
  );
  if (match === null || EMPTY_PARAMETER.test(match[3] ?? '')) return undefined;
  const sentBy = parseHostPort(match[2] ?? '');
  if (sentBy === undefined) return undefined;
  const params = parseParams(match[3] ?? '');
  const { host, port } = sentBy;
  return { text, transport: (match[1] ?? '').toUpperCase(), host, port, branch: params.get('branch') ?? '', params };
}

/**
 * The Via value as the receiver of a request keeps it: `received` when the source address is not the sent-by host
 * (RFC 3261 §18.2.1), `rport` filled in when it was asked for (RFC 3581 §4). Unchanged text when neither applies.
 */
export function stampVia(via: Via, source: { readonly address: string; readonly port: number }): string {
  let stamped = via.text;
  if (via.host === source.address && !/rport/i.test(stamped)) return stamped;
  const asked = via.params.get('rport') === '';
  if (asked) stamped = stamped.replace(/;\s*rport(?=\s*(;|$))/i, `;rport=${String(source.port)}`);
  if ((asked || via.host !== source.address) && !via.params.has('received')) stamped += `;received=${source.address}`;
  return stamped;
}
