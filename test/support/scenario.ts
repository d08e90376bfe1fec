import { Bench } from './transcript.js';

/** An SDP that says as much as a test of the SIP server needs. */
export const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n';

/** `Bench.left` when nothing is. */
export const NOTHING_LEFT = { pending: 0, calls: 0, outgoing: 0, proxied: 0, transactions: 0, timers: 0 };

export interface Parts {
  readonly uri?: string;
  readonly branch?: string;
  readonly cseq?: number;
  readonly from?: string;
  readonly to?: string;
  readonly callId?: string;
  readonly extra?: readonly string[];
  readonly body?: string;
}

/** The value of a header of a SIP text, or ''. */
export function headerOf(text: string, name: string): string {
  return new RegExp(`^${name}: (.*)\r$`, 'm').exec(text)?.[1] ?? '';
}

/** The start line. */
export function startOf(text: string): string {
  return text.split('\r\n', 1)[0] ?? '';
}

/** One caller and one application of the SIP server, in virtual time, with the words that scenarios are told in. */
export class Scenario {
  readonly bench: Bench;
  #serial = 0;

  private constructor(
    readonly transport: 'TLS' | 'UDP',
    journalFile: string | null,
  ) {
    this.bench = new Bench(transport, 6_000, 'messages', {}, journalFile);
  }

  /** @param journalFile where calls outlive the server; left out: they end with it */
  static async start(
    methods: readonly string[] = ['invite'],
    transport: 'TLS' | 'UDP' = 'TLS',
    journalFile: string | null = null,
  ): Promise<Scenario> {
    const scenario = new Scenario(transport, journalFile);
    for (const method of methods) scenario.bench.fromApp(`r|route|${method}`);
    await scenario.bench.settle();
    scenario.bench.toApp.length = 0;
    return scenario;
  }

  get dialogId(): string {
    return 'call1;from-tag=from1';
  }

  request(method: string, parts: Parts = {}): string {
    this.#serial += 1;
    const { uri = 'sip:b@server', branch = `z9hG4bKs${String(this.#serial)}`, cseq = 1, extra = [], body = '' } = parts;
    return [
      `${method} ${uri} SIP/2.0`,
      `Via: SIP/2.0/${this.transport} caller:6000;branch=${branch}`,
      `From: ${parts.from ?? '<sip:a@caller>;tag=from1'}`,
      `To: ${parts.to ?? '<sip:b@server>'}`,
      `Call-ID: ${parts.callId ?? 'call1'}`,
      `CSeq: ${String(cseq)} ${method}`,
      `Contact: <sip:a@caller:6000;transport=${this.transport.toLowerCase()}>`,
      ...extra,
      `Content-Length: ${String(body.length)}`,
      '',
      body,
    ].join('\r\n');
  }

  invite(parts: Parts = {}): string {
    const extra = ['Content-Type: application/sdp', ...(parts.extra ?? [])];
    return this.request('INVITE', { branch: 'z9hG4bKinvite', body: SDP, ...parts, extra });
  }

  /** A message from the network; what it brings about has happened when this resolves. Returns the last start line that went out. */
  async receive(text: string): Promise<string> {
    this.bench.fromCaller(text);
    await this.bench.settle();
    return startOf(this.bench.toCaller.at(-1) ?? '');
  }

  /** A response of the peer to a request that went out. */
  async answer(
    request: string,
    status: string,
    parts: { readonly tag?: string; readonly extra?: readonly string[]; readonly body?: string } = {},
  ): Promise<void> {
    const { tag, extra = [], body = '' } = parts;
    const to = headerOf(request, 'To');
    const vias = request.split('\r\n').filter((line) => line.startsWith('Via: '));
    const text = [
      `SIP/2.0 ${status}`,
      ...vias,
      `From: ${headerOf(request, 'From')}`,
      `To: ${to}${tag === undefined || to.includes(';tag=') ? '' : `;tag=${tag}`}`,
      `Call-ID: ${headerOf(request, 'Call-ID')}`,
      `CSeq: ${headerOf(request, 'CSeq')}`,
      ...extra,
      `Content-Length: ${String(body.length)}`,
      '',
      body,
    ].join('\r\n');
    await this.receive(text);
  }

  /** The application's response; resolves to what the server answered it: `OK` and so on, then the reason. */
  async respond(transactionId: string, status: string, extra = '', body = ''): Promise<string> {
    this.#serial += 1;
    return this.command(`m${String(this.#serial)}|sip|${transactionId}|\r\nSIP/2.0 ${status}\r\n${extra}\r\n${body}`);
  }

  /** A request of the application, in a dialog or ('') out of one. */
  async send(start: string, dialogId = '', extra = '', body = ''): Promise<string> {
    this.#serial += 1;
    return this.command(`m${String(this.#serial)}|sip||${dialogId}\r\n${start} SIP/2.0\r\n${extra}\r\n${body}`);
  }

  /** A frame of the application. Resolves to the verdict and reason of its answer, '' when there is none yet. */
  async command(payload: string): Promise<string> {
    const id = payload.split('|', 1)[0] ?? '';
    this.bench.fromApp(payload);
    await this.bench.settle();
    const answer =
      this.bench.toApp
        .findLast((frame) => frame.split('|')[2] === id)
        ?.split('\r\n', 1)[0]
        ?.split('|') ?? [];
    return answer[3] === 'OK' ? 'OK' : answer.slice(3).join('|');
  }

  /** An INVITE that the application has seen; resolves to its transaction id. */
  async offered(parts: Parts = {}): Promise<string> {
    await this.receive(this.invite(parts));
    return this.transactionId;
  }

  /** An answered and acknowledged call; resolves to the To value with our tag. */
  async connected(parts: Parts = {}): Promise<string> {
    await this.respond(await this.offered(parts), '200 OK', '', SDP);
    const to = headerOf(this.bench.toCaller.at(-1) ?? '', 'To');
    await this.receive(this.request('ACK', { to }));
    return to;
  }

  /** The transaction id of the newest `sip` frame. */
  get transactionId(): string {
    return this.sipFrames.at(-1)?.split('|')[8] ?? '';
  }

  get sipFrames(): string[] {
    return this.bench.toApp.filter((payload) => payload.split('|')[1] === 'sip');
  }

  /** Start lines of what the application was shown. */
  get shown(): string[] {
    return this.sipFrames.map((payload) => payload.split('\r\n')[1] ?? '');
  }

  /** Start lines of what went out to the network. */
  get sent(): string[] {
    return this.bench.toCaller.map(startOf);
  }

  /** The newest text that went out and whose start line begins so. */
  lastSent(start: string): string {
    return this.bench.toCaller.findLast((text) => text.startsWith(start)) ?? '';
  }

  /** What went out and what was shown so far is not looked at any more. */
  forget(): void {
    this.bench.toCaller.length = 0;
    this.bench.toApp.length = 0;
  }
}
