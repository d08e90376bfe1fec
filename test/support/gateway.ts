import { isFailing, keepLogs } from './left-logs.js';
import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './carrier-call.js';
import { freePorts, lockFirst } from './ports.js';
import { processesOf, signalAll } from './processes.js';
import { HANG_GUARD_MS } from './hang-guard.js';
import type { Product } from './product.js';
import { MAIN, Program } from './program.js';

/** What `trunkline up` writes when everything answers. */
export interface Ready {
  readonly pid: number;
  readonly sip: { readonly tls: string };
  readonly http: string;
  readonly api_key: string;
  readonly org_id: string;
  readonly phone_number: string;
  readonly agent_id: string;
  /** Empty: the certificate is the operator's, or the SIP server is not this instance's. */
  readonly ca_file: string;
}

const SLOTS = 16;
const SLOT_PORTS = 1_100;
const FIRST_MEDIA_PORT = 10_000;
const FIRST_LOCK_PORT = 9_900;

/** A range of media ports that no other instance of any test run has: the lock is a listening socket, gone with its process. */
export async function reserveMediaPorts(): Promise<{ readonly first: number; readonly lock: Server }> {
  const { index, lock } = await lockFirst(FIRST_LOCK_PORT, SLOTS);
  return { first: FIRST_MEDIA_PORT + index * SLOT_PORTS, lock };
}

/** Settings of a `trunkline up` that shares the machine with other tests: free ports, and its data in `directory`. The lock holds the ports. */
export async function testEnvironment(
  directory: string,
): Promise<{ readonly environment: Readonly<Record<string, string>>; readonly lock: Server }> {
  const [sip, http, redis, control, ng] = await freePorts(5);
  const { first: media, lock } = await reserveMediaPorts();
  const environment = {
    TRUNKLINE_DATA_DIR: join(directory, 'data'),
    // One gateway process, whatever the machine: tests of several say so.
    TRUNKLINE_GATEWAY_WORKERS: '1',
    // A process that waits for the processor is not a dead one, and a gateway not overloaded by calls.
    TRUNKLINE_START_TIMEOUT_MS: '110000',
    TRUNKLINE_ADMISSION_MAX_EVENT_LOOP_DELAY_MS: '60000',
    TRUNKLINE_ADMISSION_MAX_MEDIA_DELAY_MS: '60000',
    TRUNKLINE_ADMISSION_MAX_CPU_PERCENT: '1000',
    TRUNKLINE_ADMISSION_MAX_RELAY_DELAY_MS: '60000',
    TRUNKLINE_SIP_MAX_APPLICATION_DELAY_MS: '60000',
    TRUNKLINE_SIP_TLS_PORT: String(sip),
    TRUNKLINE_HTTP_PORT: String(http),
    TRUNKLINE_REDIS_PORT: String(redis),
    TRUNKLINE_DRACHTIO_PORT: String(control),
    TRUNKLINE_RTPENGINE_NG_PORT: String(ng),
    TRUNKLINE_RTPENGINE_PORT_MIN: String(media),
    TRUNKLINE_RTPENGINE_PORT_MAX: String(media + 999),
    TRUNKLINE_MEDIA_PORT_MIN: String(media + 1_000),
    TRUNKLINE_MEDIA_PORT_MAX: String(media + 1_099),
  };
  return { environment, lock };
}

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the CLI to its end. @param main of another build, unless this one is meant */
export async function runCli(environment: Readonly<Record<string, string>>, args: readonly string[], main = MAIN): Promise<CliResult> {
  const child = spawn(process.execPath, [main, ...args], { env: { ...process.env, ...environment } });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve_) => child.once('close', resolve_));
  return { code, stdout, stderr };
}

/** The whole product as its user starts it: `trunkline up` from dist/, on free ports, in a directory of its own. */
export class RunningGateway implements Product {
  #up: Program | undefined;
  ready!: Ready;
  ca = '';

  private constructor(
    readonly directory: string,
    private readonly lock: Server,
    readonly environment: Readonly<Record<string, string>>,
    private readonly main: string,
  ) {}

  /**
   * @param settings in place of `testEnvironment`'s; `undefined`: the product's default
   * @param main of another build, unless this one is meant
   */
  static async start(settings: Readonly<Record<string, string | undefined>> = {}, main = MAIN): Promise<RunningGateway> {
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-test-'));
    const { environment, lock } = await testEnvironment(directory);
    const given = Object.entries({ ...environment, ...settings }).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const gateway = new RunningGateway(directory, lock, Object.fromEntries(given), main);
    try {
      await gateway.up();
    } catch (error) {
      await gateway.destroy();
      throw error;
    }
    return gateway;
  }

  get dataDir(): string {
    return join(this.directory, 'data');
  }

  get sipPort(): number {
    return Number(this.ready.sip.tls.split(':')[1]);
  }

  get output(): string {
    return this.#up?.output ?? '';
  }

  /** Starts (again) with everything it had. @param changes settings for this time */
  async up(changes: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#up = new Program(['up'], { ...this.environment, ...changes }, { main: this.main });
    await this.#up.printed('Trunkline is ready.');
    const ready = JSON.parse(await readFile(join(this.dataDir, 'ready.json'), 'utf8')) as Omit<Ready, 'ca_file'> & {
      readonly ca_file: string | null;
    };
    this.ready = { ...ready, ca_file: ready.ca_file ?? '' };
    this.ca = this.ready.ca_file === '' ? '' : await readFile(this.ready.ca_file, 'utf8');
  }

  /** SIGTERM; resolves with the exit code, or with the signal that ended it. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals | null> {
    return this.#up?.end(signal) ?? Promise.resolve(null);
  }

  /** Stops it and removes its directory. */
  async destroy(): Promise<void> {
    const traces = isFailing() ? await this.#traces() : {};
    await this.stop();
    await keepLogs(this.dataDir, { 'up.log': this.output, ...traces });
    // What a killed supervisor left.
    signalAll(this.dataDir, 'SIGKILL');
    // A killed process has its ports until it is gone: the next one to get the range would find them taken.
    await until(() => processesOf(this.dataDir).length === 0, 'a killed process is still there');
    await new Promise((resolve_) => this.lock.close(resolve_));
    await rm(this.directory, { recursive: true, force: true });
  }

  /** Of its last calls, by file name; none where it answers no more. */
  async #traces(): Promise<Record<string, string>> {
    const { code, stdout } = await this.cli('calls', 'list', '--json', '--limit', '20');
    if (code !== 0) return { 'calls.json': stdout };
    const { calls } = JSON.parse(stdout) as {
      readonly calls: readonly { readonly call_id: string; readonly sip_call_id: string | null }[];
    };
    const traces = calls.map(async ({ call_id: id, sip_call_id: sipCallId }) => [
      `trace-${id}.txt`,
      (await this.cli('trace', sipCallId ?? id)).stdout,
    ]);
    return { 'calls.json': stdout, ...(Object.fromEntries(await Promise.all(traces)) as Record<string, string>) };
  }

  /** A command of the CLI with this instance's settings. */
  cli(...args: readonly string[]): Promise<CliResult> {
    return runCli(this.environment, args, this.main);
  }

  /** A request to the control API with the demo key. */
  async api(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<{ status: number; json: Record<string, unknown> }> {
    const response = await fetch(`${this.ready.http}${path}`, {
      method,
      headers: { authorization: this.ready.api_key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  }

  /** The record of the call with this Call-ID, as GET /v1/calls lists it: it is written when everything of the call is freed. */
  async record(sipCallId: string): Promise<Readonly<Record<string, unknown>>> {
    const deadline = Date.now() + HANG_GUARD_MS;
    for (;;) {
      // The API of a gateway that was killed comes back last.
      const json = await this.api('GET', '/v1/calls?limit=100').then(
        (answer) => answer.json,
        () => ({ calls: [] }),
      );
      const found = (json['calls'] as Record<string, unknown>[]).find((record) => record['sip_call_id'] === sipCallId);
      if (found !== undefined) return found;
      if (Date.now() > deadline) throw new Error(`no record of ${sipCallId}`);
      await new Promise((resolve_) => setTimeout(resolve_, 20));
    }
  }

  /** Resolves when the text stands in the log of a process. */
  async logged(name: string, text: string): Promise<void> {
    const deadline = Date.now() + HANG_GUARD_MS;
    while (!(await this.log(name)).includes(text)) {
      if (Date.now() > deadline) throw new Error(`${text} does not stand in the log of ${name}`);
      await new Promise((resolve_) => setTimeout(resolve_, 20));
    }
  }

  /** The process id of what `trunkline up` started, by its name in the log: gateway-2 and so on. */
  async pidOf(name: string): Promise<number> {
    return (JSON.parse(await readFile(join(this.dataDir, `${name}.pid`), 'utf8')) as { readonly pid: number }).pid;
  }

  async log(name: string): Promise<string> {
    return readFile(join(this.dataDir, 'logs', `${name}.log`), 'utf8');
  }
}
