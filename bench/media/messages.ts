import type { ProviderName } from '../../src/gateway/model/provider.js';
import type { StreamFormat } from '../../src/agent-protocol/stream-format.js';

/** What the benchmark's processes say to each other. Keys are base64. */
export interface CarrierSide {
  readonly id: string;
  readonly port: number;
  /** `null`: plain RTP. */
  readonly key: string | null;
}

export interface FarSide {
  readonly id: string;
  readonly port: number;
  readonly key: string | null;
}

export interface DelayFigures {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface TrafficFigures {
  readonly sent: number;
  readonly received: number;
  readonly lost: number;
  /** Milliseconds. */
  readonly total: DelayFigures;
  readonly up: DelayFigures;
  readonly down: DelayFigures;
  readonly jitterMs: number;
  readonly generatorLateMs: number;
}

export type EndpointOrder =
  | {
      readonly type: 'set-up';
      readonly ngPort: number | null;
      readonly format: StreamFormat;
      readonly botUrl: string;
      /** `null`: agents speak to a bot in `format`. */
      readonly provider: ProviderName | null;
      readonly agentSideSrtp: boolean;
      readonly workers: number;
      readonly portMin: number;
      readonly portMax: number;
    }
  | { readonly type: 'open'; readonly calls: readonly CarrierSide[] }
  | { readonly type: 'counters' }
  | { readonly type: 'collect' };

export type GeneratorOrder =
  | { readonly type: 'prepare'; readonly calls: number; readonly first: number; readonly srtp: boolean }
  | { readonly type: 'start'; readonly far: readonly FarSide[] }
  | { readonly type: 'measure' }
  | { readonly type: 'figures' };
