import { snakeKeys } from '../lib/snake-keys.js';
import { Command } from 'commander';
import type { Config } from '../config/schema.js';
import { baseUrl, wantsColour } from './api.js';
import { CommandFailure, orFail, plain } from './command.js';
import { runningGateway } from './ready.js';
import { renderTop, Samples, topView, type TopView } from './top/view.js';

interface TopFlags {
  readonly apiUrl?: string;
  readonly token?: string;
  readonly once?: boolean;
  readonly json?: boolean;
}

export interface TopIo {
  readonly config: () => Config;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly print: (line: string) => void;
}

const PERIOD_MS = 1_000;
const LIMIT_MS = 5_000;
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';

/** `trunkline top`: what the gateway does at this moment, from its metrics. */
export function topCommand(io: TopIo): Command {
  const command = new Command('top')
    .description('watch the running gateway: calls, failures, media, rtpengines, processes; q quits')
    .option('--api-url <url>', 'control API, such as http://127.0.0.1:8080; default: the running gateway')
    .option('--token <token>', 'metrics.bearer_token of that gateway (TRUNKLINE_METRICS_BEARER_TOKEN, or the configuration)')
    .option('--once', 'print once (default when the output is not a terminal)')
    .option('--json', 'print once as JSON');
  return command.action((flags: TopFlags) => orFail(command, () => run(io, flags)));
}

async function run(io: TopIo, flags: TopFlags): Promise<void> {
  const config = io.config();
  const url = flags.apiUrl === undefined ? (await runningGateway(config, 'give --api-url')).http : baseUrl(flags.apiUrl);
  const token = flags.token ?? config.metrics.bearer_token;
  const scrape = (): Promise<Samples> => scrapeFrom(url, token);
  if (flags.json === true || flags.once === true || !process.stdout.isTTY) {
    const view = await twice(scrape);
    if (flags.json === true) {
      io.print(JSON.stringify(snakeKeys(view)));
      return;
    }
    const size = {
      columns: process.stdout.isTTY ? process.stdout.columns : 100,
      rows: 60,
      isColoured: process.stdout.isTTY && wantsColour(io.environment),
    };
    for (const line of renderTop(view, size, url)) io.print(line);
    return;
  }
  await watch(scrape, url, wantsColour(io.environment));
}

/** Rates need two. */
async function twice(scrape: () => Promise<Samples>): Promise<TopView> {
  const first = await scrape();
  await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
  return topView(await scrape(), first, []);
}

async function scrapeFrom(url: string, token: string | null): Promise<Samples> {
  let answer: Response;
  try {
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    answer = await fetch(`${url}/metrics`, { headers, redirect: 'error', signal: AbortSignal.timeout(LIMIT_MS) });
  } catch {
    throw new CommandFailure(`${url}/metrics cannot be reached. Is Trunkline running? Start it with: trunkline up`);
  }
  const text = plain(await answer.text());
  if (answer.status !== 200) throw new CommandFailure(`${url}/metrics answered ${String(answer.status)}: ${text.slice(0, 200).trim()}`);
  return new Samples(text, performance.timeOrigin + performance.now());
}

/** Until `q`, Ctrl-C, or a signal; the terminal is left as it was. */
async function watch(scrape: () => Promise<Samples>, url: string, isColoured: boolean): Promise<void> {
  let before = await scrape();
  let view = topView(before, null, []);
  let problem = '';
  const draw = (): void => {
    const { columns, rows } = process.stdout;
    const lines = renderTop(view, { columns, rows, isColoured }, `${url}  ${clock()}${problem === '' ? '  q quits' : `  ${problem}`}`);
    // Each line is cleared behind its end, and what is below the last one.
    process.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join('\r\n')}\u001b[J`);
  };
  let timer: NodeJS.Timeout | undefined;
  const next = async (): Promise<void> => {
    try {
      const now = await scrape();
      view = topView(now, before, view.newest);
      [before, problem] = [now, ''];
    } catch (error) {
      problem = error instanceof Error ? error.message : 'no answer';
    }
    draw();
    timer = setTimeout(() => void next(), PERIOD_MS);
  };
  process.stdout.write(ENTER);
  try {
    draw();
    process.stdout.on('resize', draw);
    timer = setTimeout(() => void next(), PERIOD_MS);
    await quit();
  } finally {
    clearTimeout(timer);
    process.stdout.off('resize', draw);
    process.stdout.write(LEAVE);
  }
  // A scrape may be under way.
  process.exit(0);
}

function clock(): string {
  return new Date().toISOString().slice(11, 19);
}

function quit(): Promise<void> {
  const { stdin } = process;
  return new Promise((resolve) => {
    const done = (): void => {
      if (stdin.isTTY) stdin.setRawMode(false);
      stdin.pause();
      resolve();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, done);
    if (!stdin.isTTY) return;
    stdin.setRawMode(true);
    stdin.on('data', (keys: Buffer) => {
      // q, Ctrl-C, Ctrl-D.
      if (['q', 'Q', '\u0003', '\u0004'].some((key) => keys.includes(key))) done();
    });
  });
}
