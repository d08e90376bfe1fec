import type { QueuedTimer, TimerQueue } from '../../lib/timers.js';
import { DEFAULT_EXPIRES_SECONDS, MAX_EXPIRES_SECONDS } from './user-agent-context.js';
import { getHeader, getList, type SipRequest, type SipResponse } from '../message/message.js';
import { parseNameAddr, parseSipUri } from '../message/uri.js';
import type { Flow } from '../transport/flow.js';

interface Registration {
  /** Whose Contact it is: user@host of the request's To; `undefined`: that is no SIP URI, and tells nobody apart. */
  readonly owner: string | undefined;
  readonly flow: Flow;
  readonly expiry: QueuedTimer;
}

/** Contacts of one request, and of all: bounds what peers can make us store. */
const MAX_CONTACTS = 10;
const MAX_REGISTRATIONS = 100_000;

/** Maps a Contact to the connection that registered it (in the spirit of RFC 5626): the only way to a client behind NAT. */
export class RegisteredFlows {
  readonly #registrations = new Map<string, Registration>();

  constructor(private readonly timers: TimerQueue) {}

  get size(): number {
    return this.#registrations.size;
  }

  /** The open connection over which this URI's user@host registered. */
  find(uri: string): Flow | undefined {
    if (this.#registrations.size === 0) return undefined;
    const key = keyOf(uri);
    const registration = key === undefined ? undefined : this.#registrations.get(key);
    if (key === undefined || registration === undefined) return undefined;
    if (registration.flow.isOpen) return registration.flow;
    this.#remove(key);
    return undefined;
  }

  /** After a 2xx to REGISTER or SUBSCRIBE: stores its Contacts for the granted time; 0 seconds, or `*`, removes them. */
  granted(request: SipRequest, response: SipResponse, flow: Flow): void {
    if (!flow.reliable) return;
    const owner = keyOf(parseNameAddr(getHeader(request, 'to') ?? '')?.uri ?? '');
    for (const value of getList(request, 'contact').slice(0, MAX_CONTACTS)) {
      if (value.trim() === '*' && owner !== undefined) this.#removeAll(owner);
      const contact = parseNameAddr(value);
      const key = contact === undefined ? undefined : keyOf(contact.uri);
      if (contact === undefined || key === undefined) continue;
      this.#remove(key);
      const granted = grantedContact(response, key) ?? contact.params.get('expires');
      const seconds = Number(granted ?? getHeader(response, 'expires') ?? getHeader(request, 'expires') ?? DEFAULT_EXPIRES_SECONDS);
      if (!(seconds > 0) || this.#registrations.size >= MAX_REGISTRATIONS) continue;
      const expiry = this.timers.start(Math.min(seconds, MAX_EXPIRES_SECONDS) * 1_000, () => this.#registrations.delete(key));
      this.#registrations.set(key, { owner, flow, expiry });
    }
  }

  #removeAll(owner: string): void {
    for (const [key, registration] of this.#registrations) if (registration.owner === owner) this.#remove(key);
  }

  #remove(key: string): void {
    const registration = this.#registrations.get(key);
    if (registration === undefined) return;
    this.timers.stop(registration.expiry);
    this.#registrations.delete(key);
  }
}

/** RFC 3261 §10.2.4: what the registrar granted this Contact. */
function grantedContact(response: SipResponse, key: string): string | undefined {
  for (const value of getList(response, 'contact')) {
    const contact = parseNameAddr(value);
    if (contact !== undefined && keyOf(contact.uri) === key) return contact.params.get('expires');
  }
  return undefined;
}

function keyOf(uri: string): string | undefined {
  const parsed = parseSipUri(uri);
  return parsed === undefined ? undefined : `${parsed.user ?? ''}@${parsed.host}:${String(parsed.port ?? '')}`;
}
