import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { accountSidOf } from '../../src/gateway/model/twilio-ids.js';
import type { RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import type { RunningGateway } from '../../test/support/gateway.js';
import { HandMadeCall } from '../../test/support/hand-made-call.js';
import { offerSdp } from '../../test/support/sdp.js';
import { SipPeer } from '../../test/support/sip-peer.js';

/** The doors of a gateway. */
export type AttackedGateway = Pick<RunningGateway, 'ready' | 'sipPort' | 'ca' | 'cli'>;

/** Answers a request of the gateway's to the attacker's server. */
export type Page = (request: IncomingMessage, response: ServerResponse) => void;

/** What the attacker's bot does with a connection. */
export type Bot = (socket: WebSocket) => void;

const CALL_MS = 1_500;
/** Of numbers, over all attackers. */
let serial = 0;

/** An organization that means harm, with its key, its web server and its bot; all that an attack uses. */
export class Attacker {
  /** How often its requests were answered, by status; of calls too. */
  readonly answers = new Map<number, number>();
  /** What the API said last when it refused. */
  refusal: string | null = null;
  readonly pages = new Map<string, Page>();
  /** By path. */
  readonly bots = new Map<string, Bot>();

  private constructor(
    private readonly gateway: AttackedGateway,
    readonly orgId: string,
    private readonly key: string,
    private readonly twilioToken: string,
    private readonly server: Server,
    private readonly sockets: WebSocketServer,
  ) {}

  static async create(gateway: AttackedGateway, { orgs, keys }: Pick<RedisStores, 'orgs' | 'keys'>, name: string): Promise<Attacker> {
    const { org_id: orgId, twilio_token: token } = await orgs.create({ name, sip_enabled: true });
    const { key } = await keys.create(orgId, name);
    const server = createServer();
    const attacker = new Attacker(gateway, orgId, key, token, server, new WebSocketServer({ noServer: true }));
    server.on('request', (request, response) => {
      const page = attacker.pages.get(new URL(request.url ?? '/', 'http://a').pathname);
      if (page === undefined) response.writeHead(404).end();
      else page(request, response);
    });
    server.on('upgrade', (request, socket, head) => {
      attacker.sockets.handleUpgrade(request, socket, head, (accepted) => {
        accepted.on('error', () => undefined);
        attacker.bots.get(new URL(request.url ?? '/', 'http://a').pathname)?.(accepted);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return attacker;
  }

  /** `127.0.0.1:PORT` of its web server and bot. */
  get host(): string {
    return `127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  /** A request to the API with its key; the answer's body as far as it is JSON. */
  async api(method: string, path: string, body?: object | string, type = 'application/json'): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.gateway.ready.http}${path}`, {
      method,
      headers: { authorization: this.key, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }).catch(() => null);
    const text = (await response?.text().catch(() => '')) ?? '';
    this.#count(response?.status ?? 0);
    try {
      const answer = JSON.parse(text) as Record<string, unknown>;
      if (response?.ok !== true) this.refusal = String(answer['message']).slice(0, 200);
      return answer;
    } catch {
      return {};
    }
  }

  /** As `api`, as Twilio's libraries ask: with the account and its token. @param path after `/2010-04-01/Accounts/SID` */
  async twilio(path: string): Promise<void> {
    const account = accountSidOf(this.orgId);
    const authorization = `Basic ${Buffer.from(`${account}:${this.twilioToken}`).toString('base64')}`;
    const response = await fetch(`${this.gateway.ready.http}/2010-04-01/Accounts/${account}${path}`, { headers: { authorization } }).catch(
      () => null,
    );
    await response?.text().catch(() => '');
    this.#count(response?.status ?? 0);
  }

  /** A number of its own, attached with these options or agent. */
  async numberFor(attached: object): Promise<string> {
    serial += 1;
    const number = `+15557${String(100_000 + serial)}`;
    const { status, message } = await this.api('POST', '/sip/attach', {
      phone_number: number,
      directions: ['inbound'],
      service: 'sip',
      ...attached,
    });
    if (status !== 'success') throw new Error(`attach: ${String(message)}`);
    return number;
  }

  /** A number that it may call from, over a trunk that nobody answers. */
  async outboundNumber(): Promise<string> {
    const number = await this.numberFor({ directions: [{ type: 'outbound', sip_endpoint: '127.0.0.1:9' }] });
    const limits = ['--prices', '+1=0.01', '--callers', number, '--max-calls-per-second', '1', '--max-concurrent-calls', '1'];
    const { code, stderr } = await this.gateway.cli('org', 'set-dialling', this.orgId, ...limits);
    if (code !== 0) throw new Error(stderr);
    return number;
  }

  /** An agent of its own. */
  async agent(settings: object): Promise<string> {
    const { agent, message } = await this.api('POST', '/v1/agents', { name: 'attacker', prompt: 'x', ...settings });
    const id = (agent as { agent_id?: string } | undefined)?.agent_id;
    if (id === undefined) throw new Error(`agent: ${String(message)}`);
    return id;
  }

  /** A tool of its own. */
  async tool(tool: object): Promise<string> {
    const {
      tool: made,
      tool_id: id,
      message,
    } = await this.api('POST', '/v1/tools', { label: 'attacker', tool: { description: 'x', ...tool } });
    const found = id ?? (made as { tool_id?: string } | undefined)?.tool_id;
    if (typeof found !== 'string') throw new Error(`tool: ${String(message)}`);
    return found;
  }

  /** A call to one of its numbers, for a while. */
  async call(number: string): Promise<void> {
    const peer = await SipPeer.connect(this.gateway.sipPort, this.gateway.ca);
    try {
      const call = new HandMadeCall(peer, number);
      call.invite(offerSdp());
      const answer = await call.final();
      this.#count(answer.status);
      if (answer.status !== 200) return;
      call.ack(answer);
      await new Promise((resolve) => setTimeout(resolve, CALL_MS));
      await call.hangUp(answer).catch(() => undefined);
    } finally {
      peer.close();
    }
  }

  async close(): Promise<void> {
    for (const client of this.sockets.clients) client.terminate();
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => void this.server.close(() => resolve()));
  }

  #count(status: number): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
  }
}
