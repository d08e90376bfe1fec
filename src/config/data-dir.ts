import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Config } from './schema.js';
import { newToken } from '../lib/ids.js';

/** The directory of all files of an instance, mode 0700 unless it belongs to somebody else. */
export function ensureDataDir(config: Config): string {
  const directory = resolve(config.data_dir);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // A mounted volume may belong to root, with a group that may write: its mode is not ours to change. Our files in it are ours alone (0600).
  if (statSync(directory).uid === process.geteuid?.()) chmodSync(directory, 0o700);
  return directory;
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
