import { spawn, type ChildProcess } from 'node:child_process';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { callsOfPorts } from '../../src/gateway/relay/media-ports.js';
import { RtpengineNode } from '../../src/gateway/relay/node.js';
import { openRelayPool, type RelayPool, type RelayPoolOptions } from '../../src/gateway/relay/pool.js';
import { rtpengineEnvironment } from '../../src/supervisor/child-environment.js';
import { freePorts, relayPorts, type PortRange } from './ports.js';
import { HANG_GUARD_MS } from './hang-guard.js';

/** A real rtpengine on free ports, with the interfaces that the supervisor gives it. */
export class RunningRtpengine {
  private constructor(
    readonly port: number,
    private readonly ports: PortRange,
    private child: ChildProcess,
  ) {}

  /** @param given ports that the caller has, or how many of this process's */
  static async start(given: number | PortRange, deleteDelayS = 0): Promise<RunningRtpengine> {
    const [port = 0] = await freePorts(1);
    const ports = typeof given === 'number' ? await relayPorts(given) : given;
    const running = new RunningRtpengine(port, ports, launch(port, ports, deleteDelayS));
    await running.#answers();
    return running;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get name(): string {
    return `127.0.0.1:${String(this.port)}`;
  }

  node(timeoutMs = 1_000, port = this.port): RtpengineNode {
    return new RtpengineNode({ address: '127.0.0.1', port, timeoutMs, clock: systemClock, log: silentLog });
  }

  /** A pool of this one alone, as the gateway opens it for its own, unless told otherwise. */
  pool(changes: Partial<RelayPoolOptions> = {}): RelayPool {
    return openRelayPool({
      nodes: [{ address: '127.0.0.1', port: this.port }],
      interfaces: { outside: 'outside', inside: 'inside' },
      instance: 'test',
      clock: systemClock,
      log: silentLog,
      timeoutMs: 1_000,
      maxDelayMs: 250,
      own: { capacity: callsOfPorts(this.ports), instances: ['test', 'test:2'] },
      ...changes,
    });
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await gone;
  }

  /** Starts it anew on the same ports, after `kill`. */
  async startAgain(): Promise<void> {
    this.child = launch(this.port, this.ports, 0);
    await this.#answers();
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await gone;
  }

  async #answers(): Promise<void> {
    // Retransmits until the program has opened its socket.
    const node = this.node(HANG_GUARD_MS);
    await node.command('ping');
    node.close();
  }
}

function launch(port: number, ports: PortRange, deleteDelayS: number): ChildProcess {
  const args = [
    ...['--config-file=none', '--foreground', '--log-stderr', '--log-level=4', '--table=-1', '--num-threads=1'],
    ...['--interface=inside/127.0.0.1', '--interface=outside/127.0.0.1', `--listen-ng=127.0.0.1:${String(port)}`],
    ...[`--port-min=${String(ports.min)}`, `--port-max=${String(ports.max)}`, `--delete-delay=${String(deleteDelayS)}`],
  ];
  return spawn('rtpengine', args, { stdio: 'ignore', env: rtpengineEnvironment(process.env) });
}
