import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Config } from './schema.js';
import { newToken } from '../lib/ids.js';

/** The directory that holds everything an instance keeps: mode 0700. */
export function ensureDataDir(config: Config): string {
  const directory = resolve(config.data_dir);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  return directory;
}

/** What a drachtio-server takes when nobody configured it. */
const DRACHTIO_DEFAULT_SECRET = 'cymru';

/** The control port's secret: the setting; of an external SIP server its default; of the embedded one that made at the first start. */
export function controlSecret(config: Config): string {
  if (config.drachtio.secret !== null) return config.drachtio.secret;
  if (config.drachtio.url !== null) return DRACHTIO_DEFAULT_SECRET;
  return keptToken(config, 'control-secret', 32);
}

/** The name that this gateway has across restarts: the setting, or one made at the first start. */
export function gatewayInstance(config: Config): string {
  return config.gateway.instance ?? keptToken(config, 'gateway-instance', 12);
}

function keptToken(config: Config, name: string, length: number): string {
  const file = join(ensureDataDir(config), name);
  try {
    const kept = readFileSync(file, 'utf8').trim();
    if (kept !== '') return kept;
  } catch {
    // The first start.
  }
  const made = newToken(length);
  try {
    // `wx`: of two processes that start at once, one makes it and the other reads it.
    writeFileSync(file, made, { mode: 0o600, flag: 'wx' });
    return made;
  } catch {
    return readFileSync(file, 'utf8').trim();
  }
}

/** Writes a file that appears whole or not at all, readable by its owner only; on disk when this returns. */
export function writePrivateFile(file: string, text: string): void {
  const temporary = `${file}.${newToken(8)}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(temporary, file);
}
