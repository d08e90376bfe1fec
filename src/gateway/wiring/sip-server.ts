import { cellOfGateway, controlAddress } from '../../config/cells.js';
import { controlSecret } from '../../config/data-dir.js';
import type { GatewayWorker } from '../../config/gateway-worker.js';
import { askProcess, RETIRE_QUESTION } from '../../config/process-socket.js';
import type { Config } from '../../config/schema.js';
import { formatHostPort } from '../../lib/address.js';
import { resolveHostPort } from '../../lib/resolve.js';
import type { Inbound } from '../drachtio/inbound.js';
import type { SrfApp } from '../ports/signalling.js';

/** For a predecessor that finishes the requests of its control API. */
const RETIRE_LIMIT_MS = 10_000;

/** New calls come here from now on. Rejects when the predecessor does not give up its place. */
export async function retirePredecessor(config: Config, { predecessor }: GatewayWorker): Promise<void> {
  if (predecessor !== undefined) await askProcess(config.data_dir, predecessor, RETIRE_QUESTION, RETIRE_LIMIT_MS);
}

/** For the SIP server to take the gateway; calls of an earlier process connect their agents anew within it too. */
const SERVER_LIMIT_MS = 10_000;

/** Connects to the SIP server's control port. Rejects with a text for a person when it does not take the gateway in time. */
export async function connectSipServer(
  config: Config,
  worker: GatewayWorker,
  instance: string,
  srf: SrfApp,
  inbound: Inbound,
): Promise<void> {
  const { url, port } = config.drachtio;
  const at = url === null ? { address: controlAddress(cellOfGateway(worker)), port } : await resolveHostPort(url);
  // The tag tells the embedded SIP server whose calls are whose, across connections and restarts.
  srf.connect({ host: at.address, port: at.port, secret: controlSecret(config), tags: [`gw:${instance}`] });
  const name = `${formatHostPort(at.address, at.port)} (${url === null ? 'drachtio.port' : 'drachtio.url'})`;
  await inbound.whenConnected(SERVER_LIMIT_MS + config.agents.connect_timeout_ms, name);
}
