import { accessSync, chmodSync, constants, linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from './layers.js';
import type { Config } from './schema.js';
import { newToken } from '../lib/ids.js';
import { errorText } from '../lib/result.js';

/**
 * The directory of all files of an instance, mode 0700 unless it belongs to somebody else.
 * @throws ConfigError if this process cannot make it, or may not write to it
 */
export function ensureDataDir(config: Pick<Config, 'data_dir'>): string {
  const directory = resolve(config.data_dir);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    // A mounted volume may belong to root, with a group that may write: its mode is not ours to change. Our files in it are ours alone (0600).
    if (statSync(directory).uid === process.geteuid?.()) chmodSync(directory, 0o700);
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new ConfigError(`data_dir ${directory} cannot be used: ${errorText(error)}. ${remedyOf(error, directory)}`);
  }
  return directory;
}

/** What the operator can do. A directory that was mounted into a container most often belongs to root. */
function remedyOf(error: unknown, directory: string): string {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const other = 'set data_dir (TRUNKLINE_DATA_DIR) to a directory that its user may write to';
  if (code !== 'EACCES' && code !== 'EPERM') return `Mend that, or ${other}.`;
  const user = String(process.geteuid?.());
  return `Trunkline runs as user id ${user}: chown -R ${user} ${directory} (for a container, the directory or volume that is mounted there), or ${other}.`;
}

/** drachtio-server's default secret. */
const DRACHTIO_DEFAULT_SECRET = 'cymru';

/** The control port's secret: the setting; for an external SIP server drachtio-server's default; else one made at the first start. */
export function controlSecret(config: Config): string {
  if (config.drachtio.secret !== null) return config.drachtio.secret;
  if (config.drachtio.url !== null) return DRACHTIO_DEFAULT_SECRET;
  return keptToken(config, 'control-secret', 32);
}

/** The gateway's name across restarts: the setting, or one made at the first start. */
export function gatewayInstance(config: Config): string {
  return config.gateway.instance ?? keptToken(config, 'gateway-instance', 12);
}

function keptToken(config: Config, name: string, length: number): string {
  const file = join(ensureDataDir(config), name);
  const kept = readOrEmpty(file);
  if (kept !== '') return kept;
  const made = newToken(length);
  const temporary = `${file}.${newToken(8)}.tmp`;
  writeFileSync(temporary, made, { mode: 0o600, flag: 'wx' });
  try {
    // Of two processes that start at once, one makes the file, complete, and the other reads it.
    linkSync(temporary, file);
  } catch {
    const others = readOrEmpty(file);
    if (others !== '') return others;
    writePrivateFile(file, made);
  } finally {
    rmSync(temporary);
  }
  return made;
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Writes a file atomically, readable by its owner only, and syncs it to disk. */
export function writePrivateFile(file: string, text: string): void {
  const temporary = `${file}.${newToken(8)}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(temporary, file);
}
