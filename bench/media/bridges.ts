import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { StreamFormat } from '../../src/agent-protocol/stream-format.js';
import type { ProviderName } from '../../src/gateway/model/provider.js';
import { ask, started, type Child } from '../support/child.js';
import type { CarrierSide, EndpointOrder, FarSide } from './messages.js';
import type { NativePrograms, NativeProcess } from './native.js';

export const PROVIDERS = ['openai-realtime', 'deepgram', 'gemini-live'] as const satisfies readonly ProviderName[];

/**
 * What carries the audio between callers and bots: the bare bridge, the C floor, or the product's media: the endpoint alone, with rtpengine and
 * SRTP before it, with SRTP inside too, or with a provider in place of a bot.
 */
export type BridgeKind = 'bare' | 'floor' | 'endpoint' | 'relayed' | 'relayed-srtp' | (typeof PROVIDERS)[number];

export interface BridgeSettings {
  readonly kind: BridgeKind;
  /** Of the product: a directory with a build. */
  readonly checkout: string;
  readonly format: StreamFormat;
  readonly workers: number;
  /** Writes CPU profiles of the product into `test-results`. */
  readonly profile: boolean;
}

const COLLECTIONS = 4;
const COLLECT_MS = 500;

/** One that runs, in a process of its own. */
export interface Bridge {
  readonly pid: number;
  readonly open: (calls: readonly CarrierSide[]) => Promise<FarSide[]>;
  /** How late it was at worst since this was asked last; left out: not known. */
  readonly maxLateMs: () => Promise<number | undefined>;
  /** Collects its garbage. */
  readonly collect: () => Promise<void>;
  readonly end: () => Promise<void>;
}

/** @param ngPort of rtpengine, where the kind has one */
export async function startBridge(
  settings: BridgeSettings,
  programs: NativePrograms,
  botPort: number,
  ngPort: number | null,
): Promise<Bridge> {
  if (settings.kind === 'floor') return floorBridge(await programs.started('floor'), botPort);
  const isBare = settings.kind === 'bare';
  const profiling = settings.profile && !isBare ? ['--cpu-prof', `--cpu-prof-dir=${resolve('test-results')}`] : [];
  const file = isBare ? 'bench/media/bare.ts' : 'bench/media/endpoint.ts';
  const imports = ['collect-threads', ...(isBare ? [] : ['built-media'])].flatMap((name) => [
    '--import',
    resolve(`bench/support/${name}.mjs`),
  ]);
  const child = await started(file, ['--expose-gc', ...imports, ...profiling], [], 0, isBare ? '.' : settings.checkout);
  const order: EndpointOrder = {
    type: 'set-up',
    ngPort,
    format: isBare ? 'twilio' : settings.format,
    botUrl: `ws://127.0.0.1:${String(botPort)}/`,
    provider: PROVIDERS.find((name) => name === settings.kind) ?? null,
    agentSideSrtp: settings.kind === 'relayed-srtp',
    workers: settings.workers,
    portMin: 24_000,
    portMax: 24_199,
  };
  await ask(child, order);
  return nodeBridge(child);
}

function nodeBridge(child: Child): Bridge {
  return {
    pid: child.pid,
    open: (calls) => ask<FarSide[]>(child, { type: 'open', calls }),
    maxLateMs: async () => (await ask<{ readonly maxLateMs?: number }>(child, { type: 'counters' })).maxLateMs,
    collect: async () => {
      // V8 gives memory back little by little. The other threads are not waited for.
      for (let time = 0; time < COLLECTIONS; time += 1) {
        await ask(child, { type: 'collect' });
        await pause(COLLECT_MS);
      }
    },
    end: async () => {
      const gone = new Promise((done) => child.child.once('exit', done));
      child.child.kill('SIGTERM');
      await gone;
    },
  };
}

function floorBridge(process: NativeProcess, botPort: number): Bridge {
  return {
    pid: process.pid,
    open: async (calls) => {
      const ports = await process.ask('open', botPort, ...calls.map(({ port }) => port));
      return calls.map(({ id }, i) => ({ id, port: Number(ports[i]), key: null }));
    },
    maxLateMs: () => Promise.resolve(undefined),
    collect: () => Promise.resolve(),
    end: () => {
      process.kill();
      return Promise.resolve();
    },
  };
}
