import { createHash } from 'node:crypto';
import { readTrunkTls, TRUNK_TLS_HEADER } from '../lib/own-headers.js';
import { getHeader } from '../sip/message/message.js';
import type { PeerTls } from '../sip/transport/flow.js';
import type { AppMessage } from './app-message.js';

const MAX_KNOWN = 200;

/** TLS settings of trunks, as requests of the gateway have them. */
export class PeerTlsSettings {
  /** By the header's value, oldest first. */
  readonly #known = new Map<string, PeerTls>();

  /** `undefined`: the request has none. `null`: they are unreadable. */
  of(message: AppMessage): PeerTls | null | undefined {
    const value = getHeader(message, TRUNK_TLS_HEADER.toLowerCase());
    if (value === undefined) return undefined;
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const read = readTrunkTls(value);
    if (read === undefined) return null;
    const { ca = null, names = [], certificate, key } = read;
    const own = certificate === undefined || key === undefined ? null : { certificate, key };
    const tls: PeerTls = { id: createHash('sha256').update(value).digest('base64url'), ca, names, own };
    this.#known.set(value, tls);
    const oldest = this.#known.size > MAX_KNOWN ? this.#known.keys().next().value : undefined;
    if (oldest !== undefined) this.#known.delete(oldest);
    return tls;
  }
}
