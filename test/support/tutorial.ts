import { spawn, type ChildProcess } from 'node:child_process';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from './carrier-call.js';

/** What a page asks its reader to do: commands with what they print, or what only the world has. */
interface Action {
  /** `yours`: values of the reader; `world`: a thing that a test replaces; `terminal`: stays in the foreground; `Ctrl-C`: ends such a one. */
  readonly kind: 'run' | 'yours' | 'world' | 'terminal' | 'Ctrl-C';
  /** Of a thing of the world, or of a terminal. */
  readonly name: string;
  readonly commands: string;
  /** Empty: the page shows no output. */
  output: string;
}

export interface Step {
  /** The step's heading. */
  readonly title: string;
  readonly actions: readonly Action[];
}

/**
 * The steps (`###`) of one part (`##`) of a page. A comment before a block says what it is: `<!-- yours -->`, `<!-- world: DNS -->`,
 * `<!-- terminal: gateway -->` or `<!-- Ctrl-C: gateway -->`; a `sh` block without one runs as it stands. A `text` block is the output of the
 * commands above it.
 */
export function stepsOf(page: string, part: string): Step[] {
  const [, text = ''] = page.split(`\n## ${part}\n`);
  return (text.split('\n## ')[0] ?? '')
    .split('\n### ')
    .slice(1)
    .map((step) => ({ title: step.slice(0, step.indexOf('\n')), actions: actionsOf(step) }));
}

function actionsOf(step: string): Action[] {
  const actions: Action[] = [];
  let mark: readonly [kind: Action['kind'], name: string] | undefined;
  for (const [, kind, name, language, block = ''] of step.matchAll(
    /^<!-- (yours|world|terminal|Ctrl-C)(?:: (\S+))? -->$|^```(sh|text)\n([\s\S]*?)^```$/gm,
  )) {
    if (language === 'text') actions.at(-1)!.output = block;
    else if (language === 'sh') {
      actions.push({ kind: mark?.[0] ?? 'run', name: mark?.[1] ?? '', commands: block, output: '' });
      mark = undefined;
    } else {
      mark = [kind as Action['kind'], name ?? ''];
      // Neither needs commands on the page.
      if (kind === 'Ctrl-C' || name === 'carrier') {
        actions.push({ kind: mark[0], name: mark[1], commands: '', output: '' });
        mark = undefined;
      }
    }
  }
  return actions;
}

/** What a tutorial's page shows: `…` stands for anything, a line of it alone for any lines; a number, a gap and a line of `─` may be others. */
export function shown(output: string): RegExp {
  const escaped = (text: string): string =>
    text
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace(/\d+/g, '\\d+')
      .replace(/ {2,}/g, ' +')
      .replace(/─+/g, '─+')
      .replaceAll('…', '.*');
  const lines = output.trimEnd().split('\n');
  return new RegExp(
    `^${lines.map((line, at) => (line === '…' ? '(?:.*\\n)*?' : `${escaped(line)}${at === lines.length - 1 ? '' : '\\n'}`)).join('')}`,
    'm',
  );
}

/** Without what `npm run` sets for those that it starts, such as the log level of `--silent`: a reader types the commands into a shell. */
const READERS_ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));

/** A reader who does what a page says, in shells of their own. */
export class Reader {
  readonly #terminals = new Map<string, { readonly child: ChildProcess; output: string; hasEnded: boolean }>();

  /**
   * @param directory where the reader begins
   * @param environment beside that of this process
   * @param adapt a text of the page for this machine: ports and names
   * @param yours commands in place of the block with the reader's values
   * @param world what happens in place of the things that only the world has, by name
   * @param beforeTerminal runs before a command that stays in the foreground
   */
  constructor(
    private readonly directory: string,
    private readonly environment: Readonly<Record<string, string>>,
    private readonly adapt: (text: string) => string,
    private readonly yours: string,
    private readonly world: Readonly<Record<string, () => Promise<void>>>,
    private readonly beforeTerminal: () => Promise<void> = () => Promise.resolve(),
  ) {}

  async take({ actions }: Step): Promise<void> {
    for (const action of actions) {
      const { kind, name } = action;
      if (kind === 'yours') await this.#run(this.yours);
      else if (kind === 'world') await this.world[name]!();
      else if (kind === 'Ctrl-C') await this.#interrupt(name);
      else if (kind === 'terminal') await this.#stay(action);
      else expectShown(await this.#run(this.adapt(action.commands)), this.adapt(action.output));
    }
  }

  /** Where the commands of the page have led. */
  async workingDirectory(): Promise<string> {
    return (await readFile(this.#file('cwd'), 'utf8')).trim();
  }

  async close(): Promise<void> {
    for (const name of this.#terminals.keys()) await this.#interrupt(name);
  }

  #file(name: string): string {
    return join(this.directory, 'shell', name);
  }

  /** A shell that goes on with the variables and the directory of the one before. */
  async #shell(commands: string, isForeground: boolean): Promise<ChildProcess> {
    await mkdir(this.#file(''), { recursive: true });
    await appendFile(this.#file('variables'), '');
    const before = `exec 2>&1\nset -aeo pipefail\n. ${this.#file('variables')}\nif [ -e ${this.#file('cwd')} ]; then cd "$(cat ${this.#file('cwd')})"; fi\n`;
    const after = `\nexport -p > ${this.#file('variables')}\npwd > ${this.#file('cwd')}\n`;
    const script = this.#file(isForeground ? 'foreground.sh' : 'commands.sh');
    await writeFile(script, `${before}${commands}${isForeground ? '' : after}`);
    return spawn('bash', [script], {
      cwd: this.directory,
      env: { ...READERS_ENVIRONMENT, ...this.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A terminal's Ctrl-C reaches every process of the group.
      detached: true,
    });
  }

  async #run(commands: string): Promise<string> {
    const child = await this.#shell(commands, false);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const code = await new Promise<number | null>((done) => child.once('close', done));
    if (code !== 0) throw new Error(`These ended with ${String(code)}:\n${commands}\n${output}`);
    return output;
  }

  async #stay({ name, commands, output }: Action): Promise<void> {
    await this.beforeTerminal();
    const terminal = { child: await this.#shell(this.adapt(commands), true), output: '', hasEnded: false };
    this.#terminals.set(name, terminal);
    for (const stream of [terminal.child.stdout, terminal.child.stderr])
      stream?.on('data', (chunk: Buffer) => (terminal.output += chunk.toString()));
    terminal.child.once('close', () => (terminal.hasEnded = true));
    const pattern = shown(this.adapt(output));
    await until(() => terminal.hasEnded || pattern.test(terminal.output), `${commands} does not print what the page shows`).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}:\n${terminal.output}`);
      },
    );
    expectShown(terminal.output, this.adapt(output));
  }

  async #interrupt(name: string): Promise<void> {
    const terminal = this.#terminals.get(name);
    if (terminal?.child.pid === undefined || terminal.hasEnded) return;
    process.kill(-terminal.child.pid, 'SIGINT');
    await until(() => terminal.hasEnded, `${name} does not end`);
  }
}

function expectShown(output: string, page: string): void {
  if (!shown(page).test(output)) throw new Error(`The page shows:\n${page}\nThe commands printed:\n${output}`);
}
