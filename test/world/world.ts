import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { journalName } from '../../src/config/cells.js';
import type { Config } from '../../src/config/schema.js';
import { startGateway } from '../../src/gateway/main.js';
import { loadHttpClient } from '../../src/gateway/net/guarded-client.js';
import { openEndpoint } from '../../src/gateway/wiring/media.js';
import { NO_PREDECESSOR } from '../../src/gateway/wiring/predecessor.js';
import type { Gateway } from '../../src/gateway/wiring/shutdown.js';
import type { Log, LogFields } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { configOptions } from '../../src/sip-server/config-options.js';
import { DialogJournal } from '../../src/sip-server/dialog-journal.js';
import { SipServer } from '../../src/sip-server/server.js';
import { SipPeer } from '../support/sip-peer.js';
import { closeDatagrams, openDatagrams } from './driver/datagrams.js';
import { closeNetwork, openNetwork, type WorldNetwork } from './driver/network.js';
import { WorldProcess } from './driver/process.js';
import { loadThreads } from './driver/threads.js';
import { WorldTime } from './driver/time.js';
import { MemoryRedis } from './redis/memory-redis.js';
import { WorldRtpengine } from './rtpengine.js';

const PORTS = { sip: 5_061, control: 9_022, redis: 6_379, http: 3_000, ng: 2_223, relay: 30_000 } as const;
const FIXTURES = new URL('../fixtures/world/', import.meta.url);
const CERTIFICATE = { cert: readFileSync(new URL('cert.pem', FIXTURES), 'utf8'), key: readFileSync(new URL('key.pem', FIXTURES), 'utf8') };

/** A line of a process's log. */
export interface LoggedLine {
  readonly process: string;
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields;
}

/** Settings by their names, as `--set` takes them. */
type Settings = Readonly<Record<string, string | number | boolean>>;

export interface ApiAnswer {
  readonly status: number;
  readonly json: Record<string, unknown>;
}

/**
 * The whole product in this process, in virtual time: SIP server, unmodified drachtio-srf, gateway with its media threads, Redis in memory, and an
 * rtpengine that is played. Any part can be killed and started again. It ends with its test.
 */
export class World {
  readonly log: LoggedLine[] = [];
  readonly rtpengine = new WorldRtpengine(PORTS.ng, PORTS.relay);
  readonly redis = new MemoryRedis(systemClock);
  #gateway: { readonly process: WorldProcess; readonly running: Promise<Gateway> } | null = null;
  #sipServer: { readonly process: WorldProcess; readonly server: SipServer } | null = null;
  #redisProcess: WorldProcess | null = null;

  private constructor(
    readonly time: WorldTime,
    readonly network: WorldNetwork,
    private readonly config: Config,
  ) {}

  /** Everything has started and answers. */
  static async start(settings: Settings = {}): Promise<World> {
    // Modules are loaded in real time.
    await Promise.all([
      loadThreads(),
      loadHttpClient(),
      import('../../src/gateway/media-thread/agents.js'),
      import('../../src/gateway/wiring/api.js'),
    ]);
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-world-'));
    const [time, network] = [new WorldTime(), openNetwork()];
    openDatagrams();
    const world = new World(time, network, worldConfig(directory, settings));
    onTestFinished(async () => {
      await time.close();
      closeNetwork();
      closeDatagrams();
      rmSync(directory, { recursive: true, force: true });
    });
    world.rtpengine.start();
    world.startRedis();
    await world.startSipServer();
    await world.startGateway();
    return world;
  }

  /** What the gateway says of itself when it is ready: the demo organization, its key and number. */
  async facts(): Promise<{
    readonly api_key: string;
    readonly org_id: string;
    readonly agent_id: string;
    readonly phone_number: string;
    readonly http: string;
  }> {
    return (await this.#theGateway()).facts as never;
  }

  startRedis(): void {
    const { redis, network } = this;
    this.#redisProcess = new WorldProcess('redis');
    this.#redisProcess.run(() => network.listen(String(PORTS.redis), (socket) => redis.accept(socket)));
  }

  killRedis(): void {
    this.#redisProcess?.kill();
  }

  async startSipServer(): Promise<void> {
    const { config } = this;
    const process_ = new WorldProcess('sip-server');
    const log = this.#logOf(process_);
    const server = process_.run(
      () =>
        new SipServer({
          ...configOptions(config),
          tls: { certificates: [CERTIFICATE], minVersion: 'TLSv1.2', ciphers: null, clients: null },
          outgoingTls: { ca: CERTIFICATE.cert, verify: false, names: [] },
          control: { address: '127.0.0.1', port: PORTS.control, secret: 'world' },
          cell: null,
          cells: null,
          journal: new DialogJournal({ file: join(config.data_dir, journalName(1)), clock: systemClock, log }),
          log,
        }),
    );
    await process_.run(() => server.listen());
    this.#sipServer = { process: process_, server };
  }

  killSipServer(): void {
    this.#sipServer?.process.kill();
  }

  get sipServer(): SipServer {
    if (this.#sipServer === null) throw new Error('there is no SIP server');
    return this.#sipServer.server;
  }

  /** Resolves when it takes calls. */
  async startGateway(): Promise<void> {
    const { config } = this;
    const process_ = new WorldProcess('gateway');
    const log = this.#logOf(process_);
    const predecessor = { ...NO_PREDECESSOR, ended: Promise.resolve(Date.now()) };
    const running = process_.run(() =>
      startGateway(config, systemClock, log, { index: 1, count: 1 }, openEndpoint(config, log), predecessor),
    );
    this.#gateway = { process: process_, running };
    await running;
  }

  killGateway(): void {
    this.#gateway?.process.kill();
  }

  /** SIGTERM or SIGINT, without a successor. */
  async stopGateway(how: 'park' | 'drain' = 'drain'): Promise<void> {
    const { process: process_, running } = this.#gateway ?? {};
    if (process_ === undefined || running === undefined) throw new Error('there is no gateway');
    const gateway = await running;
    await process_.run(() => gateway.shutdown(how));
    process_.kill();
  }

  /** A carrier's connection. */
  carrier(): Promise<SipPeer> {
    return SipPeer.connect(PORTS.sip, CERTIFICATE.cert);
  }

  /** A request to the control API with the demo organization's key, or another one. */
  async api(method: string, path: string, body?: object, key?: string): Promise<ApiAnswer> {
    const { http, api_key: demoKey } = await this.facts();
    const response = await fetch(`${http}${path}`, {
      method,
      headers: { authorization: key ?? demoKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  }

  /** The records of calls, newest first. */
  async records(): Promise<readonly Record<string, unknown>[]> {
    const { json } = await this.api('GET', '/v1/calls?limit=100');
    return json['calls'] as Record<string, unknown>[];
  }

  /** Time passes, and everything that it makes happen has happened. */
  pass(ms: number): Promise<void> {
    return this.time.pass(ms);
  }

  /** Lines of logs with this event. */
  logged(event: string): readonly LoggedLine[] {
    return this.log.filter((line) => line.event === event);
  }

  async #theGateway(): Promise<Gateway> {
    if (this.#gateway === null) throw new Error('there is no gateway');
    return this.#gateway.running;
  }

  #logOf({ name }: WorldProcess, bindings: LogFields = {}): Log {
    const at =
      (level: string) =>
      (fields: LogFields, event: string): void =>
        void this.log.push({ process: name, level, event, fields: { ...bindings, ...fields } });
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => this.#logOf({ name } as WorldProcess, { ...bindings, ...fields }),
    };
  }
}

function worldConfig(directory: string, settings: Settings): Config {
  const all: Settings = {
    data_dir: join(directory, 'data'),
    bind_address: '127.0.0.1',
    'gateway.workers': 1,
    'gateway.instance': 'world',
    'sip.tls_port': PORTS.sip,
    'drachtio.port': PORTS.control,
    'drachtio.secret': 'world',
    'redis.port': PORTS.redis,
    'http.port': PORTS.http,
    'rtpengine.ng_port': PORTS.ng,
    'media.workers': 1,
    'calls.archive_days': 0,
    ...settings,
  };
  return loadConfig({ set: Object.entries(all).map(([name, value]) => `${name}=${String(value)}`), environment: {} });
}
