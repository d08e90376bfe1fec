import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { onTestFailed, onTestFinished, vi } from 'vitest';
import { addCommands } from '../../src/cli/commands.js';
import { journalName } from '../../src/config/cells.js';
import { ensureDataDir } from '../../src/config/data-dir.js';
import { loadConfig } from '../../src/config/load.js';
import type { Config } from '../../src/config/schema.js';
import { startGateway } from '../../src/gateway/main.js';
import { loadHttpClient } from '../../src/gateway/net/guarded-client.js';
import { openRedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { ensureDemo } from '../../src/gateway/wiring/demo.js';
import { openEndpoint } from '../../src/gateway/wiring/media.js';
import { NO_PREDECESSOR } from '../../src/gateway/wiring/predecessor.js';
import type { Gateway } from '../../src/gateway/wiring/shutdown.js';
import type { Log, LogFields } from '../../src/lib/log.js';
import { errorText } from '../../src/lib/result.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { configOptions } from '../../src/sip-server/config-options.js';
import { DialogJournal } from '../../src/sip-server/dialog-journal.js';
import { SipServer } from '../../src/sip-server/server.js';
import type { CliResult, Ready } from '../support/gateway.js';
import type { Product } from '../support/product.js';
import { SipPeer } from '../support/sip-peer.js';
import { closeDatagrams } from './driver/datagrams.js';
import { closeNetwork, worldNetwork, type WorldNetwork } from './driver/network.js';
import { WorldProcess } from './driver/process.js';
import { loadThreads } from './driver/threads.js';
import { WorldTime } from './driver/time.js';
import { MemoryRedis } from './redis/memory-redis.js';
import { WorldRtpengine } from './rtpengine.js';

/** Where gateways find the SIP server. */
export const CONTROL_PORT = 9_022;
const PORTS = { sip: 5_061, control: CONTROL_PORT, redis: 6_379, http: 3_000, ng: 2_223, relay: 30_000, media: 20_000 } as const;
const RELAY_PORTS = 1_000;
const MEDIA_PORTS = 40;
const TLS = new URL('../fixtures/tls/', import.meta.url);
const [ca = '', cert = '', key = ''] = ['ca', 'cert', 'key'].map((name) => readFileSync(new URL(`${name}.pem`, TLS), 'utf8'));
/** The gateway of a world that names none. */
const GATEWAY = 'gateway';

/** A line of a process's log. */
export interface LoggedLine {
  readonly process: string;
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields;
}

/** Settings by the names of their environment variables. */
export type Settings = Readonly<Record<string, string>>;

export interface WorldOptions {
  /** How many rtpengines there are; left out: one. Gateways of a world with several share its Redis. */
  readonly relays?: number;
  /** False: the test starts its gateways. */
  readonly hasGateway?: boolean;
  /** The time of the wall clock at the start, in ms since 1970. */
  readonly startsMs?: number;
}

interface RunningPart<T> {
  readonly process: WorldProcess;
  readonly running: Promise<T>;
  readonly config: Config;
}

/**
 * The whole product in this process, in virtual time: SIP server, unmodified drachtio-srf, gateways with their media threads, Redis in memory, and
 * rtpengines that are played. Each part can be killed and started again. What a test waits for it just awaits: time passes until it is there.
 */
export class World implements Product {
  readonly lines: LoggedLine[] = [];
  readonly rtpengines: readonly WorldRtpengine[];
  readonly redis = new MemoryRedis(systemClock);
  readonly ca = ca;
  readonly sipPort = PORTS.sip;
  readonly #gateways = new Map<string, RunningPart<Gateway>>();
  #sipServer: { readonly process: WorldProcess; readonly server: SipServer } | null = null;
  #redisProcess: WorldProcess | null = null;
  ready!: Ready;

  private constructor(
    readonly time: WorldTime,
    readonly network: WorldNetwork,
    readonly directory: string,
    private readonly settings: Settings,
    private readonly options: WorldOptions,
  ) {
    this.rtpengines = Array.from(
      { length: options.relays ?? 1 },
      (_, index) => new WorldRtpengine(PORTS.ng + index, PORTS.relay + index * RELAY_PORTS),
    );
  }

  /** Everything has started and answers. */
  static async start(settings: Settings = {}, options: WorldOptions = {}): Promise<World> {
    // Modules are loaded in real time.
    const modules = ['../../src/gateway/media-thread/agents.js', '../../src/gateway/wiring/api.js'];
    await Promise.all([loadThreads(), loadHttpClient(), ...modules.map((module) => import(module))]);
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-world-'));
    const [time, network] = [new WorldTime(options.startsMs), worldNetwork()];
    const world = new World(time, network, directory, settings, options);
    try {
      for (const rtpengine of world.rtpengines) rtpengine.start();
      world.startRedis();
      if (world.#isShared) await world.#makeDemo();
      await world.startSipServer();
      if (options.hasGateway !== false) await world.startGateway();
    } catch (error) {
      await world.destroy();
      throw error;
    }
    return world;
  }

  /** The first, or only one. */
  get rtpengine(): WorldRtpengine {
    const [first] = this.rtpengines;
    if (first === undefined) throw new Error('the world has no rtpengine');
    return first;
  }

  get dataDir(): string {
    return this.#config(GATEWAY).data_dir;
  }

  get environment(): Readonly<Record<string, string>> {
    return this.#environment(GATEWAY);
  }

  startRedis(): void {
    const { redis, network } = this;
    this.#redisProcess = new WorldProcess('redis');
    this.#redisProcess.run(() => network.listen(String(PORTS.redis), (socket) => redis.accept(socket)));
  }

  /** Its data is kept, as a Redis with an append-only file keeps it. */
  killRedis(): void {
    this.#redisProcess?.kill();
    this.redis.crash();
  }

  async startSipServer(): Promise<void> {
    const config = this.#config(GATEWAY);
    ensureDataDir(config);
    const process_ = new WorldProcess('sip-server');
    const log = this.#logOf(process_.name);
    const server = process_.run(
      () =>
        new SipServer({
          ...configOptions(config),
          tls: { certificates: [{ cert, key }], minVersion: 'TLSv1.2', ciphers: null, clients: null },
          outgoingTls: { ca, verify: false, names: [] },
          control: { address: '127.0.0.1', port: PORTS.control, secret: GATEWAY },
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

  /** Resolves when it takes calls. @param name of one that was killed: it has the same ports and files */
  async startGateway(name = GATEWAY): Promise<void> {
    const config = this.#config(name);
    const process_ = new WorldProcess(name);
    const log = this.#logOf(name);
    const predecessor = { ...NO_PREDECESSOR, ended: Promise.resolve(this.#gateways.get(name)?.process.diedMs ?? Date.now()) };
    const running = process_.run(() =>
      startGateway(config, systemClock, log, { index: 1, count: 1 }, openEndpoint(config, log), predecessor),
    );
    this.#gateways.set(name, { process: process_, running, config });
    const { facts } = await running;
    if (name !== GATEWAY) return;
    this.ready = { ...this.ready, ...facts, sip: { tls: `127.0.0.1:${String(this.sipPort)}` } };
    // As `trunkline up` writes it: commands find the gateway by it.
    writeFileSync(join(this.dataDir, 'ready.json'), JSON.stringify(this.ready));
  }

  killGateway(name = GATEWAY): void {
    this.#gateways.get(name)?.process.kill();
  }

  /** SIGINT (`drain`) or SIGTERM (`park`), without a successor. */
  async stopGateway(how: 'park' | 'drain' = 'drain', name = GATEWAY): Promise<void> {
    const { process: process_, running } = this.#part(name);
    const gateway = await running;
    await process_.run(() => gateway.shutdown(how));
    process_.kill();
  }

  /** A carrier's connection. @param localAddress where it comes from */
  carrier(localAddress = '127.0.0.1'): Promise<SipPeer> {
    return SipPeer.connect(this.sipPort, this.ca, { localAddress });
  }

  /** A request to the control API, with the demo organization's key unless another one is given. */
  async api(
    method: string,
    path: string,
    body?: object,
    { apiKey = this.ready.api_key, gateway = GATEWAY }: { readonly apiKey?: string; readonly gateway?: string } = {},
  ): Promise<{ status: number; json: Record<string, unknown> }> {
    const response = await fetch(`http://127.0.0.1:${String(this.#part(gateway).config.http.port)}${path}`, {
      method,
      headers: { authorization: apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  }

  /** The records of calls, newest first. */
  async records(): Promise<readonly Record<string, unknown>[]> {
    // The API of a gateway that was killed comes back last.
    const answer = await this.api('GET', '/v1/calls?limit=100').catch(() => ({ json: {} as Record<string, unknown> }));
    return (answer.json['calls'] ?? []) as Record<string, unknown>[];
  }

  /** The record of the call with this Call-ID, once it is written. */
  async record(sipCallId: string): Promise<Readonly<Record<string, unknown>>> {
    for (;;) {
      const found = (await this.records()).find((record) => record['sip_call_id'] === sipCallId);
      if (found !== undefined) return found;
      await this.pass(20);
    }
  }

  /** Time passes, and everything that it makes happen has happened. */
  pass(ms: number): Promise<void> {
    return this.time.pass(ms);
  }

  /** Time passes until it is so. */
  until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    return this.time.until(isSo);
  }

  log(name: string): Promise<string> {
    const lines = this.lines.filter((line) => line.process === name);
    return Promise.resolve(lines.map(({ level, event, fields }) => `${JSON.stringify({ level, ...fields, msg: event })}\n`).join(''));
  }

  logged(name: string, text: string): Promise<void> {
    return this.until(async () => (await this.log(name)).includes(text));
  }

  /** Lines of logs with this event. */
  events(event: string): readonly LoggedLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  /** A command of the CLI, in a process of its own. */
  async cli(...args: readonly string[]): Promise<CliResult> {
    const said = { stdout: '', stderr: '' };
    const program = new Command('trunkline');
    addCommands(program, () => this.#config(GATEWAY));
    const [writeOut, writeErr] = [(text: string) => void (said.stdout += text), (text: string) => void (said.stderr += text)];
    for (const command of withSubcommands(program)) command.exitOverride().configureOutput({ writeOut, writeErr });
    const printed = [
      vi.spyOn(console, 'log').mockImplementation((line: unknown) => writeOut(`${String(line)}\n`)),
      vi.spyOn(console, 'error').mockImplementation((line: unknown) => writeErr(`${String(line)}\n`)),
    ];
    try {
      await new WorldProcess('cli').run(() => program.parseAsync([...args], { from: 'user' }));
      return { code: 0, ...said };
    } catch (error) {
      if (error instanceof CommanderError) return { code: error.exitCode, ...said };
      return { code: 1, stdout: said.stdout, stderr: `${said.stderr}trunkline: ${errorText(error)}\n` };
    } finally {
      for (const one of printed) one.mockRestore();
    }
  }

  /** Ends all of it, and real time is back. */
  async destroy(): Promise<void> {
    await this.time.close();
    for (const { process: process_ } of this.#gateways.values()) process_.kill();
    this.#sipServer?.process.kill();
    this.#redisProcess?.kill();
    for (const rtpengine of this.rtpengines) rtpengine.kill();
    closeNetwork();
    closeDatagrams();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Gateways that share their Redis make no demo organization: the world makes it. */
  get #isShared(): boolean {
    return this.rtpengines.length > 1 || this.options.hasGateway === false;
  }

  async #makeDemo(): Promise<void> {
    const config = this.#config(GATEWAY);
    const log = this.#logOf('operator');
    await new WorldProcess('operator').run(async () => {
      const stores = openRedisStores({ url: `redis://127.0.0.1:${String(PORTS.redis)}`, clock: systemClock, log });
      await stores.ready();
      const demo = await ensureDemo({ stores, dataDir: ensureDataDir(config), clock: systemClock });
      this.ready = { ...demo, http: `http://127.0.0.1:${String(config.http.port)}` } as unknown as Ready;
      await stores.close();
    });
  }

  #part(name: string): RunningPart<Gateway> {
    const part = this.#gateways.get(name);
    if (part === undefined) throw new Error(`there is no gateway ${name}`);
    return part;
  }

  #environment(name: string): Readonly<Record<string, string>> {
    const place = name === GATEWAY ? 0 : (this.#places.get(name) ?? this.#places.size + 1);
    if (place > 0) this.#places.set(name, place);
    const isShared = place > 0 || this.#isShared;
    const shared = {
      TRUNKLINE_REDIS_URL: `redis://127.0.0.1:${String(PORTS.redis)}`,
      TRUNKLINE_RTPENGINE: this.rtpengines.map((_, index) => `127.0.0.1:${String(PORTS.ng + index)}`).join(','),
    };
    return {
      TRUNKLINE_DATA_DIR: join(this.directory, name),
      TRUNKLINE_BIND_ADDRESS: '127.0.0.1',
      TRUNKLINE_GATEWAY_WORKERS: '1',
      TRUNKLINE_GATEWAY_INSTANCE: name,
      TRUNKLINE_SIP_TLS_PORT: String(PORTS.sip),
      TRUNKLINE_DRACHTIO_PORT: String(PORTS.control),
      TRUNKLINE_DRACHTIO_SECRET: GATEWAY,
      TRUNKLINE_REDIS_PORT: String(PORTS.redis),
      TRUNKLINE_HTTP_PORT: String(PORTS.http + place),
      TRUNKLINE_RTPENGINE_NG_PORT: String(PORTS.ng),
      TRUNKLINE_MEDIA_WORKERS: '1',
      TRUNKLINE_MEDIA_PORT_MIN: String(PORTS.media + place * MEDIA_PORTS),
      TRUNKLINE_MEDIA_PORT_MAX: String(PORTS.media + (place + 1) * MEDIA_PORTS - 1),
      TRUNKLINE_CALLS_ARCHIVE_DAYS: '0',
      ...(isShared ? shared : {}),
      ...this.settings,
    };
  }

  #config(name: string): Config {
    return loadConfig({ environment: this.#environment(name) });
  }

  readonly #places = new Map<string, number>();

  #logOf(name: string, bindings: LogFields = {}): Log {
    const at =
      (level: string) =>
      (fields: LogFields, event: string): void =>
        void this.lines.push({ process: name, level, event, fields: { ...bindings, ...fields } });
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => this.#logOf(name, { ...bindings, ...fields }),
    };
  }
}

function withSubcommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap((one) => withSubcommands(one))];
}

/** A world that ends with the test that asks for it; a test that fails prints what its parts logged. */
export async function startWorld(settings: Settings = {}, options: WorldOptions = {}): Promise<World> {
  const world = await World.start(settings, options);
  onTestFailed(() => {
    for (const { process: name, level, event, fields } of world.lines) console.log(name, level, event, JSON.stringify(fields));
  });
  onTestFinished(() => world.destroy());
  return world;
}
