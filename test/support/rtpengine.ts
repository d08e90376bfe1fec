import { spawn, type ChildProcess } from 'node:child_process';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/ops/system-clock.js';
import { RtpengineNode } from '../../src/rtpengine/node.js';
import { freePorts } from './ports.js';

/** A real rtpengine on free ports, with the interfaces that the supervisor gives it. */
export class RunningRtpengine {
  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
  ) {}

  static async start(portMin: number, portMax: number): Promise<RunningRtpengine> {
    const [port = 0] = await freePorts(1);
    const args = [
      ...['--config-file=none', '--foreground', '--log-stderr', '--log-level=4', '--table=-1', '--num-threads=1'],
      ...['--interface=inside/127.0.0.1', '--interface=outside/127.0.0.1', `--listen-ng=127.0.0.1:${String(port)}`],
      ...[`--port-min=${String(portMin)}`, `--port-max=${String(portMax)}`, '--delete-delay=0'],
    ];
    const running = new RunningRtpengine(port, spawn('rtpengine', args, { stdio: 'ignore' }));
    // Retransmits until the program has opened its socket.
    const node = running.node(10_000);
    await node.command('ping');
    node.close();
    return running;
  }

  node(timeoutMs = 1_000, port = this.port): RtpengineNode {
    return new RtpengineNode({ address: '127.0.0.1', port, timeoutMs, clock: systemClock, log: silentLog });
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await gone;
  }
}
