import { silentLog } from '../../src/lib/log.js';
import { header, type Header } from '../../src/sip/message/message.js';
import { SipStack } from '../../src/sip/stack.js';
import { DEFAULT_TIMERS } from '../../src/sip/transaction/timers.js';
import type { Endpoint, Flow } from '../../src/sip/transport/flow.js';
import { UserAgent } from '../../src/sip/user-agent.js';
import type { FlowSource, OutgoingRequest, RequestToSend, UserAgentListener } from '../../src/sip/user-agent/user-agent-context.js';
import { VirtualClock } from './virtual-clock.js';

// A user agent in virtual time: its connections are lists of what was sent.

const LIMITS = { maxHeaders: 100, maxHeaderBytes: 8_000, maxHeadBytes: 65_536, maxBodyBytes: 65_536, maxTransactions: 100 };
export const OWN = { address: '10.0.0.1', port: 5_061 };
const NOT_USED: UserAgentListener = {
  onRequest: () => undefined,
  onAck: () => undefined,
  onDialogEnded: () => undefined,
  onResponse: () => undefined,
};

/** A connection to one peer, and what went over it. */
export class PeerFlow implements Flow {
  readonly reliable: boolean;
  readonly local = OWN;
  readonly remote: Endpoint;
  readonly sent: string[] = [];
  isOpen = true;
  wasConnected = true;
  wasRefused = false;
  failure: string | null = null;

  constructor(
    address: string,
    readonly transport: Flow['transport'] = 'TLS',
  ) {
    this.remote = { address, port: 5_061 };
    this.reliable = transport !== 'UDP';
  }

  get methods(): (string | undefined)[] {
    return this.sent.map((text) => /^\S+/.exec(text)?.[0]);
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.isOpen = false;
  }
}

export interface Heard {
  readonly status: number;
  readonly isOurs: boolean;
}

export class UserAgentBench {
  readonly clock = new VirtualClock();
  readonly stack = new SipStack({ clock: this.clock, timers: DEFAULT_TIMERS, limits: LIMITS, log: silentLog });
  readonly agent: UserAgent;
  /** Responses, as the user gets them. */
  readonly heard: Heard[] = [];

  constructor(flows: Omit<FlowSource, 'advertised'>, listener: Partial<UserAgentListener> = {}) {
    this.agent = new UserAgent(this.stack, { ...flows, advertised: () => OWN });
    const onResponse: UserAgentListener['onResponse'] = (_request, { status }, isOurs) => this.heard.push({ status, isOurs });
    this.agent.attach({ ...NOT_USED, onResponse, ...listener });
  }

  async send(method: string, uri: string, more: Partial<RequestToSend> = {}): Promise<OutgoingRequest> {
    const sent = this.agent.send(uri, { method, headers: [header('Subject', 'hello')], body: '', ...more }, null);
    if (typeof sent === 'string') throw new Error(sent);
    await turn();
    return sent;
  }

  /** An answer to the request that went over this connection first, or to this one. @param more headers, a line each */
  async answer(flow: PeerFlow, status: string, more: readonly string[] = [], request = flow.sent[0] ?? ''): Promise<void> {
    const copied = request.split('\r\n').filter((line) => /^(?:Via|From|To|Call-ID|CSeq):/i.test(line));
    const tag = /;tag=/.test(copied.find((line) => line.startsWith('To:')) ?? '') || status === '100 Trying' ? '' : ';tag=theirs';
    const lines = copied.map((line) => (line.startsWith('To:') ? `${line}${tag}` : line));
    await this.receive(flow, [`SIP/2.0 ${status}`, ...lines, ...more]);
  }

  async receive(flow: Flow, lines: readonly string[]): Promise<void> {
    this.stack.onMessage(flow, [...lines, 'Content-Length: 0', '', ''].join('\r\n'));
    await turn();
  }

  async breaks(flow: PeerFlow, how: Partial<Pick<PeerFlow, 'wasConnected' | 'wasRefused' | 'failure'>>): Promise<void> {
    Object.assign(flow, how, { isOpen: false });
    this.stack.onClose(flow);
    await turn();
  }
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The value of a header in the text of a message. */
export const valueOf = (text: string | undefined, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, 'im').exec((text ?? '').replaceAll('\r', ''))?.[1];

export const headersOf = (values: Readonly<Record<string, string>>): Header[] =>
  Object.entries(values).map(([name, value]) => header(name, value));
