import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import Table from 'cli-table3';
import { InvalidArgumentError, type Command } from 'commander';
import type { OrgRecord } from '../gateway/model/records.js';
import { StoreUnavailableError } from '../gateway/ports/ports.js';
import type { Stores } from '../gateway/ports/stores.js';
import { errorText } from '../lib/result.js';

// What commands share.

/** A fault of the person at the keyboard: shown as it is, exit code 1. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

/** Runs the work of a command; a `CommandFailure` is one line on standard error and exit code 1. */
export async function orFail(command: Command, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof CommandFailure) command.error(`error: ${error.message}`, { exitCode: 1 });
    throw error;
  }
}

/** Parser of an option's number from `least` to `most`, both included. */
export function number(least: number, most: number, kind: 'a number' | 'a whole number' = 'a number'): (text: string) => number {
  return (text) => {
    const value = Number(text);
    const isValid = text.trim() !== '' && value >= least && value <= most && (kind === 'a number' || Number.isInteger(value));
    if (!isValid) throw new InvalidArgumentError(`must be ${kind} from ${String(least)} to ${String(most)}`);
    return value;
  };
}

/** Parser of an option's whole number from `least` to `most`, both included. */
export const whole = (least: number, most: number): ((text: string) => number) => number(least, most, 'a whole number');

/** Prints on standard output. */
export const printLine = (line: string): void => console.log(line);

export interface JsonFlag {
  readonly json?: boolean;
}

/** Prints a result: as JSON when that is asked for, otherwise its lines. */
export function printResult({ print }: Pick<StoreIo, 'print'>, { json }: JsonFlag, result: unknown, ...lines: readonly string[]): void {
  if (json === true) print(JSON.stringify(result));
  else for (const line of lines) print(plain(line));
}

/** What callers and servers say may hold anything: nothing of it controls the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}

const BORDERS =
  'top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right left left-mid mid mid-mid right right-mid middle'.split(' ');

/** Columns as wide as their widest cell, without borders. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const made = new Table({
    head: [...head],
    chars: Object.fromEntries(BORDERS.map((name) => [name, ''])),
    style: { 'padding-left': 0, 'padding-right': 2, head: [] },
  });
  made.push(...rows.map((row) => [...row]));
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd());
}

/** Throws a `CommandFailure` when the file cannot be read. */
export async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandFailure(`cannot read ${file}: ${errorText(error)}`);
  }
}

/** Throws a `CommandFailure` when the file cannot be read, or is no JSON. */
export async function jsonOf(file: string): Promise<unknown> {
  const value = parsedJson(await textOf(file));
  if (value === undefined) throw new CommandFailure(`${file} is not valid JSON`);
  return value;
}

/** `undefined`: it is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

// What operators' commands share, which are there before any key is: they go to the store.

/** Opens the stores for the time of one command. */
export type Connect = () => Promise<Stores & { close(): Promise<void> }>;

export interface StoreIo {
  readonly connect: Connect;
  readonly print: (line: string) => void;
  /** What is said beside the answer, on standard error. */
  readonly note?: (line: string) => void;
}

/** Says whom an answer is of that is used as it is printed. */
export function noteOrg({ note = console.error }: Pick<StoreIo, 'note'>, { name, org_id: id }: OrgRecord): void {
  note(plain(`Organization: ${name} (${id})`));
}

/** Makes `command` one over the store: `work` gets the open stores, the flags and the arguments. A failure is one line on standard error and exit code 1. */
export function overStores(
  command: Command,
  { connect }: StoreIo,
  work: (stores: Stores, flags: never, ...args: never[]) => Promise<void>,
): Command {
  return command.action(() =>
    orFail(command, async () => {
      try {
        const stores = await connect();
        try {
          await work(stores, command.opts<never>(), ...(command.processedArgs as never[]));
        } finally {
          await stores.close();
        }
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        throw new CommandFailure(`${error.message}. Is Trunkline running? Start it with: trunkline up`);
      }
    }),
  );
}

/** Notes a change in the organization's audit log. Never rejects: the change is made, whatever becomes of the note. */
export async function noteChange(
  stores: Pick<Stores, 'audit'>,
  orgId: string,
  action: string,
  record: string,
  fields: readonly string[] = [],
): Promise<void> {
  try {
    await stores.audit.append(orgId, { by: { key_id: null, name: `cli:${userName()}` }, action, record, fields });
  } catch (error) {
    console.error(`trunkline: changed, but the audit log has no entry: ${errorText(error)}`);
  }
}

/** A container may run under a user that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** The organization that a person named by its id, or by its name when only one has it. */
export async function findOrg(stores: Pick<Stores, 'orgs'>, idOrName: string): Promise<OrgRecord> {
  const byId = await stores.orgs.get(idOrName);
  if (byId !== null) return byId;
  const named = (await stores.orgs.list()).filter((org) => org.name === idOrName);
  if (named.length > 1) throw new CommandFailure(`${named.length} organizations are called "${idOrName}": use the id (trunkline org list)`);
  const [only] = named;
  if (only === undefined) throw new CommandFailure(`organization "${idOrName}" not found (trunkline org list shows all)`);
  return only;
}

/** A name as it may stand in a list: 1 to 100 printable characters. */
export function checkName(what: string, name: string): string {
  const trimmed = name.trim();
  if (trimmed.length < 1 || trimmed.length > 100 || /\p{C}/u.test(trimmed)) {
    throw new CommandFailure(`the name of ${what} must be 1 to 100 printable characters`);
  }
  return trimmed;
}

/** A limit as an option gives it. Not null for "none": commander takes that for an option without a value. */
export type LimitArgument = number | 'none';

/** Reads a limit from 0 to the most that it may be. */
export function limitArgument(most: number): (text: string) => LimitArgument {
  return (text) => {
    if (text === 'none') return text;
    if (/^\d{1,13}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`must be 0 to ${most}, or "none".`);
  };
}
