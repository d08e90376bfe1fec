import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../config/schema.js';

/** What `trunkline up` tells of itself in ready.json. */
export interface Ready {
  readonly pid: number;
  readonly sip: { readonly tls?: string };
  readonly http: string;
  readonly org_id: string | null;
  readonly phone_number: string | null;
  readonly ca_file: string | null;
}

export function readyFile(config: Config): string {
  return join(resolve(config.data_dir), 'ready.json');
}

/** null: no gateway runs here. */
export async function readReady(config: Config): Promise<Ready | null> {
  try {
    return JSON.parse(await readFile(readyFile(config), 'utf8')) as Ready;
  } catch {
    return null;
  }
}
