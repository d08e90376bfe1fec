import { connect } from 'node:net';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../config/load.js';
import { ConfigError } from '../config/layers.js';
import { httpAddress, type Config } from '../config/schema.js';
import type { Clock } from '../lib/clock.js';
import { silentLog, type Log } from '../lib/log.js';
import { callsOf, callsOfPorts } from '../gateway/relay/media-ports.js';
import { maxOpenFiles } from '../lib/open-files.js';
import { RtpengineNode } from '../gateway/relay/node.js';
import { SupervisedChild, wasRetired, type ChildSpec, type Facts, type Readiness } from './child.js';
import { ensureDataDir } from '../config/data-dir.js';
import { controlAddress, sipServerName, type CellPlace } from '../config/cells.js';
import { isFirstWorker, otherPlace, workerCount, workerName, type GatewayPlace } from '../config/gateway-worker.js';
import { nativeFile } from '../config/native-files.js';
import { AHEAD_QUESTION, askProcess, FACTS_QUESTION, followerName, NoAnswer, processSocket } from '../config/process-socket.js';
import { foreignEnvironment, rtpengineEnvironment, sipServerEnvironment } from './child-environment.js';
import { systemClock } from '../lib/system-clock.js';
import { takenPorts, takenRange, type WantedPort, type WantedRange } from './ports-free.js';

export interface SupervisorOptions {
  readonly config: Config;
  /** Flags for the Node children, so that they read the same configuration. */
  readonly configFlags: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each child that becomes ready. */
  readonly onReady: (name: string, tookMs: number) => void;
  /** Called for each child that ended by itself. */
  readonly onDied: (name: string) => void;
}

const LOCK_FILE = 'supervisor.pid';

/**
 * Starts every part that is not external, in order; keeps it alive; stops all in reverse order. What it started outlives it when it is
 * killed: the next supervisor takes it over.
 */
export class Supervisor {
  /** The children of one stage start and stop together. */
  readonly #stages: SupervisedChild[][] = [];
  readonly #directory: string;
  #isStopping = false;

  constructor(private readonly options: SupervisorOptions) {
    this.#directory = ensureDataDir(options.config);
  }

  /** Resolves with `null` if it was stopped meanwhile. Rejects with a message for the operator, after stopping what it had started. */
  async start(): Promise<Facts | null> {
    this.claim();
    const stages = this.#children();
    await this.#checkPorts(stages.flatMap(({ children }) => children));
    const starting: Promise<Facts>[] = [];
    try {
      for (const { children, isAwaited } of stages) {
        if (this.#isStopping) return null;
        this.#stages.push(children);
        starting.push(...children.map((child) => this.#startOne(child)));
        if (isAwaited) await Promise.all(starting);
      }
      // The first gateway's: it serves the API. Retired ones stand before it.
      const facts = (await Promise.all(starting)).at(-workerCount(this.options.config)) ?? {};
      return this.#isStopping ? null : facts;
    } catch (error) {
      if (this.#isStopping) return null;
      // Calls go on in what an earlier supervisor left.
      for (const stage of this.#stages) stage.splice(0, Infinity, ...stage.filter((child) => !child.isTakenOver));
      await this.stop();
      throw error;
    }
  }

  /** Takes over what an earlier supervisor left, only to stop it. Resolves with how many processes there were. */
  async stopLeft(): Promise<number> {
    this.claim();
    this.#stages.push(...this.#children().map(({ children }) => children.filter((child) => child.isLeft)));
    const left = this.#stages.flat();
    for (const child of left) child.adopt();
    await this.stop();
    return left.length;
  }

  #children(): { readonly children: SupervisedChild[]; readonly isAwaited: boolean }[] {
    const { config, configFlags } = this.options;
    return childStages(config, this.#directory, configFlags).map(({ specs, isAwaited }) => ({
      children: specs.map((spec) => this.#child(spec)),
      isAwaited,
    }));
  }

  #child(spec: ChildSpec): SupervisedChild {
    const { config, clock, log, onDied } = this.options;
    return new SupervisedChild(spec, this.#directory, clock, log, config.start_timeout_ms, onDied);
  }

  /** A port that another program has stops the start. */
  async #checkPorts(children: readonly SupervisedChild[]): Promise<void> {
    const left = children.filter((child) => child.isLeft);
    // A SIP server that outlived the holder has its sockets.
    const isHeld = left.some(isSipServer);
    const starting = children.filter((child) => !left.includes(child) && !(isHeld && child.spec.name === HOLDER));
    const isStarting = (name: string): boolean => starting.some(({ spec }) => spec.name === name);
    const { media, relay } = wantedRanges(this.options.config);
    const areGatewaysNew = children.every((child) => !child.spec.name.startsWith('gateway') || starting.includes(child));
    const mediaTaken = areGatewaysNew ? takenRange(media) : null;
    const problems = [...(await takenPorts(starting.flatMap(({ spec }) => spec.ports))), ...(mediaTaken === null ? [] : [mediaTaken])];
    // rtpengine skips taken ports of its range, and the system gives any program ports from it.
    const relayTaken = relay !== null && isStarting('rtpengine') ? takenRange(relay) : null;
    if (relayTaken !== null) this.options.log.warn({ problem: relayTaken }, 'supervisor.ports_taken');
    if (problems.length === 0) return;
    this.#unlock();
    throw new ConfigError(problems.join('\n'));
  }

  async #startOne(child: SupervisedChild): Promise<Facts> {
    const startedMs = this.options.clock.nowMs();
    const facts = await child.start();
    this.options.onReady(child.spec.name, this.options.clock.nowMs() - startedMs);
    return facts;
  }

  /** Makes the SIP servers reload their certificates. */
  reload(): void {
    for (const child of this.#stages.flat()) if (isSipServer(child)) child.reload();
  }

  /** Replaces the gateways and the SIP server one after another: calls go on, and new code and settings take effect. Resolves with their names. */
  async replace(): Promise<readonly string[]> {
    const replaced: string[] = [];
    for (const stage of this.#stages) {
      const children = stage.splice(0, Infinity, ...stage.filter(({ isGone }) => !isGone));
      for (const child of children.filter(({ spec }) => spec.followerReadiness !== null && spec.isRetired !== true)) {
        await this.#replaceOne(child, stage);
        replaced.push(child.spec.name);
      }
    }
    return replaced;
  }

  /** A gateway keeps its calls, and its successor takes the new ones; unless its predecessor still has calls at the other place. */
  async #replaceOne(child: SupervisedChild, stage: SupervisedChild[]): Promise<void> {
    const { config, configFlags, log } = this.options;
    const { place } = child.spec;
    const { handover_ms: handoverMs } = config.calls;
    const other = place === undefined ? undefined : { ...place, index: otherPlace(place) };
    const isFree = other !== undefined && !stage.some(({ spec, isGone }) => spec.name === workerName(other.index) && !isGone);
    if (place === undefined || !isFree || handoverMs === 0) return child.replace();
    const spec = gatewaySpec(config, this.#directory, configFlags, other);
    const next = this.#child(spec);
    try {
      await next.start(['--succeeds', child.spec.name]);
    } catch (error) {
      await next.stop();
      // It takes no calls any more: one in its place does.
      if (await child.isRetired()) await child.replace();
      throw error;
    }
    child.retire(gatewaySpec(config, this.#directory, configFlags, place, true), handoverMs);
    stage.push(next);
    log.info({ child: child.spec.name, successor: next.spec.name }, 'supervisor.child.retired');
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
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      throw new ConfigError(`Another process is starting Trunkline with data_dir ${this.#directory} at the moment.`);
    }
  }

  #unlock(): void {
    if (readPid(this.#lockFile) === process.pid) rmSync(this.#lockFile, { force: true });
  }

  get #lockFile(): string {
    return join(this.#directory, LOCK_FILE);
  }
}

/** The supervisor of this data directory; `null`: none runs. */
export function runningSupervisor(directory: string): number | null {
  const pid = readPid(join(directory, LOCK_FILE));
  return pid !== undefined && isTrunkline(pid) ? pid : null;
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

function sipPorts({ bind_address: bind, sip }: Config): WantedPort[] {
  const listeners = [
    { setting: 'sip.tls_port', protocol: 'tcp', port: sip.tls_port },
    { setting: 'sip.tcp_port', protocol: 'tcp', port: sip.tcp_port },
    { setting: 'sip.udp_port', protocol: 'udp', port: sip.udp_port },
  ] as const;
  return listeners.flatMap(({ port, ...rest }) => (port === null ? [] : [{ ...rest, address: bind, port }]));
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

// For each collection of the young objects the process stands still, and calls wait: with 64 MB some 20 ms, which was the p99 from INVITE to 200
// (26 ms at 100 calls a second with bots; with 16 MB 7 ms). At 500 calls a second 64 MB took a tenth less of our CPU, as fewer objects
// are copied before they die.
const YOUNG_OBJECTS = '--max-semi-space-size=16';
export const NODE_OPTIONS = ['--enable-source-maps', YOUNG_OBJECTS];

/** For the answer of a process of ours, in milliseconds. */
const ANSWER_LIMIT_MS = 1_000;
/** For a gateway that opens its connections, beside the time that agents have. */
const AHEAD_LIMIT_MS = 10_000;

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
    ...(config.drachtio.url === null && existsSync(holder(config)) ? [holderSpec(config, directory)] : []),
  ];
  if (below.length > 0) stages.push({ specs: below, isAwaited: true });
  // A gateway waits for its SIP server by itself.
  const count = workerCount(config);
  if (config.drachtio.url === null) {
    const places = Array.from({ length: count }, (_none, at) => ({ index: at + 1, count }));
    stages.push({ specs: places.map((place) => sipServerSpec(config, directory, configFlags, place)), isAwaited: false });
  }
  const current = Array.from({ length: count }, (_none, at) => currentPlace(directory, { index: at + 1, count }));
  const retired = current
    .map((place) => ({ ...place, index: otherPlace(place) }))
    .filter(({ index }) => wasRetired(directory, workerName(index)) !== null);
  const specOf = (place: GatewayPlace, isRetired: boolean): ChildSpec => gatewaySpec(config, directory, configFlags, place, isRetired);
  stages.push({
    isAwaited: true,
    specs: [...retired.map((place) => specOf(place, true)), ...current.map((place) => specOf(place, false))],
  });
  return stages;
}

/** Where the last process that took new calls was: it may have left calls there. */
function currentPlace(directory: string, place: GatewayPlace): GatewayPlace {
  const other = { ...place, index: otherPlace(place) };
  const isOther = wasRetired(directory, workerName(other.index)) === false || wasRetired(directory, workerName(place.index)) === true;
  return isOther ? other : place;
}

function gatewaySpec(config: Config, directory: string, configFlags: readonly string[], place: GatewayPlace, isRetired = false): ChildSpec {
  const { index, count } = place;
  const args = ['gateway', '--worker', `${String(index)}/${String(count)}`, ...(isRetired ? ['--retired'] : []), ...configFlags];
  const hasApi = isFirstWorker(place) && !isRetired;
  return {
    ...nodeSpec(directory, workerName(index), args, process.env),
    connectAhead: () =>
      askProcess(directory, followerName(workerName(index)), AHEAD_QUESTION, config.agents.connect_timeout_ms + AHEAD_LIMIT_MS),
    // It drains; SIGTERM would park its calls for a successor.
    stopSignal: 'SIGINT',
    // A BYE may have to wait for an ACK: 64·T1.
    stopTimeoutMs: config.calls.drain_ms + 64 * config.sip.t1_ms + 10_000,
    ports: hasApi ? [{ setting: 'http.port', protocol: 'tcp', address: httpAddress(config), port: config.http.port }] : [],
    place,
    isRetired,
  };
}

function nodeSpec(dataDir: string, name: string, args: readonly string[], environment: NodeJS.ProcessEnv): ChildSpec {
  return {
    name,
    command: process.execPath,
    args: [...NODE_OPTIONS, join(PACKAGE_ROOT, 'dist/cli/main.js'), ...args],
    environment,
    readiness: (pid) => processReadiness(dataDir, name, pid),
    followerReadiness: (pid) => processReadiness(dataDir, followerName(name), pid),
    mustAnswer: true,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 5_000,
    ports: [],
  };
}

/** What the process with this number answers; one that it replaces may still have the socket. */
async function processReadiness(dataDir: string, name: string, pid: number): Promise<Readiness> {
  try {
    const told = (await askProcess(dataDir, name, FACTS_QUESTION, ANSWER_LIMIT_MS)) as { readonly pid?: unknown; readonly facts?: Facts };
    return told.pid === pid ? (told.facts ?? {}) : 'silent';
  } catch (error) {
    return error instanceof NoAnswer && error.wasClosed ? 'unready' : 'silent';
  }
}

function isSipServer({ spec: { name } }: SupervisedChild): boolean {
  return name.startsWith('sip-server');
}

function sipServerSpec(config: Config, directory: string, configFlags: readonly string[], { index, count }: CellPlace): ChildSpec {
  const { args, command, ...spec } = nodeSpec(
    directory,
    sipServerName(index),
    ['sip-server', ...(count === 1 ? [] : ['--cell', `${String(index)}/${String(count)}`]), ...configFlags],
    sipServerEnvironment(process.env, config.sip.take_over),
  );
  const address = controlAddress(index);
  const control: WantedPort = { setting: 'drachtio.port', protocol: 'tcp', address, port: config.drachtio.port };
  // Without the program it opens its sockets itself, and connections are refused while it restarts.
  if (!existsSync(holder(config))) return { ...spec, command, args, ports: [control, ...sipPorts(config)] };
  return { ...spec, command: holder(config), args: ['exec', directory, command, ...args], ports: [control] };
}

const HOLDER = 'socket-holder';

function holder(config: Config): string {
  return nativeFile(config, HOLDER);
}

/** Keeps the SIP server's sockets open while none runs. */
function holderSpec(config: Config, directory: string): ChildSpec {
  const sockets = sipPorts(config).flatMap(({ setting, protocol, address, port }) => [
    setting.replace(/^sip\.|_port$/g, ''),
    protocol,
    address,
    String(port),
  ]);
  return {
    name: HOLDER,
    command: holder(config),
    args: ['hold', directory, ...sockets],
    environment: foreignEnvironment(process.env),
    readiness: async () => ((await canConnect(processSocket(directory, 'sockets'))) ? {} : 'silent'),
    followerReadiness: null,
    mustAnswer: false,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 5_000,
    ports: sipPorts(config),
  };
}

function canConnect(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const done = (isConnected: boolean): void => {
      socket.destroy();
      resolve(isConnected);
    };
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
  });
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
      // A rewrite takes a core for a second or two, and calls wait: at 1,000 calls a second, 1 GB fills in a minute and is read in 2 s.
      ...['--auto-aof-rewrite-min-size', '1gb'],
    ],
    environment: foreignEnvironment(process.env),
    directory,
    readiness: () => redisReadiness(port),
    followerReadiness: null,
    mustAnswer: false,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 10_000,
    ports: [{ setting: 'redis.port', protocol: 'tcp', address: '127.0.0.1', port }],
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
      done(answer.startsWith('+PONG') ? {} : answer.startsWith('-LOADING') ? 'unready' : 'silent');
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
      ...['--config-file=none', '--foreground', '--log-stderr', '--log-level=4', '--table=-1', `--num-threads=${String(threads)}`],
      ...['--interface=inside/127.0.0.1', `--interface=outside/${outside}`, `--listen-ng=127.0.0.1:${String(ngPort)}`],
      ...[`--port-min=${String(portMin)}`, `--port-max=${String(portMax)}`, '--delete-delay=0', '--timeout=3600', '--silent-timeout=7200'],
    ],
    environment: rtpengineEnvironment(process.env),
    directory,
    readiness: async () => ((await rtpengineAnswers(ngPort)) ? {} : 'silent'),
    followerReadiness: null,
    mustAnswer: false,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 5_000,
    ports: [{ setting: 'rtpengine.ng_port', protocol: 'udp', address: '127.0.0.1', port: ngPort }],
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
  let node: RtpengineNode | undefined;
  try {
    node = new RtpengineNode({ address: '127.0.0.1', port, timeoutMs: 300, clock: systemClock, log: silentLog });
    return (await node.command('ping'))['result'] === 'pong';
  } catch {
    return false;
  } finally {
    node?.close();
  }
}
