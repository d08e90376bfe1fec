import { execFileSync } from 'node:child_process';
import { accessSync, chmodSync, constants, lchownSync, lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { ConfigError } from '../config/layers.js';
import { PACKAGE_ROOT } from '../config/load.js';
import type { Config } from '../config/schema.js';

const PROGRAM = join(PACKAGE_ROOT, 'dist/cli/main.js');

interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Switches to the user of `run_as` for good: this process and everything that it starts later. That user then owns `data_dir`.
 * @throws ConfigError if it cannot
 */
export function becomeUser(config: Pick<Config, 'run_as' | 'data_dir'>): void {
  const { run_as: name } = config;
  if (!isRoot()) return stayUser(name);
  if (name === null) return;
  const user = userOf(name);
  const directory = resolve(config.data_dir);
  giveDirectory(directory, name, user);
  process.setgroups?.([]);
  process.setgid?.(user.gid);
  process.setuid?.(user.uid);
  Object.assign(process.env, { HOME: directory, USER: name, LOGNAME: name });
  assertReachable(directory, name);
}

/** To log once everything runs. */
export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

function stayUser(name: string | null): void {
  if (name === null) return;
  const username = ownName();
  if (name === username) return;
  throw new ConfigError(
    `run_as = ${JSON.stringify(name)} needs root, and this is ${username}: start it as root or as ${name}, or unset run_as (TRUNKLINE_RUN_AS)`,
  );
}

/** A container may run under a user id that has no name. */
function ownName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user id ${String(process.geteuid?.())}`;
  }
}

function userOf(name: string): User {
  const idOf = (flag: string): number =>
    Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  let user: User;
  try {
    user = { uid: idOf('-u'), gid: idOf('-g') };
  } catch {
    throw new ConfigError(`run_as = ${JSON.stringify(name)}: no such user. Create it: useradd --system --shell /usr/sbin/nologin ${name}`);
  }
  if (user.uid === 0 || user.gid === 0)
    throw new ConfigError(`run_as = ${JSON.stringify(name)} is root or in its group: name another user`);
  return user;
}

/** Gives the user what root created there before. Refuses another user's directory. */
function giveDirectory(directory: string, name: string, { uid, gid }: User): void {
  // Without data_dir's mode: the user must be able to traverse it.
  mkdirSync(dirname(directory), { recursive: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { uid: owner } = statSync(directory);
  // Never chown inside the user's own directory: a link in it could point to any file of the machine.
  if (owner === uid) return;
  if (owner !== 0) {
    throw new ConfigError(
      `data_dir ${directory} belongs to user id ${String(owner)}: chown -R ${name} it, or set data_dir to another directory`,
    );
  }
  const real = realpathSync(directory);
  chmodSync(real, 0o700);
  for (const file of below(real)) lchownSync(file, uid, gid);
  lchownSync(real, uid, gid);
}

/** Every file below, including links themselves, never their targets. */
function below(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const file = join(directory, name);
    return lstatSync(file).isDirectory() ? [...below(file), file] : [file];
  });
}

function assertReachable(directory: string, name: string): void {
  const wanted: readonly [string, string, number][] = [
    [`data_dir ${directory}`, directory, constants.R_OK | constants.W_OK | constants.X_OK],
    [`the program ${PROGRAM}`, PROGRAM, constants.R_OK],
  ];
  for (const [what, path, mode] of wanted) {
    try {
      accessSync(path, mode);
    } catch {
      throw new ConfigError(`${what} is not accessible to ${name} (run_as): change its permissions, or those of a directory above it`);
    }
  }
}
