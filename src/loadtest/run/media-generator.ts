import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { within, type Clock } from '../../lib/clock.js';
import { parseMediaEvent, startCommand, stopCommand, type MediaEvent, type Slot } from '../media-events.js';
import type { MediaStart } from '../sipp-files.js';
import { ownedChild, whenGone } from './owned-child.js';

export interface GeneratorOptions {
  readonly program: string;
  readonly address: string;
  readonly ports: { readonly min: number; readonly max: number };
  readonly slots: number;
  readonly clock: Clock;
  readonly onEvent: (event: MediaEvent) => void;
}

const READY_WITHIN_MS = 15_000;
const QUIT_WITHIN_MS = 5_000;

/** The native program that sends SRTP and checks what comes back. */
export class MediaGenerator {
  slots: readonly Slot[] = [];
  readonly #busy = new Set<number>();
  #idle: (() => void) | undefined;

  private constructor(
    private readonly child: ChildProcess,
    private readonly options: GeneratorOptions,
  ) {}

  get pid(): number {
    return this.child.pid ?? 0;
  }

  static async start(options: GeneratorOptions): Promise<MediaGenerator> {
    const { program, address, ports, slots } = options;
    const args = ['--address', address, '--port-min', String(ports.min), '--port-max', String(ports.max), '--slots', String(slots)];
    const generator = new MediaGenerator(ownedChild(program, args, { stdio: ['pipe', 'pipe', 'pipe'] }), options);
    try {
      await generator.#whenReady();
    } catch (error) {
      generator.child.kill('SIGKILL');
      throw error;
    }
    return generator;
  }

  /** false: the slot has a call still. */
  begin(media: MediaStart, digits: string): boolean {
    if (this.#busy.has(media.slot)) return false;
    this.#busy.add(media.slot);
    this.#write(startCommand(media, digits));
    return true;
  }

  end(slot: number): void {
    if (this.#busy.has(slot)) this.#write(stopCommand(slot));
  }

  /** Ends the calls that are left (theirs failed, or were interrupted) and resolves when each has told what it heard. */
  async finish(): Promise<void> {
    if (this.#busy.size === 0) return;
    const idle = new Promise<void>((resolve) => (this.#idle = resolve));
    for (const slot of this.#busy) this.#write(stopCommand(slot));
    await within(this.options.clock, QUIT_WITHIN_MS, idle);
  }

  async close(): Promise<void> {
    this.#write('quit\n');
    await within(this.options.clock, QUIT_WITHIN_MS, whenGone(this.child));
    this.child.kill('SIGKILL');
  }

  #whenReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      let complaint = '';
      this.child.stderr?.on('data', (chunk: Buffer) => (complaint = (complaint + chunk.toString()).slice(-2_000)));
      // It may be gone when it is told to quit.
      this.child.stdin?.on('error', () => undefined);
      this.child.once('error', (error) =>
        reject(new Error(`the media generator cannot be started: ${error.message} (trunkline up makes it)`)),
      );
      this.child.once('exit', (code) => reject(new Error(`the media generator ended with ${String(code)}: ${complaint.trim()}`)));
      const cancel = this.options.clock.setTimer(READY_WITHIN_MS, () => reject(new Error('the media generator did not become ready')));
      if (this.child.stdout === null) return;
      createInterface({ input: this.child.stdout }).on('line', (line) => {
        const event = parseMediaEvent(line);
        if (event === null) return;
        if (event.event === 'ready') {
          cancel();
          this.slots = event.slots;
          resolve();
        } else this.#onEvent(event);
      });
    });
  }

  #onEvent(event: MediaEvent): void {
    this.options.onEvent(event);
    if (event.event !== 'call') return;
    this.#busy.delete(event.slot);
    if (this.#busy.size === 0) this.#idle?.();
  }

  #write(line: string): void {
    if (this.child.stdin?.writable === true) this.child.stdin.write(line);
  }
}
