import { parseNameAddr, parseSipUri } from '../message/uri.js';
import type { Endpoint, Target, TransportName } from './flow.js';

/** An SRV record (RFC 2782). */
export interface SrvRecord {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
  readonly weight: number;
}

/** A NAPTR record (RFC 3403). */
export interface NaptrRecord {
  readonly order: number;
  readonly preference: number;
  readonly flags: string;
  readonly service: string;
  readonly replacement: string;
}

/** With more records than this, services are not queried. */
const MAX_SERVICES = 4;

/** Names of the SRV records of a domain's SIP over TLS, in the order to try (RFC 3263 §4.1). */
export function secureServices(records: readonly NaptrRecord[]): string[] {
  return records
    .filter(({ flags, service, replacement }) => /^s$/i.test(flags) && /^SIPS\+D2T$/i.test(service) && replacement !== '')
    .sort((one, other) => one.order - other.order || one.preference - other.preference)
    .slice(0, MAX_SERVICES)
    .map(({ replacement }) => replacement);
}

/** Owner name of the SRV records of a domain and transport (RFC 3263 §4.2). */
export function serviceName(transport: TransportName, domain: string): string {
  const service = { TLS: '_sips._tcp', TCP: '_sip._tcp', UDP: '_sip._udp' }[transport];
  return `${service}.${domain}`;
}

export function defaultPort(transport: TransportName): number {
  return transport === 'TLS' ? 5061 : 5060;
}

/** Order of servers (RFC 2782): by priority, then random by weight, weight 0 almost never first. `random` returns 0 up to 1. */
export function orderServers(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  const priorities = [...new Set(records.map(({ priority }) => priority))].sort((one, other) => one - other);
  return priorities.flatMap((priority) =>
    drawByWeight(
      records.filter((record) => record.priority === priority),
      random,
    ),
  );
}

function drawByWeight(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  // RFC 2782: weight 0 goes first, so that only a draw of exactly 0 selects it while others are left.
  const left = [...records].sort((one, other) => one.weight - other.weight);
  const drawn: SrvRecord[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, { weight }) => sum + weight, 0);
    const draw = Math.floor(random() * (total + 1));
    let sum = 0;
    const index = left.findIndex(({ weight }) => (sum += weight) >= draw);
    drawn.push(...left.splice(Math.max(index, 0), 1));
  }
  return drawn;
}

/** Distinct addresses, in order, at most `limit`. */
export function distinctEndpoints(endpoints: readonly Endpoint[], limit: number): Endpoint[] {
  const byText = new Map(endpoints.map((endpoint) => [`${endpoint.address}|${String(endpoint.port)}`, endpoint]));
  return [...byText.values()].slice(0, limit);
}

/** Transport, host and port of a URI (RFC 3263 §4.1, without NAPTR); `undefined`: unsupported. `usual`: the transport if it names none. */
export function resolveTarget(uriOrNameAddr: string, usual: TransportName = 'UDP'): Target | undefined {
  // Without angle brackets parseNameAddr would read the URI's parameters, transport among them, as the header's.
  const uri = parseSipUri(uriOrNameAddr.includes('<') ? (parseNameAddr(uriOrNameAddr)?.uri ?? '') : uriOrNameAddr);
  if (uri === undefined) return undefined;
  const named = uri.params.get('transport')?.toUpperCase();
  const transport = uri.scheme === 'sips' || named === 'TLS' ? 'TLS' : (named ?? usual);
  if (!isTransport(transport)) return undefined;
  const host = uri.params.get('maddr') ?? uri.host;
  return { transport, host, port: uri.port };
}

/** RFC 3261 §18.1.1, for an unknown path MTU. */
const MAX_DATAGRAM_BYTES = 1_300;

/** Target for a request too long for UDP; `undefined`: it fits, or the URI names its transport. */
export function insteadOfUdp(uriOrNameAddr: string, lengthBytes: number): Target | undefined {
  if (lengthBytes <= MAX_DATAGRAM_BYTES || resolveTarget(uriOrNameAddr)?.transport !== 'UDP') return undefined;
  const target = resolveTarget(uriOrNameAddr, 'TCP');
  return target?.transport === 'TCP' ? { ...target, isAttempt: true } : undefined;
}

function isTransport(text: string): text is TransportName {
  return text === 'TLS' || text === 'TCP' || text === 'UDP';
}
