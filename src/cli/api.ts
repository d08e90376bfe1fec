import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { ApiError, createClient, type Client } from '../client/index.js';
import type { Config } from '../config/schema.js';
import { CommandFailure } from './org.js';

// What commands share that go over the control API: to whichever Trunkline, with a key.

export interface ApiFlags {
  readonly url?: string;
  readonly key?: string;
  readonly json?: boolean;
}

export interface ApiIo {
  readonly config: () => Pick<Config, 'data_dir'>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly print: (line: string) => void;
  /** In place of the global one. */
  readonly fetch?: typeof fetch;
}

export function apiFlags(command: Command): Command {
  return command
    .option('--url <url>', 'control API, such as http://127.0.0.1:8080 (TRUNKLINE_API_URL); without it that of the running gateway')
    .option('--key <key>', 'API key (TRUNKLINE_API_KEY, which other users of this machine do not see)')
    .option('--json', 'print JSON');
}

/** Runs `work` with a client; a failure is one line on standard error and exit code 1. */
export async function withApi(command: Command, io: ApiIo, flags: ApiFlags, work: (api: Client) => Promise<void>): Promise<void> {
  try {
    const { url, key } = await accessOf(io, flags);
    const api = createClient({ baseUrl: url, apiKey: key, ...(io.fetch === undefined ? {} : { fetch: io.fetch }) });
    await work(api).catch((error: unknown) => {
      throw error instanceof ApiError ? new CommandFailure(sentenceOf(error, url)) : error;
    });
  } catch (error) {
    if (error instanceof CommandFailure) command.error(`error: ${error.message}`, { exitCode: 1 });
    throw error;
  }
}

async function accessOf(io: ApiIo, flags: ApiFlags): Promise<{ readonly url: string; readonly key: string }> {
  const named = flags.url ?? nonEmpty(io.environment['TRUNKLINE_API_URL']);
  const key = flags.key ?? nonEmpty(io.environment['TRUNKLINE_API_KEY']);
  if (named !== undefined) {
    if (!/^https?:\/\/[^/\s@]+/i.test(named) || !URL.canParse(named))
      throw new CommandFailure('the URL must be http:// or https://, without a user');
    // The demo key is for the gateway of this machine: another server does not get it.
    if (key === undefined) throw new CommandFailure('an API key is missing: give --key or TRUNKLINE_API_KEY');
    return { url: named.replace(/\/+$/, ''), key };
  }
  const ready = await readReady(io.config().data_dir);
  const found = key ?? ready.api_key;
  if (found === null)
    throw new CommandFailure('an API key is missing: make one with trunkline key create <org>, give it as TRUNKLINE_API_KEY');
  return { url: ready.http, key: found };
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

interface Ready {
  readonly http: string;
  readonly api_key: string | null;
}

async function readReady(dataDir: string): Promise<Ready> {
  const file = join(resolve(dataDir), 'ready.json');
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Ready;
  } catch {
    throw new CommandFailure(`no running gateway is known: ${file} is not there. Start it with trunkline up, or give --url and --key`);
  }
}

function sentenceOf(error: ApiError, url: string): string {
  const { code, message, retryAfterSeconds: wait, requestId } = error;
  if (code === 'UNREACHABLE') return `${url} cannot be reached. Is Trunkline running? Start it with: trunkline up`;
  if (code === 'TIMEOUT' || code === 'BAD_ANSWER') return `${url}: ${message}`;
  const hint = code === 'UNAUTHENTICATED' ? ' (--key, or TRUNKLINE_API_KEY)' : wait === null ? '' : `; try again in ${String(wait)} s`;
  return plain(`${message}${hint}${code === 'INTERNAL' || requestId === null ? '' : ` [${code}]`}`);
}

/** https://no-color.org: not when NO_COLOR is set, whatever to. */
export function wantsColour(environment: ApiIo['environment']): boolean {
  return (environment['NO_COLOR'] ?? '') === '';
}

/** What callers and servers say may hold anything: nothing of it controls the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}

/** A count for the query of a request, which the API judges. */
export function queryOf<Name extends string>(given: Readonly<Record<Name, string | undefined>>): { [name in Name]?: string } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as { [name in Name]?: string };
}
