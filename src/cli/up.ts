import { join } from 'node:path';
import { ConfigError } from '../config/layers.js';
import type { Config } from '../config/schema.js';
import { RELOAD_QUESTION, serveProcess } from '../config/process-socket.js';
import { errorText } from '../lib/result.js';
import { formatHostPort } from '../lib/address.js';
import type { Log } from '../lib/log.js';
import { ensureDataDir, writePrivateFile } from '../config/data-dir.js';
import { createLogger } from '../observability/log/logger.js';
import { METRICS_QUESTION } from '../observability/metrics/peers.js';
import { watchProcess } from '../observability/metrics/process-metrics.js';
import { Metrics } from '../observability/metrics/registry.js';
import { loadAddon } from '../srtp/addon.js';
import { missingPackages, missingText, packagesOf } from '../supervisor/debian-packages.js';
import { buildNative, mustBuildNative } from '../supervisor/native-build.js';
import { becomeUser, isRoot } from '../supervisor/run-as.js';
import { mediaCapacity, Supervisor } from '../supervisor/supervisor.js';
import { systemClock } from '../lib/system-clock.js';
import { calledCertificates, serverTls } from '../tls/tls-material.js';
import { onHangUp, onStopSignal } from './process.js';
import { caOfSipServer, type Ready, type StartedWith } from './ready.js';
import type { ReloadAnswer } from './stop.js';

/** `trunkline up`: the whole gateway in the foreground. */
export async function runUp(config: Config, configFlags: readonly string[], startedWith: StartedWith): Promise<void> {
  const log: Log = createLogger('supervisor', config.log.level);
  // Before any write: files then belong to the user.
  becomeUser(config);
  const directory = ensureDataDir(config);
  const metrics = new Metrics('supervisor');
  watchProcess(metrics, systemClock);
  const supervisor = new Supervisor({
    config,
    configFlags,
    clock: systemClock,
    log,
    onReady: (child, tookMs) => {
      metrics.count('trunkline_child_deaths_total', { child }, 0);
      printStep(`${child} started`, tookMs);
    },
    onDied: (child) => metrics.count('trunkline_child_deaths_total', { child }),
  });
  // Before any write: the directory may belong to another instance.
  supervisor.claim();
  const stopAll = (): Promise<void> => supervisor.stop();
  const stop = onStopSignal(log, { SIGTERM: stopAll, SIGINT: stopAll });
  onHangUp(() => supervisor.reload(), stop);
  const answers = { [RELOAD_QUESTION]: () => replaced(supervisor), [METRICS_QUESTION]: () => metrics.snapshot() };
  serveProcess(directory, 'supervisor', answers, (reason) => log.error({ reason }, 'process.socket.not_opened'));
  // The gateway reads them too; this reports a fault before anything starts.
  await calledCertificates(config);
  await prepareMachine(config);
  const isOwnSipServer = config.drachtio.url === null;
  const { caFile } = isOwnSipServer && config.sip.tls_port !== null ? await serverTls(config) : { caFile: null };
  const facts = await supervisor.start();
  // Stopped meanwhile: the signal's handler ends the process.
  if (facts === null) return;
  const ready = {
    pid: process.pid,
    sip: sipAddress(config, facts['sip_tls']),
    http: facts['http'],
    api_key: facts['api_key'] ?? null,
    org_id: facts['org_id'] ?? null,
    phone_number: facts['phone_number'] ?? null,
    agent_id: facts['agent_id'] ?? null,
    ca_file: caOfSipServer(caFile, config),
    config_flags: startedWith,
  };
  writePrivateFile(join(directory, 'ready.json'), `${JSON.stringify(ready, null, 2)}\n`);
  if (isRoot())
    log.warn({ hint: 'everything runs as root: set run_as (TRUNKLINE_RUN_AS) to a user without privileges' }, 'supervisor.root');
  console.log(block(config, ready, directory));
}

/** The answer to `trunkline reload`. */
async function replaced(supervisor: Supervisor): Promise<ReloadAnswer> {
  try {
    return { replaced: await supervisor.replace() };
  } catch (error) {
    return { error: errorText(error) };
  }
}

/** Names what is not installed, builds the addon where the package has none, and loads it. */
async function prepareMachine(config: Config): Promise<void> {
  await buildMissing(config);
  try {
    loadAddon();
  } catch (error) {
    throw new ConfigError(`the SRTP addon cannot be loaded: ${errorText(error)}`);
  }
}

async function buildMissing(config: Config): Promise<void> {
  const mustBuild = mustBuildNative(config);
  const missing = await missingPackages(packagesOf(config, mustBuild));
  // The test line speaks with espeak-ng, and is silent without it.
  if (missing.length > 0) throw new ConfigError(missingText([...missing, ...(await missingPackages(['espeak-ng']))]));
  if (!mustBuild) return;
  console.log('  ...   building the SRTP addon, once');
  const startedMs = systemClock.nowMs();
  await buildNative(config);
  printStep('SRTP addon built', systemClock.nowMs() - startedMs);
}

function printStep(title: string, tookMs: number): void {
  console.log(`  ok    ${title.padEnd(44)} ${String(Math.round(tookMs)).padStart(6)} ms`);
}

/** Shows the key on a terminal only: others may read a log. */
function shownKey(key: unknown, directory: string): string {
  if (typeof key !== 'string') return 'none: trunkline key create <org>';
  return process.stdout.isTTY ? key : `in ${join(directory, 'ready.json')}`;
}

/** Where the embedded SIP server listens, or what an external one states. */
function sipAddress(config: Config, stated: unknown): Ready['sip'] {
  if (config.drachtio.url !== null) return typeof stated === 'string' ? { tls: stated } : {};
  const { tls_port: port, cert_file: file, host } = config.sip;
  if (port === null) return {};
  // A public CA signs names; our own signs the address, too.
  const name = file === null || host === null ? {} : { certificate_name: host };
  return { tls: formatHostPort(config.bind_address, port), ...name };
}

function block(
  config: Config,
  ready: Readonly<Record<string, unknown>> & { readonly sip: { readonly tls?: string } },
  directory: string,
): string {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '-');
  const number = text(ready['phone_number']);
  const rows: [string, string][] = [
    ['SIP trunk (TLS)', ready.sip.tls ?? 'off'],
    [
      'Number',
      number === '-'
        ? 'none: attach one with trunkline number attach'
        : `${number}  (answered by ${config.agents.url === null ? 'the test line' : 'the bot at agents.url'})`,
    ],
    ['Control API', text(ready['http'])],
    ['API key', shownKey(ready['api_key'], directory)],
    ['Console', `${text(ready['http'])}/console`],
    ['API pages', `${text(ready['http'])}/docs`],
    ['CA certificate', text(ready['ca_file'])],
    ['Capacity', mediaCapacity(config)],
    ['Logs', join(directory, 'logs')],
    ['A test call', 'trunkline call    (in a second terminal)'],
  ];
  return ['', 'Trunkline is ready.', '', ...rows.map(([name, value]) => `  ${name.padEnd(16)}  ${value}`), '', 'Ctrl-C stops it.', ''].join(
    '\n',
  );
}
