import { resolve } from 'node:path';
import { systemClock } from '../../src/lib/system-clock.js';
import type { StageFigures } from '../../src/loadtest/figures.js';
import { LoadRun, type LoadOptions } from '../../src/loadtest/run/load-run.js';
import { NUMBER, type Subject } from '../gateway/subject.js';

/** Neither the product's ports nor rtpengine's. */
const MEDIA_PORTS = { min: 10_000, max: 19_999 };

export interface Load {
  readonly cps: number;
  readonly calls: number;
  readonly holdMs: number;
  readonly hasMedia: boolean;
  readonly setupTimeoutMs: number;
}

/** So many calls, as `trunkline load` places them. */
export async function loadStage(
  { target }: Pick<Subject, 'target'>,
  caFile: string,
  { cps, calls, holdMs, hasMedia, setupTimeoutMs }: Load,
): Promise<StageFigures> {
  const options: LoadOptions = {
    target: { host: '127.0.0.1', port: target.port },
    caFile,
    gatewayPid: null,
    called: NUMBER,
    caller: '+15550100999',
    cps,
    calls,
    holdMs,
    mediaPercent: hasMedia ? 100 : 0,
    digits: '',
    scenario: null,
    scenarioDirectory: resolve('config/load'),
    connections: null,
    setupTimeoutMs,
    direction: hasMedia ? 'sendrecv' : 'inactive',
    thresholds: { maxFailures: 0, maxP99: null, maxLossPercent: 100, echoes: false },
    ramps: [],
    stageSeconds: 0,
    highest: cps,
    generatorProgram: resolve('native/build/Release/media-generator'),
    mediaPorts: MEDIA_PORTS,
    batchId: null,
    notes: [],
    outbound: null,
  };
  const quiet = { lifecycle: () => Promise.resolve(), onSecond: () => undefined, onStage: () => undefined };
  const { stages } = await new LoadRun(options, quiet, systemClock, new AbortController().signal).run();
  const [stage] = stages;
  if (stage === undefined) throw new Error('the load generator ran no stage');
  return stage;
}
