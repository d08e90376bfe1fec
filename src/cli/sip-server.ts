import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { httpAddress, sentinelOf, type Config } from '../config/schema.js';
import { Cell } from '../sip-server/cell.js';
import { configOptions } from '../sip-server/config-options.js';
import { DialogJournal } from '../sip-server/dialog-journal.js';
import { SipServer } from '../sip-server/server.js';
import { createLogger } from '../observability/log/logger.js';
import { cellIndexOf, cellName, controlAddress, journalName, journalsLeft, sipServerName, type CellPlace } from '../config/cells.js';
import { processSocket } from '../config/process-socket.js';
import { prefixTags } from '../lib/ids.js';
import type { Log } from '../lib/log.js';
import { cellAmong, cellPrefix } from '../lib/cells.js';
import { controlSecret, ensureDataDir, gatewayInstance } from '../config/data-dir.js';
import { leaveCounts } from '../observability/metrics/left-counts.js';
import { openMetricsServer } from '../observability/metrics/metrics-server.js';
import { watchProcess } from '../observability/metrics/process-metrics.js';
import { Metrics } from '../observability/metrics/registry.js';
import { collectSipServer } from '../sip-server/sip-server-metrics.js';
import { systemClock } from '../lib/system-clock.js';
import { rootCertificates } from 'node:tls';
import { serverTls, type ServerTls } from '../tls/tls-material.js';
import { TlsReloader } from '../tls/tls-reloader.js';
import { answerProcesses, followed, onHangUp, onStopSignal } from './process.js';

/** Open transactions get so long. */
const RETIRE_MS = 2_000;

/**
 * `trunkline sip-server`: the embedded SIP server in the foreground.
 * @param place among those that share the calls
 * @param after the process that it follows
 */
export async function runSipServer(config: Config, place: CellPlace, after: number | null): Promise<void> {
  const log = createLogger('sip-server', config.log.level);
  const { index, count } = place;
  const name = sipServerName(index);
  const directory = ensureDataDir(config);
  prefixTags(cellPrefix(index));
  const { sip, drachtio } = config;
  const readTls = async (): Promise<ServerTls | null> => (sip.tls_port === null ? null : serverTls(config));
  let tls = await readTls();
  if (after !== null) {
    await followed(config, name, after, log);
    // It may have waited for days: the one before it has other certificates and ticket keys by now.
    tls = await readTls();
  }
  const server = new SipServer({
    ...configOptions(config),
    sockets: inheritedSockets(process.env),
    tls: tls?.material ?? null,
    outgoingTls: { ca: await trustedCas(tls?.caFile ?? null, config.ca_file), verify: sip.verify_peers, names: sip.tls_names },
    control: { address: controlAddress(index), port: drachtio.port, secret: controlSecret(config) },
    cell: await openCell(config, place, log),
    cells: count === 1 ? null : { ...place, pathOf: (cell) => processSocket(directory, `cell-${String(cell)}`) },
    journal: new DialogJournal({
      file: join(directory, journalName(index)),
      left: journalsLeft(directory, place),
      clock: systemClock,
      log,
    }),
    log,
  });
  await server.listen();
  const metrics = new Metrics(name);
  let certificates = tls?.facts ?? [];
  collectSipServer(metrics, server, () => certificates);
  watchProcess(metrics, systemClock);
  const metricsServer = index === 1 ? await openOwnMetrics(config, metrics) : null;
  if (sip.tcp_port !== null || sip.udp_port !== null) {
    log.warn({ hint: 'keys of the media encryption travel in clear over TCP and UDP' }, 'sip.transport.cleartext');
  }
  log.info({ tls: sip.tls_port, tcp: sip.tcp_port, udp: sip.udp_port, control: drachtio.port }, 'sip_server.ready');
  const reloader =
    tls === null
      ? undefined
      : new TlsReloader(
          {
            read: () => serverTls(config),
            apply: (material, facts) => {
              server.setTls(material);
              certificates = facts;
            },
            clock: systemClock,
            log,
          },
          tls,
        );
  const unserve = answerProcesses(config, metrics, {}, log);
  const close = (): Promise<void> => {
    reloader?.close();
    metricsServer?.close();
    unserve();
    return server.close().then(() => leaveCounts(directory, metrics, log));
  };
  const stop = onStopSignal(log, { SIGTERM: () => server.retire(RETIRE_MS).then(close), SIGINT: close });
  onHangUp(() => void reloader?.reload(), stop);
}

/** `null`: calls end with this host. */
async function openCell(config: Config, { index, count }: CellPlace, log: Log): Promise<Cell | null> {
  const { url, cluster } = config.redis;
  if (!config.sip.take_over || url === null) return null;
  // A SIP server alone has no use for the packages.
  const { RedisCells } = await import('../gateway/store/redis/cells/redis-cells.js');
  const store = new RedisCells({ url, cluster, sentinel: sentinelOf(config.redis) }, systemClock, log);
  return new Cell(
    cellName(gatewayInstance(config), index),
    store,
    systemClock,
    log,
    (lost) => cellAmong(cellIndexOf(lost), count) === index,
  );
}

const FIRST_DESCRIPTOR = 3;

/** Sockets from systemd or `native/socket-holder`, by transport (sd_listen_fds(3)). */
function inheritedSockets(environment: NodeJS.ProcessEnv): Partial<Record<'TLS' | 'TCP' | 'UDP', number>> {
  if (environment['LISTEN_PID'] !== String(process.pid)) return {};
  const names = (environment['LISTEN_FDNAMES'] ?? '').split(':').slice(0, Number(environment['LISTEN_FDS'] ?? 0));
  return Object.fromEntries(names.map((name, index) => [name.toUpperCase(), FIRST_DESCRIPTOR + index]));
}

/** For Prometheus, where no gateway of this machine shows them. */
function openOwnMetrics(config: Config, own: Metrics): Promise<{ close(): void }> | null {
  const { metrics } = config;
  if (metrics.sip_server_port === null) return null;
  const access = { allowedSources: metrics.allowed_sources, bearerToken: metrics.bearer_token };
  return openMetricsServer(own, { host: httpAddress(config), port: metrics.sip_server_port }, access);
}

/** The public CAs and those of these files; `null`: the public ones alone. */
async function trustedCas(...files: readonly (string | null)[]): Promise<string | null> {
  const texts = await Promise.all(files.flatMap((file) => (file === null ? [] : [readFile(resolve(file), 'utf8')])));
  return texts.length === 0 ? null : [...rootCertificates, ...texts].join('\n');
}
