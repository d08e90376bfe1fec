import { ensureDataDir } from '../config/data-dir.js';
import type { Config } from '../config/schema.js';
import { workerConfig, workerName, type GatewayWorker } from '../config/gateway-worker.js';
import { AHEAD_QUESTION, RETIRE_QUESTION } from '../config/process-socket.js';
import { openEndpoint } from '../gateway/wiring/media.js';
import { createLogger } from '../observability/log/logger.js';
import { systemClock } from '../lib/system-clock.js';
import { NO_PREDECESSOR, type Predecessor } from '../gateway/wiring/predecessor.js';
import { answerProcesses, followed, onStopSignal } from './process.js';

/** From the start on there are calls in progress to take up, and requests that waited. */
const LOAD_REST_AFTER_MS = 1_000;
/** For calls that are on their way to a gateway when it retires. */
const LINGER_MS = 1_000;

/**
 * `trunkline gateway`: the product itself in the foreground.
 * @param worker `null`: the only process, with all media ports
 * @param after the process that it follows
 */
export async function runGateway(config: Config, worker: GatewayWorker | null, after: number | null): Promise<void> {
  // drachtio-srf asks for a variable at each header that it reads; every look into the real environment is a system library's call.
  process.env = { ...process.env };
  const log = createLogger('gateway', config.log.level);
  // A bug in one call must not end the others; it is loud in the log.
  process.on('unhandledRejection', (error) =>
    log.error({ error: error instanceof Error ? error.stack : String(error) }, 'process.unhandled_rejection'),
  );
  // Refuses one that cannot be used before anything is opened.
  ensureDataDir(config);
  const settings = worker === null ? config : workerConfig(config, worker);
  const own = worker ?? { index: 1, count: 1 };
  const loading = import('../gateway/main.js');
  const predecessor =
    after === null
      ? NO_PREDECESSOR
      : predecessorOf((onAsked) => loading.then(() => followed(config, workerName(own.index), after, log, { [AHEAD_QUESTION]: onAsked })));
  // Callers of an earlier process hear nothing until all this is done: the media threads start while the rest is loaded.
  const opening = openEndpoint(settings, log, after === null ? undefined : predecessor.ended.then(() => undefined));
  // Should the start fail before this is awaited, report that failure and not this one.
  opening.catch(() => undefined);
  const { startGateway, loadHttpClient } = await loading;
  // While another process has the calls.
  if (after !== null) void loadHttpClient();
  const gateway = await startGateway(settings, systemClock, log, own, opening, predecessor);
  log.info({}, 'gateway.ready');
  if (after === null) systemClock.setTimer(LOAD_REST_AFTER_MS, () => void loadHttpClient());
  onStopSignal(log, { SIGTERM: () => gateway.shutdown('park'), SIGINT: () => gateway.shutdown('drain') });
  const leaveWhenIdle = (): void => {
    log.info({}, 'gateway.retired');
    systemClock.setTimer(LINGER_MS, () => void gateway.whenIdle().then(() => process.kill(process.pid, 'SIGINT')));
  };
  const facts: Record<string, unknown> = { ...gateway.facts };
  const retire = async (): Promise<null> => {
    facts['is_retired'] = true;
    await gateway.retire();
    leaveWhenIdle();
    return null;
  };
  answerProcesses(config, gateway.metrics, facts, log, { [RETIRE_QUESTION]: retire });
  if (own.isRetired === true) await retire();
}

/** @param follow resolves when it has ended; answers the question for agents ahead with what it gets */
function predecessorOf(follow: (onAsked: () => Promise<null>) => Promise<void>): Predecessor {
  let onReady = (): void => undefined;
  const ready = new Promise<null>((resolve) => (onReady = () => resolve(null)));
  let onAsked = (): void => undefined;
  const asked = new Promise<true>((resolve) => (onAsked = () => resolve(true)));
  const ended = follow(() => {
    onAsked();
    return ready;
  }).then(() => Date.now());
  return { ended, isAskedAhead: Promise.race([asked, ended.then(() => false)]), onReady };
}
