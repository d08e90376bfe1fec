import { createHash } from 'node:crypto';

// The handshake of WebSocket (RFC 6455 §4), as a client makes it.

/** RFC 6455 §1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** As much as Node.js takes of an answer's headers. */
const MAX_HEAD_BYTES = 16_384;
const HEAD_END = '\r\n\r\n';

export interface UpgradeRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Sixteen random bytes in base64. */
  readonly key: string;
}

/** @throws Error if a header's value would end its line */
export function upgradeText({ url, headers, key }: UpgradeRequest): string {
  const all = {
    Host: url.host,
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key,
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => {
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) throw new Error(`the header ${name} has characters that no header may have`);
    return `${name}: ${value}\r\n`;
  });
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

export type UpgradeOutcome =
  /** More is to come. */
  | null
  /** A WebSocket from here on; what came behind the answer. */
  | { readonly ok: true; readonly rest: Buffer }
  /** For a person. */
  | { readonly ok: false; readonly message: string };

/** Reads the answer to an upgrade, which comes in pieces. */
export class UpgradeAnswer {
  #text = '';

  constructor(private readonly key: string) {}

  read(bytes: Buffer): UpgradeOutcome {
    this.#text += bytes.toString('latin1');
    const end = this.#text.indexOf(HEAD_END);
    if (end > MAX_HEAD_BYTES || (end < 0 && this.#text.length > MAX_HEAD_BYTES))
      return refused('the answer to the upgrade has more than 16 kB of headers');
    if (end < 0) return null;
    const [statusLine = '', ...lines] = this.#text.slice(0, end).split('\r\n');
    const rest = Buffer.from(this.#text.slice(end + HEAD_END.length), 'latin1');
    const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1];
    if (status === undefined) return refused('the upgrade was not answered in HTTP');
    // It is on its way (RFC 9110 §15.2).
    if (status.startsWith('1') && status !== '101') {
      this.#text = '';
      return this.read(rest);
    }
    if (status !== '101') return refused(`the upgrade was answered with HTTP ${status}`);
    const message = faultOf(headersOf(lines), this.key);
    return message === null ? { ok: true, rest } : refused(message);
  }
}

function refused(message: string): UpgradeOutcome {
  return { ok: false, message };
}

function headersOf(lines: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

function faultOf(headers: ReadonlyMap<string, string>, key: string): string | null {
  if (headers.get('upgrade')?.toLowerCase() !== 'websocket') return 'the answer to the upgrade has no Upgrade: websocket';
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  if (headers.get('sec-websocket-accept') !== accept)
    return 'the answer to the upgrade has another Sec-WebSocket-Accept than that of the key';
  for (const name of ['sec-websocket-extensions', 'sec-websocket-protocol'])
    if (headers.has(name)) return `the answer to the upgrade has ${name}, which was not asked for`;
  return null;
}
