import { connect } from 'node:net';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../config/load.js';
import { ConfigError } from '../config/layers.js';
import { httpAddress, type Config } from '../config/schema.js';
import type { Clock } from '../lib/clock.js';
import { silentLog, type Log } from '../lib/log.js';
import { callsOf, callsOfPorts } from '../gateway/relay/media-ports.js';
import { maxOpenFiles } from '../lib/open-files.js';
import { RtpengineNode } from '../gateway/relay/node.js';
import { SupervisedChild, type ChildSpec, type Readiness } from './child.js';
import { ensureDataDir } from '../config/data-dir.js';
import { workerCount, workerName } from '../config/gateway-worker.js';
import { foreignEnvironment, sipServerEnvironment } from './child-environment.js';
import { systemClock } from '../lib/system-clock.js';
import { takenPorts, takenRange, type WantedPort, type WantedRange } from './ports-free.js';

/** The gateway's readiness message. */
export type GatewayFacts = Readonly<Record<string, unknown>>;

export interface SupervisorOptions {
  readonly config: Config;
  /** Flags for the Node children, so that they read the same configuration. */
  readonly configFlags: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each child that becomes ready. */
  readonly onReady: (name: string, tookMs: number) => void;
}

/** Starts every part that is not external, in order; keeps it alive; stops all in reverse order. */
export class Supervisor {
  /** The children of one stage start and stop together. */
  readonly #stages: SupervisedChild[][] = [];
  readonly #directory: string;
  #isStopping = false;

  constructor(private readonly options: SupervisorOptions) {
    this.#directory = ensureDataDir(options.config);
  }

  /** Resolves with `null` if it was stopped meanwhile. Rejects with a message for the operator, after stopping what had started. */
  async start(): Promise<GatewayFacts | null> {
    this.claim();
    const stages = childStages(this.options.config, this.#directory, this.options.configFlags);
    const { media, relay } = wantedRanges(this.options.config);
    const mediaTaken = takenRange(media);
    const problems = [...(await takenPorts(wantedPorts(this.options.config))), ...(mediaTaken === null ? [] : [mediaTaken])];
    // rtpengine skips taken ports of its range, and the system gives any program ports from it.
    const relayTaken = relay === null ? null : takenRange(relay);
    if (relayTaken !== null) this.options.log.warn({ problem: relayTaken }, 'supervisor.ports_taken');
    if (problems.length > 0) {
      this.#unlock();
      throw new ConfigError(problems.join('\n'));
    }
    const starting: Promise<GatewayFacts>[] = [];
    try {
      for (const { specs, isAwaited } of stages) {
        if (this.#isStopping) return null;
        const stage = specs.map((spec) => new SupervisedChild(spec, join(this.#directory, 'logs'), this.options.clock, this.options.log));
        this.#stages.push(stage);
        starting.push(...stage.map((child) => this.#startOne(child)));
        if (isAwaited) await Promise.all(starting);
      }
      // The first gateway's: it serves the API.
      const facts = (await Promise.all(starting)).at(-workerCount(this.options.config)) ?? {};
      return this.#isStopping ? null : facts;
    } catch (error) {
      if (this.#isStopping) return null;
      await this.stop();
      throw error;
    }
  }

  async #startOne(child: SupervisedChild): Promise<GatewayFacts> {
    const startedMs = this.options.clock.nowMs();
    const facts = await child.start();
    this.options.onReady(child.spec.name, this.options.clock.nowMs() - startedMs);
    return facts;
  }

  /** Makes the SIP server reload its certificates. */
  reload(): void {
    for (const child of this.#stages.flat()) if (child.spec.name === 'sip-server') child.reload();
  }

  /** Stops the gateways first (they drain), then what they need. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const stage of this.#stages.splice(0).reverse()) await Promise.all(stage.map((child) => child.stop()));
    rmSync(join(this.#directory, 'ready.json'), { force: true });
    this.#unlock();
  }

  /** Locks the data directory: two instances in one would destroy each other's files. Throws if another instance has it. */
  claim(): void {
    const file = this.#lockFile;
    const pid = readPid(file);
    if (pid !== undefined && pid !== process.pid && isTrunkline(pid)) {
      throw new ConfigError(
        `Trunkline is running already with data_dir ${this.#directory} (process ${pid}). Stop it, or set data_dir (TRUNKLINE_DATA_DIR) to another directory.`,
      );
    }
    // Remove a dead process's file first; of two simultaneous starts only one creates the file.
    if (pid !== process.pid) rmSync(file, { force: true });
    try {
      writeFileSync(file, String(process.pid), { mode: 0o600, flag: pid === process.pid ? 'w' : 'wx' });
    } catch {
      throw new ConfigError(`Another process is starting Trunkline with data_dir ${this.#directory} at the moment.`);
    }
  }

  #unlock(): void {
    if (readPid(this.#lockFile) === process.pid) rmSync(this.#lockFile, { force: true });
  }

  get #lockFile(): string {
    return join(this.#directory, 'supervisor.pid');
  }
}

function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the process lives and is one of ours: after a reboot any process may have its number. */
function isTrunkline(pid: number): boolean {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8')
      .split('\0')
      .includes('up');
  } catch {
    return false;
  }
}

function wantedPorts(config: Config): WantedPort[] {
  const { bind_address: bind, sip, drachtio, http, redis, rtpengine } = config;
  const wanted: WantedPort[] = [{ setting: 'http.port', protocol: 'tcp', address: httpAddress(config), port: http.port }];
  if (redis.url === null) wanted.push({ setting: 'redis.port', protocol: 'tcp', address: '127.0.0.1', port: redis.port });
  if (rtpengine.address === null)
    wanted.push({ setting: 'rtpengine.ng_port', protocol: 'udp', address: '127.0.0.1', port: rtpengine.ng_port });
  if (drachtio.url === null) {
    wanted.push({ setting: 'drachtio.port', protocol: 'tcp', address: '127.0.0.1', port: drachtio.port });
    if (sip.tls_port !== null) wanted.push({ setting: 'sip.tls_port', protocol: 'tcp', address: bind, port: sip.tls_port });
    if (sip.tcp_port !== null) wanted.push({ setting: 'sip.tcp_port', protocol: 'tcp', address: bind, port: sip.tcp_port });
    if (sip.udp_port !== null) wanted.push({ setting: 'sip.udp_port', protocol: 'udp', address: bind, port: sip.udp_port });
  }
  return wanted;
}

function wantedRanges({ bind_address: bind, media, rtpengine }: Config): {
  readonly media: WantedRange;
  readonly relay: WantedRange | null;
} {
  const range = (setting: string, address: string, { port_min: min, port_max: max }: Config['media' | 'rtpengine']): WantedRange => ({
    setting,
    address,
    min,
    max,
  });
  const isEmbedded = rtpengine.address === null;
  return {
    media: range('media', isEmbedded ? '127.0.0.1' : bind, media),
    relay: isEmbedded ? range('rtpengine', bind, rtpengine) : null,
  };
}

// A call's objects live longer than a few milliseconds: with V8's default of 16 MB for young objects it copies most of them twice and then
// promotes them.
const NODE_OPTIONS = ['--enable-source-maps', '--max-semi-space-size=32'];

/** Children that stop together, before those of the earlier stages. */
interface Stage {
  readonly specs: readonly ChildSpec[];
  /** The next stage starts after these are ready. */
  readonly isAwaited: boolean;
}

/** From what all others need to what needs all others. */
function childStages(config: Config, directory: string, configFlags: readonly string[]): Stage[] {
  const stages: Stage[] = [];
  const below = [
    ...(config.redis.url === null ? [redisSpec(config, directory)] : []),
    ...(config.rtpengine.address === null ? [rtpengineSpec(config, directory)] : []),
  ];
  if (below.length > 0) stages.push({ specs: below, isAwaited: true });
  // A gateway waits for its SIP server by itself.
  if (config.drachtio.url === null)
    stages.push({
      specs: [nodeSpec('sip-server', ['sip-server', ...configFlags], sipServerEnvironment(process.env), 5_000)],
      isAwaited: false,
    });
  const count = workerCount(config);
  // A BYE may have to wait for an ACK: 64·T1.
  const stopTimeoutMs = config.calls.drain_ms + 64 * config.sip.t1_ms + 10_000;
  stages.push({
    isAwaited: true,
    specs: Array.from({ length: count }, (_none, at) => {
      return nodeSpec(
        workerName(at + 1),
        ['gateway', '--worker', `${String(at + 1)}/${String(count)}`, ...configFlags],
        process.env,
        stopTimeoutMs,
      );
    }),
  });
  return stages;
}

function nodeSpec(name: string, args: readonly string[], environment: NodeJS.ProcessEnv, stopTimeoutMs: number): ChildSpec {
  return {
    name,
    command: process.execPath,
    args: [...NODE_OPTIONS, join(PACKAGE_ROOT, 'dist/cli/main.js'), ...args],
    environment,
    isNode: true,
    stopTimeoutMs,
  };
}

function redisSpec(config: Config, directory: string): ChildSpec {
  const redisDirectory = join(directory, 'redis');
  mkdirSync(redisDirectory, { recursive: true, mode: 0o700 });
  const { port } = config.redis;
  return {
    name: 'redis-server',
    command: 'redis-server',
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', redisDirectory, '--daemonize', 'no', '--protected-mode', 'yes'],
      ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''],
    ],
    environment: foreignEnvironment(process.env),
    directory,
    isNode: false,
    readiness: () => redisReadiness(port),
    stopTimeoutMs: 10_000,
  };
}

/** While Redis reads its append-only file it answers LOADING. */
export function redisReadiness(port: number): Promise<Readiness> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const done = (readiness: Readiness): void => {
      socket.destroy();
      resolve(readiness);
    };
    socket.setTimeout(1_000, () => done('silent'));
    socket.once('error', () => done('silent'));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data: Buffer) => {
      const answer = data.toString();
      done(answer.startsWith('+PONG') ? 'ready' : answer.startsWith('-LOADING') ? 'loading' : 'silent');
    });
  });
}

function rtpengineSpec(config: Config, directory: string): ChildSpec {
  const { ng_port: ngPort, port_min: portMin, port_max: portMax, threads } = config.rtpengine;
  const outside = config.public_address === null ? config.bind_address : `${config.bind_address}!${config.public_address}`;
  return {
    name: 'rtpengine',
    command: 'rtpengine',
    args: [
      ...['--config-file=none', '--foreground', '--log-stderr', '--log-level=5', '--table=-1', `--num-threads=${String(threads)}`],
      ...['--interface=inside/127.0.0.1', `--interface=outside/${outside}`, `--listen-ng=127.0.0.1:${String(ngPort)}`],
      ...[`--port-min=${String(portMin)}`, `--port-max=${String(portMax)}`, '--delete-delay=0', '--timeout=3600', '--silent-timeout=7200'],
    ],
    environment: foreignEnvironment(process.env),
    directory,
    isNode: false,
    readiness: async () => ((await rtpengineAnswers(ngPort)) ? 'ready' : 'silent'),
    stopTimeoutMs: 5_000,
  };
}

/** How many calls the embedded rtpengine carries, and what limits them. */
export function mediaCapacity({ rtpengine: { port_min: min, port_max: max } }: Config, openFiles = maxOpenFiles()): string {
  const [calls, ofPorts] = [callsOf({ min, max }, openFiles ?? Infinity), callsOfPorts({ min, max })];
  const ports = `UDP ${String(min)} to ${String(max)} (rtpengine.port_min, port_max), 4 ports a call`;
  if (calls === ofPorts) return `${String(calls)} calls: ${ports}`;
  return `${String(calls)} calls: ${String(openFiles)} open files (ulimit -n), 4 a call. ${ports}, would carry ${String(ofPorts)}`;
}

async function rtpengineAnswers(port: number): Promise<boolean> {
  const node = new RtpengineNode({ address: '127.0.0.1', port, timeoutMs: 300, clock: systemClock, log: silentLog });
  try {
    return (await node.command('ping'))['result'] === 'pong';
  } catch {
    return false;
  } finally {
    node.close();
  }
}
