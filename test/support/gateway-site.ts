import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import { parseE164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS, type InboundOptions } from '../../src/gateway/model/records.js';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { gatewayCallsKey } from '../../src/gateway/store/redis/keys.js';
import { openRedisStores, type RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { until, type CarrierCall } from './carrier-call.js';
import { reserveMediaPorts } from './gateway.js';
import { freePorts } from './ports.js';
import { send, startRedis, type TestRedis } from './redis.js';
import { RunningRtpengine } from './rtpengine.js';
import { HANG_GUARD_MS } from './hang-guard.js';

const MAIN = resolve('dist/cli/main.js');
const SECRET = 'site-secret';
const RELAY_PORTS = 200;

export interface SiteOptions {
  readonly relays?: number;
  /** Settings of the SIP server and of each gateway. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** One process of the product, started by hand. */
export class Service {
  output = '';
  readonly #ended: Promise<void>;

  private constructor(private readonly child: ChildProcess) {
    const read = (chunk: Buffer): void => {
      this.output += chunk.toString();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    this.#ended = new Promise((done) => child.once('close', () => done()));
  }

  /** Resolves when the text stands in its log. */
  static async start(name: string, environment: Readonly<Record<string, string>>, ready: string): Promise<Service> {
    const child = spawn(process.execPath, [MAIN, name], { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] });
    const service = new Service(child);
    try {
      await service.logged(ready);
    } catch (error) {
      await service.end('SIGKILL');
      throw error;
    }
    return service;
  }

  async logged(text: string): Promise<void> {
    try {
      await until(() => this.output.includes(text), `${text} is not in the log`);
    } catch (error) {
      throw new Error(this.output, { cause: error });
    }
  }

  times(text: string): number {
    return this.output.split(text).length - 1;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.child.kill(signal);
    await this.#ended;
  }
}

/** A SIP server, a Redis and rtpengines that any number of gateways use; an organization with numbers. */
export class GatewaySite {
  sipPort = 0;
  controlPort = 0;
  ca = '';
  readonly #gateways: Service[] = [];
  #sip: Service | undefined;
  readonly #mediaPorts = new Map<string, number>();
  readonly #httpPorts = new Map<string, number>();
  #key = '';
  readonly #orgId = '7f3b5f0e-5d0c-4b0e-9a51-1c52ce0b4a11';

  private constructor(
    private readonly directory: string,
    private readonly options: SiteOptions,
    private readonly lock: Server,
    private readonly firstPort: number,
    readonly redis: TestRedis,
    readonly relays: readonly RunningRtpengine[],
    readonly stores: RedisStores,
  ) {}

  static async start(options: SiteOptions = {}): Promise<GatewaySite> {
    const { first, lock } = await reserveMediaPorts();
    const redis = await startRedis();
    const relays = await Promise.all(
      Array.from({ length: options.relays ?? 1 }, (_, index) => {
        const min = first + index * RELAY_PORTS;
        return RunningRtpengine.start({ min, max: min + RELAY_PORTS - 1 });
      }),
    );
    const stores = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url: redis.url, clock: systemClock, log: silentLog });
    await stores.ready(HANG_GUARD_MS);
    const site = new GatewaySite(mkdtempSync(join(tmpdir(), 'trunkline-site-')), options, lock, first, redis, relays, stores);
    await stores.orgs.create({ name: 'Site', sip_enabled: true, org_id: site.#orgId });
    site.#key = (await stores.keys.create(site.#orgId, 'site')).key;
    [site.sipPort = 0, site.controlPort = 0] = await freePorts(2);
    await site.startSipServer();
    return site;
  }

  /** One more gateway, or again one that has ended: with the same name it has the same ports. */
  async gateway(instance: string, controlPort = this.controlPort): Promise<Service> {
    const [http] = await freePorts(1);
    const first = this.#mediaPorts.get(instance) ?? this.firstPort + 1_000 + 20 * this.#mediaPorts.size;
    this.#mediaPorts.set(instance, first);
    const environment = {
      ...this.options.settings,
      // Other tests share the machine: a gateway that waits for the processor is not overloaded by calls.
      TRUNKLINE_ADMISSION_MAX_EVENT_LOOP_DELAY_MS: '60000',
      TRUNKLINE_ADMISSION_MAX_MEDIA_DELAY_MS: '60000',
      TRUNKLINE_ADMISSION_MAX_CPU_PERCENT: '1000',
      TRUNKLINE_DATA_DIR: join(this.directory, instance),
      TRUNKLINE_GATEWAY_INSTANCE: instance,
      TRUNKLINE_DRACHTIO_URL: `127.0.0.1:${String(controlPort)}`,
      TRUNKLINE_DRACHTIO_SECRET: SECRET,
      TRUNKLINE_REDIS_URL: this.redis.url,
      TRUNKLINE_RTPENGINE: this.relays.map(({ name }) => name).join(','),
      TRUNKLINE_HTTP_PORT: String(http),
      TRUNKLINE_MEDIA_PORT_MIN: String(first),
      TRUNKLINE_MEDIA_PORT_MAX: String(first + 19),
    };
    this.#httpPorts.set(instance, http ?? 0);
    const service = await Service.start('gateway', environment, '"msg":"gateway.ready"');
    this.#gateways.push(service);
    return service;
  }

  /** How many calls the next process of this gateway would resume. */
  async keptCalls(instance: string): Promise<number> {
    return Number((await send(this.redis.port, `HLEN ${gatewayCallsKey(instance)}`)).slice(1));
  }

  async attach(number: string, options: Partial<InboundOptions> = {}): Promise<string> {
    const parsed = parseE164(number);
    if (parsed === undefined) throw new Error(`${number} is no number`);
    await this.stores.numbers.attach(this.#orgId, parsed, {
      inbound: { agent_id: null, options: { ...DEFAULT_INBOUND_OPTIONS, ...options } },
    });
    return number;
  }

  /** The organization may dial +49 from this number through the trunk. */
  async allowDialling(number: string, endpoint: string): Promise<void> {
    const from = parseE164(number);
    if (from === undefined) throw new Error(`${number} is no number`);
    await this.stores.numbers.attach(this.#orgId, from, { outbound: { sip_endpoint: endpoint } });
    const limits = { max_calls_per_second: 100, max_concurrent_calls: 100, max_calls_per_day: 10_000, max_cost_per_day: 10_000 };
    await this.stores.orgs.change(this.#orgId, { dialling: { prices: { '+49': 0.02 }, callers: [from], ...limits } });
  }

  /** Asks the control API of one gateway. */
  async api(
    instance: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly json: Record<string, unknown> }> {
    const url = `http://127.0.0.1:${String(this.#httpPorts.get(instance))}${path}`;
    const headers = { authorization: this.#key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const answer = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
  }

  async recordOf({ signalling }: CarrierCall): Promise<CallRecord> {
    let record: CallRecord | undefined;
    await until(async () => {
      const { calls } = await this.stores.calls.list(this.#orgId, { limit: 200 }).catch(() => ({ calls: [] }));
      record = calls.find(({ sip_call_id: id }) => id === signalling.callId);
      return record !== undefined;
    }, 'no record');
    if (record === undefined) throw new Error('no record');
    return record;
  }

  async destroy(): Promise<void> {
    for (const gateway of this.#gateways) await gateway.end('SIGKILL');
    await this.#sip?.end('SIGKILL');
    await this.stores.close();
    await this.redis.close();
    for (const relay of this.relays) await relay.stop();
    await new Promise((done) => this.lock.close(done));
    await rm(this.directory, { recursive: true, force: true });
  }

  async killSipServer(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#sip?.end(signal);
  }

  get sipServerDirectory(): string {
    return join(this.directory, 'sip');
  }

  /** On the same ports; what it logs. */
  async startSipServer(): Promise<Service> {
    const dataDir = this.sipServerDirectory;
    this.#sip = await Service.start(
      'sip-server',
      {
        ...this.options.settings,
        TRUNKLINE_DATA_DIR: dataDir,
        TRUNKLINE_SIP_TLS_PORT: String(this.sipPort),
        TRUNKLINE_DRACHTIO_PORT: String(this.controlPort),
        TRUNKLINE_DRACHTIO_SECRET: SECRET,
      },
      '"msg":"sip_server.ready"',
    );
    this.ca = await readFile(join(dataDir, 'tls/ca.pem'), 'utf8');
    return this.#sip;
  }
}
