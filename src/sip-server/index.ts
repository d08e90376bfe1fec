// `trunkline/sip-server`: the embedded SIP server alone, for a test or a product. drachtio-srf connects to it as to a drachtio-server.

import { loadConfig } from '../config/load.js';
import { silentLog, type Log } from '../lib/log.js';
import { configOptions } from './config-options.js';
import { SipServer, type SipServerOptions } from './server.js';

export interface SipServerSettings {
  /** One address of this machine. Default: 127.0.0.1. */
  readonly bindAddress?: string;
  /** Address in Contact and Via. Default: the bind address. */
  readonly externalHost?: string;
  /** Unset: disabled; 0: any free port, see `portOf`. TLS also needs `tls`. */
  readonly ports: { readonly tls?: number; readonly tcp?: number; readonly udp?: number };
  /** Certificate chain and key of the server, PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** For our TLS connections: `ca` (PEM) replaces the public CAs; `verify: false` accepts any certificate. */
  readonly outgoingTls?: { readonly ca?: string; readonly verify?: boolean; readonly names?: readonly string[] };
  /** Where applications connect; port 0: any free one, see `controlPort`. Default address: 127.0.0.1. */
  readonly control: { readonly address?: string; readonly port: number; readonly secret: string };
  /** Timers T1, T2 and T4, limits and so on; default: config/default.yaml (see docs/settings.md). */
  readonly overrides?: Partial<Pick<SipServerOptions, 'timers' | 'limits' | 'optionsUserAgents' | 'silenceTimeoutMs' | 'graceMs'>>;
  /** pino's methods. Default: no logs. */
  readonly log?: Log;
}

/**
 * Starts a SIP server and resolves when every socket listens. It reads no configuration of the machine and writes no file.
 * `close` ends it immediately, without BYE.
 * @throws the system error, with address and port, when a port is taken
 */
export async function startSipServer(settings: SipServerSettings): Promise<SipServer> {
  const { bindAddress = '127.0.0.1', externalHost = null, ports, tls, outgoingTls, control, overrides, log = silentLog } = settings;
  const server = new SipServer({
    ...configOptions(loadConfig({ environment: {} })),
    bindAddress,
    externalHost,
    ports: { tls: ports.tls ?? null, tcp: ports.tcp ?? null, udp: ports.udp ?? null },
    tls: tls === undefined ? null : { certificates: [tls], minVersion: 'TLSv1.2', ciphers: null, clients: null },
    outgoingTls: { ca: outgoingTls?.ca ?? null, verify: outgoingTls?.verify ?? true, names: outgoingTls?.names ?? [] },
    control: { address: '127.0.0.1', ...control },
    allow: null,
    journal: null,
    cell: null,
    log,
    ...overrides,
  });
  await server.listen();
  return server;
}

export { SipServer, type SipServerOptions } from './server.js';
export type { Log } from '../lib/log.js';
