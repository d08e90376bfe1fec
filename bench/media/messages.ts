import type { ProviderName } from '../../src/gateway/model/provider.js';
import type { StreamFormat } from '../../src/agent-protocol/stream-format.js';

/** What the benchmark and a bridge send each other. Keys are base64. */
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
