import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { until, type Trunk } from './carrier-call.js';
import { TestCa } from './openssl.js';
import { freePorts } from './ports.js';
import { send } from './redis.js';
import { SipPeer } from './sip-peer.js';
import { sessionsOf } from './trunk.js';

// docker/compose.cluster.yaml without Docker: each of its services as a process of this machine, with the commands and the settings
// of the file, at an address of 127.0.0.0/8 of its own. drachtio-server alone is played, by the embedded SIP server.

interface ComposeService {
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string | number | null>>;
  readonly networks: { readonly edge: { readonly ipv4_address: string } };
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
}

const MAIN = resolve('dist/cli/main.js');
const KAMAILIO = resolve('docker/kamailio');
const SECRET = 'compose-secret';

/** Reads a compose file with its anchors, and variables filled in. */
export async function readCompose(path: string, variables: Readonly<Record<string, string | undefined>>): Promise<Compose> {
  const text = (await readFile(path, 'utf8')).replace(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_all, name: string, kind: string | undefined, rest: string | undefined) => {
      const value = variables[name] ?? (kind === '-' ? rest : undefined);
      if (value === undefined) throw new Error(`${path}: ${name} is not set`);
      return value;
    },
  );
  return parse(text, { merge: true }) as Compose;
}

/** A command as a list, quotes taken off. */
export function wordsOf(command: ComposeService['command']): string[] {
  if (command === undefined || typeof command !== 'string') return [...(command ?? [])];
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

export class ComposeSite implements Trunk {
  readonly sipPort = 5061;
  ca = '';
  readonly #processes = new Map<string, ChildProcess>();
  readonly #output = new Map<string, string>();
  readonly #control = new Map<string, number>();
  #tls: { readonly certFile: string; readonly keyFile: string } | undefined;

  private constructor(
    private readonly directory: string,
    private readonly authority: TestCa,
    private readonly network: string,
    private readonly compose: Compose,
  ) {}

  /** @param network the first three parts of the addresses, in 127.0.0.0/8 */
  static async start(network: string): Promise<ComposeSite> {
    const compose = await readCompose(resolve('docker/compose.cluster.yaml'), { CONTROL_SECRET: SECRET, PUBLIC_ADDRESS: '127.0.0.1' });
    const [directory, authority] = [await mkdtemp(join(tmpdir(), 'trunkline-compose-')), await TestCa.create()];
    const site = new ComposeSite(directory, authority, network, compose);
    try {
      await site.#start();
    } catch (error) {
      await site.destroy();
      throw error;
    }
    return site;
  }

  get sipHost(): string {
    return this.addressOf('balancer');
  }

  addressOf(service: string): string {
    return this.#here(this.#service(service).networks.edge.ipv4_address);
  }

  pidOf(service: string): number {
    return this.#processes.get(service)?.pid ?? 0;
  }

  outputOf(service: string): string {
    return this.#output.get(service) ?? '';
  }

  url(gateway: string, path: string): string {
    return `http://${this.addressOf(gateway)}:8080${path}`;
  }

  redis(command: string, service = 'redis-primary'): Promise<string> {
    return send(6379, command, this.addressOf(service));
  }

  /** Ends a service; resolves when it is gone. */
  async end(service: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#processes.get(service);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once('exit', done));
    // Kamailio is a family of processes, whose first one ends the others when it is asked to.
    child.kill(service === 'balancer' ? 'SIGTERM' : signal);
    await gone;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#processes.keys()].map((service) => this.end(service)));
    await this.authority.remove();
    await rm(this.directory, { recursive: true, force: true });
  }

  /** Starts a service (again) with what the file says of it. */
  async up(service: string): Promise<void> {
    const { command, environment = {} } = this.#service(service);
    const words = wordsOf(command).map((word) => this.#here(word));
    const directory = join(this.directory, service);
    await mkdir(directory, { recursive: true });
    if (service === 'balancer') return this.#balancer(directory);
    if (service.startsWith('sip-')) return this.#sipServer(service, words, environment, directory);
    if (service.startsWith('gateway-')) return this.#gateway(service, environment, directory);
    if (service.startsWith('sentinel-')) return this.#sentinel(service, words, directory);
    // The address that carriers are told is translated by Docker; here it is the process's own.
    const [program = '', ...args] = words.map((word) => word.replace(/^(--interface=outside\/[\d.]+)!.*/, '$1'));
    this.#run(service, program, args, {}, directory);
    if (program === 'redis-server') await this.#answers(service, 6379, 'PING', /PONG/);
    else await until(async () => (await sessionsOf(2223, this.addressOf(service))) !== null, `${service} does not answer`);
  }

  async #start(): Promise<void> {
    const hosts = ['balancer', 'sip-1', 'sip-2'].map((service) => `IP:${this.addressOf(service)}`);
    this.#tls = await this.authority.issue('trunk', ['DNS:localhost', ...hosts].join(','));
    this.ca = this.authority.ca;
    // One file for three Sentinels: each copies it as it starts.
    await writeFile(join(this.directory, 'sentinel.conf'), this.#here(await readFile(resolve('docker/redis/sentinel.conf'), 'utf8')));
    await this.up('redis-primary');
    await Promise.all(['redis-replica', 'rtpengine-1', 'rtpengine-2', 'sip-1', 'sip-2'].map((service) => this.up(service)));
    // A Sentinel asks the primary for its replicas as it starts, and then every ten seconds.
    await this.#answers('redis-primary', 6379, 'INFO replication', /slave0:ip=/);
    await Promise.all(['sentinel-1', 'sentinel-2', 'sentinel-3'].map((service) => this.up(service)));
    const others = /num-slaves\r\n\$1\r\n1\r\n[^]*num-other-sentinels\r\n\$1\r\n2\r\n/;
    for (const sentinel of ['sentinel-1', 'sentinel-2', 'sentinel-3'])
      await this.#answers(sentinel, 26_379, 'SENTINEL MASTER trunkline', others);
    await Promise.all(['gateway-1', 'gateway-2', 'gateway-3'].map((service) => this.up(service)));
    await this.up('balancer');
  }

  async #sipServer(
    service: string,
    words: readonly string[],
    given: NonNullable<ComposeService['environment']>,
    directory: string,
  ): Promise<void> {
    const [, host = '', port = ''] = /^sips:([\d.]+):(\d+);transport=tls$/.exec(words[words.indexOf('--contact') + 1] ?? '') ?? [];
    const control = this.#control.get(service) ?? (await freePorts(1))[0] ?? 0;
    this.#control.set(service, control);
    const environment = {
      TRUNKLINE_DATA_DIR: directory,
      TRUNKLINE_BIND_ADDRESS: host,
      TRUNKLINE_SIP_TLS_PORT: port,
      TRUNKLINE_SIP_CERT_FILE: this.#tls?.certFile ?? '',
      TRUNKLINE_SIP_KEY_FILE: this.#tls?.keyFile ?? '',
      // drachtio-server checks no certificate of the balancer's either.
      TRUNKLINE_SIP_VERIFY_PEERS: 'false',
      TRUNKLINE_DRACHTIO_PORT: String(control),
      TRUNKLINE_DRACHTIO_SECRET: String(given['DRACHTIO_SECRET']),
    };
    this.#run(service, process.execPath, [MAIN, 'sip-server'], environment, directory);
    await this.#logged(service, /sip_server\.ready/);
  }

  async #gateway(service: string, given: NonNullable<ComposeService['environment']>, directory: string): Promise<void> {
    const environment = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, this.#here(String(value))]));
    // The embedded SIP server's control port is on 127.0.0.1 alone.
    const server = ['sip-1', 'sip-2'].find((name) => environment['TRUNKLINE_DRACHTIO_URL'] === `${this.addressOf(name)}:9022`);
    if (server === undefined) throw new Error(`${service} is connected to no SIP server`);
    this.#run(
      service,
      process.execPath,
      [MAIN, 'gateway'],
      {
        ...environment,
        TRUNKLINE_DATA_DIR: directory,
        TRUNKLINE_DRACHTIO_URL: `127.0.0.1:${String(this.#control.get(server))}`,
        // Other tests share the machine: a gateway that waits for the processor is not overloaded by calls.
        TRUNKLINE_ADMISSION_MAX_EVENT_LOOP_DELAY_MS: '60000',
        TRUNKLINE_ADMISSION_MAX_MEDIA_DELAY_MS: '60000',
        TRUNKLINE_ADMISSION_MAX_CPU_PERCENT: '1000',
      },
      directory,
    );
    await this.#logged(service, /gateway\.ready/);
  }

  async #sentinel(service: string, words: readonly string[], directory: string): Promise<void> {
    const script = (words[2] ?? '')
      .replaceAll('/data/', `${directory}/`)
      .replaceAll('/sentinel.conf', (all, at: number, text: string) =>
        text.slice(0, at).endsWith(directory) ? all : join(this.directory, 'sentinel.conf'),
      );
    this.#run(service, 'sh', ['-c', script], {}, directory);
    await this.#answers(service, 26_379, 'PING', /PONG/);
  }

  async #balancer(directory: string): Promise<void> {
    for (const file of ['kamailio.cfg', 'tls.cfg', 'dispatcher.list']) {
      const text = this.#here(await readFile(join(KAMAILIO, file), 'utf8'))
        .replaceAll('/etc/kamailio/', `${directory}/`)
        .replaceAll('/tls/server.pem', this.#tls?.certFile ?? '')
        .replaceAll('/tls/server-key.pem', this.#tls?.keyFile ?? '')
        .replaceAll('/tls/ca.pem', this.authority.caFile);
      await writeFile(join(directory, file), text);
    }
    const args = ['-DD', '-E', '-f', join(directory, 'kamailio.cfg'), '-w', directory, '-Y', directory];
    this.#run('balancer', 'kamailio', args, {}, directory);
    const connects = async (): Promise<boolean> => {
      const peer = await SipPeer.connect(this.sipPort, this.ca, { host: this.sipHost }).catch(() => undefined);
      peer?.close();
      return peer !== undefined;
    };
    await until(connects, 'the balancer does not listen').catch((error: unknown) => {
      throw new Error(this.outputOf('balancer').slice(-2_000), { cause: error });
    });
  }

  #run(service: string, program: string, args: readonly string[], environment: Readonly<Record<string, string>>, cwd: string): void {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#output.set(service, '');
    const read = (chunk: Buffer): void => void this.#output.set(service, this.outputOf(service) + chunk.toString());
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', (error) => read(Buffer.from(String(error))));
    this.#processes.set(service, child);
  }

  async #logged(service: string, expected: RegExp): Promise<void> {
    await until(() => expected.test(this.outputOf(service)), `${service} is not ready`).catch((error: unknown) => {
      throw new Error(`${service}: ${this.outputOf(service).slice(-2_000)}`, { cause: error });
    });
  }

  async #answers(service: string, port: number, command: string, expected: RegExp): Promise<void> {
    let answer = '';
    const asked = async (): Promise<boolean> => {
      answer = await send(port, command, this.addressOf(service)).catch(String);
      return expected.test(answer);
    };
    await until(asked, `${service} does not answer ${command}`).catch((error: unknown) => {
      throw new Error(`${service} answered ${command} with ${answer}\n${this.outputOf(service).slice(-2_000)}`, { cause: error });
    });
  }

  #service(name: string): ComposeService {
    const service = this.compose.services[name];
    if (service === undefined) throw new Error(`the file has no service ${name}`);
    return service;
  }

  #here(text: string): string {
    return text.replaceAll('172.30.0.', `${this.network}.`);
  }
}
