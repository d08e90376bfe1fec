import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Arrivals } from '../arrivals.js';

const PROGRAM = resolve('native/build/Release/media-generator');

export type GeneratorEvent = Readonly<Record<string, unknown>> & { readonly event: string };

export interface GeneratorSlot {
  readonly slot: number;
  readonly port: number;
  readonly key: string;
}

/** One end of a call, to be told to `start`. */
export interface FarEnd {
  readonly port: number;
  readonly key: string;
}

export interface StartOptions {
  readonly payloadType?: 0 | 8;
  readonly digits?: string;
}

/** The native media generator as `trunkline load` drives it. */
export class MediaGenerator {
  readonly slots: GeneratorSlot[] = [];
  readonly #events = new Arrivals<GeneratorEvent>();
  readonly #taken = new Set<GeneratorEvent>();
  readonly #exit: Promise<number | null>;

  private constructor(readonly child: ChildProcess) {
    if (child.stdout === null) throw new Error('no stdout');
    createInterface({ input: child.stdout }).on('line', (line) => this.#events.add(JSON.parse(line) as GeneratorEvent));
    this.#exit = new Promise((done) => child.once('close', done));
  }

  static async start(slots: number, portMin: number, portMax = portMin + 4 * slots): Promise<MediaGenerator> {
    const generator = new MediaGenerator(spawnGenerator(['--port-min', portMin, '--port-max', portMax, '--slots', slots]));
    const ready = await generator.next('ready');
    generator.slots.push(...(ready['slots'] as GeneratorSlot[]));
    return generator;
  }

  slot(index: number): GeneratorSlot {
    const slot = this.slots[index];
    if (slot === undefined) throw new Error(`no slot ${String(index)}`);
    return slot;
  }

  /** One line of its stdin. */
  say(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  call(slot: number, far: FarEnd, { payloadType = 0, digits = '-' }: StartOptions = {}): void {
    this.say(`start ${String(slot)} 127.0.0.1 ${String(far.port)} ${far.key} ${String(payloadType)} 101 ${digits}`);
  }

  /** Ends the call; resolves with its figures. */
  stop(slot: number): Promise<GeneratorEvent> {
    this.say(`stop ${String(slot)}`);
    return this.next('call', (event) => event['slot'] === slot);
  }

  /** The next event of this name that was not taken yet. */
  async next(name: string, matches: (event: GeneratorEvent) => boolean = () => true): Promise<GeneratorEvent> {
    const isIt = (event: GeneratorEvent): boolean => event.event === name && !this.#taken.has(event) && matches(event);
    const event = await this.#events.until((all) => all.find(isIt));
    this.#taken.add(event);
    return event;
  }

  /** The first event of this name that comes from now on. */
  coming(name: string, matches: (event: GeneratorEvent) => boolean): Promise<GeneratorEvent> {
    const from = this.#events.all.length;
    return this.#events.until((all) => all.slice(from).find((event) => event.event === name && matches(event)));
  }

  /** Resolves with the last event, `total`, when the program has ended well. */
  async quit(): Promise<GeneratorEvent> {
    this.say('quit');
    const total = await this.next('total');
    const code = await this.#exit;
    if (code !== 0) throw new Error(`the generator ended with ${String(code)}`);
    return total;
  }

  /** For a test that failed before `quit`. */
  kill(): void {
    this.child.kill('SIGKILL');
  }
}

/** What it says of flags that it does not take. */
export async function refusalOf(flags: readonly (string | number)[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(PROGRAM, flags.map(String), { stdio: ['ignore', 'ignore', 'pipe'] });
  let text = '';
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((done) => child.once('close', done));
  return { code, text };
}

function spawnGenerator(flags: readonly (string | number)[]): ChildProcess {
  return spawn(PROGRAM, ['--address', '127.0.0.1', ...flags.map(String)], { stdio: ['pipe', 'pipe', 'inherit'] });
}
