import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { parseE164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../src/gateway/model/records.js';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { openRedisStores, type RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { agentOf } from '../unit/gateway/store/store-contract.js';
import type { RunningGateway } from './gateway.js';
import { HandMadeCall } from './hand-made-call.js';
import { offerSdp } from './sdp.js';
import { SipPeer } from './sip-peer.js';
import { toolOf } from './tool.js';
import { HANG_GUARD_MS } from './hang-guard.js';

const AGENTS = 300;
const TOOLS = 100;
const API_LANES = 16;
const CALL_LANES = 6;
const MAX_CALLS = 4;
const HELD_MS = 1_000;

/** Settings under which bots, tools and webhooks of a test may be on this machine. */
export const PRIVATE_PEERS = {
  TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
  TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true',
  TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
};

/** Takes connections and says nothing. */
class SilentServer {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.resume();
  });

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/** The stores of a running gateway. */
export async function storesOf(gateway: Pick<RunningGateway, 'environment'>): Promise<RedisStores> {
  const url = `redis://127.0.0.1:${gateway.environment['TRUNKLINE_REDIS_PORT'] ?? ''}`;
  const stores = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url, clock: systemClock, log: silentLog });
  await stores.ready(HANG_GUARD_MS);
  return stores;
}

/** Another organization with a number that the test line answers. */
export async function quietTenant(stores: RedisStores, name: string, number: string): Promise<string> {
  const { org_id: orgId } = await stores.orgs.create({ name, sip_enabled: true });
  await attach(stores, orgId, number, null);
  return orgId;
}

async function attach(stores: RedisStores, orgId: string, number: string, agentId: string | null): Promise<void> {
  const parsed = parseE164(number);
  if (parsed === undefined) throw new Error(`${number} is no number`);
  const attached = await stores.numbers.attach(orgId, parsed, { inbound: { agent_id: agentId, options: DEFAULT_INBOUND_OPTIONS } });
  if (!attached.ok) throw new Error(attached.error);
}

/**
 * An organization that uses all that its key allows: as many agents and tools as fill pages, lists and searches without a pause, attaches, tools
 * that hang; and calls at its limit, whose bots hang and whose webhooks nobody takes.
 */
export class NoisyTenant {
  /** Answers of the API by status. */
  readonly answers = new Map<number, number>();
  /** Answers to INVITEs by status. */
  readonly calls = new Map<number, number>();
  readonly #silent = new SilentServer();
  readonly #agent = new Agent({ keepAlive: true, maxSockets: API_LANES });
  readonly #lanes: Promise<void>[] = [];
  readonly #peers: SipPeer[] = [];
  #isStopped = false;
  #key = '';
  #toolId = '';
  #serial = 0;

  private constructor(
    private readonly gateway: Pick<RunningGateway, 'ready' | 'sipPort' | 'ca'>,
    private readonly number: string,
  ) {}

  /** Makes it, and what it has; it does nothing yet. */
  static async create(
    gateway: Pick<RunningGateway, 'ready' | 'sipPort' | 'ca'>,
    stores: RedisStores,
    number: string,
  ): Promise<NoisyTenant> {
    const tenant = new NoisyTenant(gateway, number);
    const address = await tenant.#silent.start();
    const { org_id: orgId } = await stores.orgs.create({ name: 'noisy', sip_enabled: true });
    await stores.orgs.change(orgId, { max_concurrent_calls: MAX_CALLS });
    tenant.#key = (await stores.keys.create(orgId, 'noisy')).key;
    const large = 'x'.repeat(60_000);
    const settings = { prompt: large, metadata: { large }, dynamic_data: { large }, webhook: `http://${address}/hook` };
    for (let made = 0; made < AGENTS; made += 1) {
      const stream = { url: `ws://${address}/bot`, format: 'twilio', bearer_token: null } as const;
      const agent = agentOf(orgId, { ...settings, stream, created_at: new Date(made).toISOString() });
      await stores.agents.put(agent);
      if (made === 0) await attach(stores, orgId, number, agent.agent_id);
    }
    for (let made = 0; made < TOOLS; made += 1) {
      const tool = toolOf(orgId, { created_at: new Date(made).toISOString() });
      const input = { ...tool.tool.input_schema, required: [] };
      await stores.tools.put({ ...tool, tool: { ...tool.tool, url: `http://${address}/tool`, body: { large }, input_schema: input } });
      tenant.#toolId = tool.tool_id;
    }
    return tenant;
  }

  start(): void {
    this.#isStopped = false;
    for (let lane = 0; lane < API_LANES; lane += 1) this.#lanes.push(this.#useApi(lane));
    for (let lane = 0; lane < CALL_LANES; lane += 1) this.#lanes.push(this.#placeCalls());
  }

  /** It does nothing more, until the next `start`. */
  async pause(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#lanes.splice(0));
  }

  async stop(): Promise<void> {
    await this.pause();
    this.#silent.stop();
    this.#agent.destroy();
    for (const peer of this.#peers) peer.close();
  }

  async #useApi(lane: number): Promise<void> {
    const gets = [
      '/v1/agents?limit=500',
      '/v1/tools',
      '/v1/calls?reason=BAD_SDP&limit=500',
      '/sip?take=1000',
      '/v1/audit?take=1000',
      '/v1/calls?state=live&limit=500',
      '/v1/throughput',
      '/v1/webhooks/dead-letters?limit=500',
    ];
    for (let turn = lane; !this.#isStopped; turn += 1) {
      const path = gets[turn % gets.length] ?? '/sip';
      if (turn % 16 === 7) void this.#ask('POST', `/v1/tools/${this.#toolId}/invoke`, { input: {} });
      else if (turn % 4 === 3) await this.#ask('POST', '/sip/attach', this.#attachment());
      else await this.#ask('GET', path);
    }
  }

  #attachment(): object {
    this.#serial += 1;
    return { phone_number: `+1555777${String(1_000 + (this.#serial % 9_000))}`, directions: ['inbound'], service: 'sip' };
  }

  /** What is answered is read and thrown away. */
  #ask(method: string, path: string, body?: object): Promise<void> {
    return new Promise((resolve) => {
      const headers = { authorization: this.#key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
      const asked = request(`${this.gateway.ready.http}${path}`, { method, agent: this.#agent, headers }, (answer) => {
        count(this.answers, answer.statusCode ?? 0);
        answer.resume();
        answer.once('close', resolve);
      });
      asked.once('error', () => resolve());
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async #placeCalls(): Promise<void> {
    const peer = await SipPeer.connect(this.gateway.sipPort, this.gateway.ca);
    this.#peers.push(peer);
    while (!this.#isStopped) {
      const call = new HandMadeCall(peer, this.number);
      call.invite(offerSdp());
      const answer = await call.final().catch(() => null);
      if (answer === null) return;
      count(this.calls, answer.status);
      if (answer.status === 200) {
        call.ack(answer);
        await new Promise((resolve) => setTimeout(resolve, HELD_MS));
        await call.hangUp(answer).catch(() => undefined);
      } else await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function count(counts: Map<number, number>, status: number): void {
  counts.set(status, (counts.get(status) ?? 0) + 1);
}
