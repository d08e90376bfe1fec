import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, parseDocument, type Pair } from 'yaml';
import { table } from './table.js';

export interface Setting {
  readonly path: string;
  readonly variable: string;
  readonly byDefault: string;
  readonly meaning: string;
}

/** For the settings that config/default.yaml leaves without a comment: the name, or the setting before, says it there. */
const MEANINGS: Readonly<Record<string, string>> = {
  'sip.tls_port': 'where carriers connect; null: off',
  'sip.udp_port': 'as `sip.tcp_port`',
  'sip.key_file': 'PEM, the key of `sip.cert_file`: both or none',
  'sip.t2_ms': 'longest gap between repetitions',
  'sip.t4_ms': 'longest life of a message in the network',
  'sip.max_headers': 'headers of one message',
  'sip.max_body_bytes': 'body of one message',
  'sip.max_connections': 'TLS and TCP connections, each kind, and those that we open; more are closed at once, or not opened',
  'sip.max_connections_per_source': 'the same from one address',
  'sip.handshake_timeout_ms': 'TLS handshake',
  'http.port': 'control API',
  'http.max_requests_per_minute_per_key': 'of one API key',
  'rtpengine.port_max': 'last of them',
  'rtpengine.threads': 'of the embedded rtpengine',
  'media.port_max': 'last of them',
};

/** Names that differ from TRUNKLINE_ and the path. */
const VARIABLES: Readonly<Record<string, string>> = { 'rtpengine.address': 'TRUNKLINE_RTPENGINE' };

/** Every setting of config/default.yaml, with the comment behind it. */
export function settings(): Setting[] {
  const document = parseDocument(readFileSync(new URL('../../config/default.yaml', import.meta.url), 'utf8'));
  return isMap(document.contents) ? document.contents.items.flatMap((pair) => fromPair(pair, '')) : [];
}

function fromPair({ key, value }: Pair, prefix: string): Setting[] {
  const path = `${prefix}${isScalar(key) ? String(key.value) : ''}`;
  if (isMap(value)) return value.items.flatMap((pair) => fromPair(pair, `${path}.`));
  if (!isScalar(value) && !isSeq(value)) return [];
  return [
    {
      path,
      variable: VARIABLES[path] ?? `TRUNKLINE_${path.replaceAll('.', '_').toUpperCase()}`,
      byDefault: isSeq(value) ? `[${value.items.map(String).join(', ')}]` : String(value.value),
      meaning: value.comment?.trim() ?? MEANINGS[path] ?? '',
    },
  ];
}

export function settingsTable(): string {
  const groups = new Map<string, Setting[]>();
  for (const setting of settings()) {
    const group = setting.path.includes('.') ? (setting.path.split('.')[0] ?? '') : 'general';
    groups.set(group, [...(groups.get(group) ?? []), setting]);
  }
  const rows = [...groups.values()].flat();
  return table(
    ['setting', 'environment', 'default', 'meaning'],
    rows.map(({ path, variable, byDefault, meaning }) => [`\`${path}\``, `\`${variable}\``, `\`${byDefault}\``, meaning]),
  );
}
