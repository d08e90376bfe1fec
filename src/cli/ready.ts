import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../config/schema.js';
import { CommandFailure } from './command.js';

/** The content of ready.json, which `trunkline up` writes. */
export interface Ready {
  readonly pid: number;
  readonly sip: {
    readonly tls?: string;
    /** The name in the operator's certificate; none: the certificate has the address of `tls`. */
    readonly certificate_name?: string;
  };
  /** Base URL of the control API. */
  readonly http: string;
  /** The demo organization's key; null: no demo organization. */
  readonly api_key: string | null;
  /** The demo organization. */
  readonly org_id?: string | null;
  readonly phone_number: string | null;
  readonly ca_file: string | null;
  /** The --config and --set that it was started with. */
  readonly config_flags?: StartedWith;
}

export interface StartedWith {
  readonly config: string | null;
  readonly set: readonly string[];
}

/** null: no gateway runs here. */
export async function readReady(config: Pick<Config, 'data_dir'>): Promise<Ready | null> {
  try {
    return JSON.parse(await readFile(readyFile(config), 'utf8')) as Ready;
  } catch {
    return null;
  }
}

/** Throws a `CommandFailure` when no gateway runs here. @param otherwise what names another one, such as "give --api-url" */
export async function runningGateway(config: Pick<Config, 'data_dir'>, otherwise: string): Promise<Ready> {
  const ready = await readReady(config);
  if (ready !== null) return ready;
  throw new CommandFailure(`no running gateway: ${readyFile(config)} not found. Start it with trunkline up, or ${otherwise}`);
}

/** The flags of the product that runs here; `null`: none runs, or it does not say. */
export function startedWith(config: Pick<Config, 'data_dir'>): StartedWith | null {
  try {
    const { pid, config_flags: flags } = JSON.parse(readFileSync(readyFile(config), 'utf8')) as Ready;
    process.kill(pid, 0);
    return flags ?? null;
  } catch {
    return null;
  }
}

/**
 * The file with the CA of the SIP server's certificate, for those that call it: the one that this product made, else `ca_file`, as an external
 * SIP server, or a certificate of the operator's, may be of a private CA. null: a public one.
 */
export function caOfSipServer(made: string | null, { ca_file: file }: Pick<Config, 'ca_file'>): string | null {
  return made ?? (file === null ? null : resolve(file));
}

function readyFile({ data_dir }: Pick<Config, 'data_dir'>): string {
  return join(resolve(data_dir), 'ready.json');
}
