import { setTimeout as pause } from 'node:timers/promises';
import { memoryKb } from '../../test/support/processes.js';
import { RunningRtpengine } from '../../test/support/rtpengine.js';
import { cpuMs } from '../support/process-figures.js';
import { startBridge, type Bridge, type BridgeSettings } from './bridges.js';
import type { NativePrograms } from './native.js';
import { Traffic, type BotKind, type TrafficFigures } from './traffic.js';

const BATCH = 25;
/** Also for what calls had waiting while the others began: the queue of speech makes up for it in pauses, which it looks for each 2 s. */
const SETTLE_MS = 10_000;

export interface MeasurementSettings extends BridgeSettings {
  readonly bots: BotKind;
  readonly calls: number;
  readonly seconds: number;
}

export type ProcessName = 'bridge' | 'bots' | 'generator' | 'rtpengine';

export interface Outcome {
  readonly traffic: TrafficFigures;
  /** Percent of a core a call. */
  readonly cpu: Readonly<Partial<Record<ProcessName, number>>>;
  /** kB of the whole process at the end, without garbage. */
  readonly memory: Readonly<Partial<Record<ProcessName, number>>>;
  readonly maxLateMs: number | undefined;
}

/** CPU time of the gateway's own processes, in percent of a core a call. */
export function ownCpu({ cpu }: Outcome): number {
  return (cpu.bridge ?? Number.NaN) + (cpu.rtpengine ?? 0);
}

/** Runs callers, bots and a bridge, a process each, and rtpengine where the bridge has one. */
export async function measured(settings: MeasurementSettings, programs: NativePrograms): Promise<Outcome> {
  const isRelayed = settings.kind.startsWith('relayed');
  const ends: (() => unknown)[] = [];
  try {
    const rtpengine = isRelayed ? await RunningRtpengine.start({ min: 28_000, max: 32_399 }) : null;
    ends.push(() => rtpengine?.stop());
    const traffic = await Traffic.started(programs, settings.bots);
    ends.push(() => traffic.kill());
    const bridge = await startBridge(settings, programs, traffic.botPort, rtpengine?.port ?? null);
    ends.push(bridge.end);
    const pids = { bridge: bridge.pid, ...traffic.pids, ...(rtpengine === null ? {} : { rtpengine: rtpengine.pid }) };
    return await measuredOf(pids, traffic, bridge, settings);
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

async function measuredOf(
  pids: Readonly<Partial<Record<ProcessName, number>>>,
  traffic: Traffic,
  bridge: Bridge,
  { kind, calls, seconds }: MeasurementSettings,
): Promise<Outcome> {
  const each = (of: (pid: number, name: ProcessName) => number): Partial<Record<ProcessName, number>> =>
    Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, of(pid, name as ProcessName)]));
  const open = async (first: number, count: number): Promise<void> => {
    const carriers = await traffic.prepare(first, count, kind.startsWith('relayed'));
    await traffic.start(first, await bridge.open(carriers));
  };
  for (let first = 0; first < calls; first += BATCH) await open(first, Math.min(BATCH, calls - first));
  await pause(SETTLE_MS);
  await bridge.maxLateMs();
  const cpuBefore = each(cpuMs);
  const begun = performance.now();
  const figures = await traffic.measured(seconds);
  const spanMs = performance.now() - begun;
  const cpu = each((pid, name) => (100 * (cpuMs(pid) - (cpuBefore[name] ?? 0))) / spanMs / calls);
  const maxLateMs = await bridge.maxLateMs();
  await bridge.collect();
  return { traffic: figures, cpu, memory: each(memoryKb), maxLateMs };
}
