import type { Config } from '../config/schema.js';
import { workerConfig, workerName, type GatewayWorker } from '../config/gateway-worker.js';
import { openEndpoint } from '../gateway/wiring/media.js';
import { createLogger } from '../observability/log/logger.js';
import { systemClock } from '../lib/system-clock.js';
import { answerProcesses, followed, onStopSignal } from './process.js';

/** `trunkline gateway`: the product itself in the foreground. @param after the process that it follows */
export async function runGateway(config: Config, worker: GatewayWorker, after: number | null): Promise<void> {
  // drachtio-srf asks for a variable at each header that it reads; every look into the real environment is a system library's call.
  process.env = { ...process.env };
  const log = createLogger('gateway', config.log.level);
  // A bug in one call must not end the others; it is loud in the log.
  process.on('unhandledRejection', (error) =>
    log.error({ error: error instanceof Error ? error.stack : String(error) }, 'process.unhandled_rejection'),
  );
  const settings = workerConfig(config, worker);
  const loading = import('../gateway/main.js');
  const place = after === null ? undefined : loading.then(() => followed(config, workerName(worker.index), after, log));
  // Callers of an earlier process hear nothing until all this is done: the media threads start while the rest is loaded.
  const opening = openEndpoint(settings, log, place);
  // Should the start fail before this is awaited, report that failure and not this one.
  opening.catch(() => undefined);
  const { startGateway } = await loading;
  await place;
  const gateway = await startGateway(settings, systemClock, log, worker, opening);
  log.info({}, 'gateway.ready');
  answerProcesses(config, gateway.metrics, gateway.facts, log);
  onStopSignal(log, { SIGTERM: () => gateway.shutdown('park'), SIGINT: () => gateway.shutdown('drain') });
}
