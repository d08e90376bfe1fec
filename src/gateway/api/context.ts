import type { ReadBatchText } from './batch-body.js';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Clock } from '../../lib/clock.js';
import type { ToolRunner } from '../ports/ports.js';
import type { Stores } from '../ports/stores.js';
import type { RecordAudit } from './audit.js';
import type { CallControl } from './call-control.js';
import type { AgentPolicy } from './schemas/agent-rules.js';
import type { SipApiPolicy } from './schemas/sip-api.js';
import type { PlaceCall } from '../ports/place-call.js';
import type { CallCheck } from './schemas/sip-check.js';
import type { ScopedReads } from './scoped-reads.js';

/** Fastify, whose routes validate with zod. */
export type ZodApp = Parameters<FastifyPluginAsyncZod>[0];

export interface Voice {
  readonly name: string;
  /** `null`: not known. */
  readonly language: string | null;
}

/** What the routes behind authentication work with. */
export interface RouteContext {
  readonly stores: Omit<Stores, 'routes' | 'snapshots' | 'ping'>;
  readonly reads: ScopedReads;
  readonly control: CallControl;
  readonly check: CallCheck;
  readonly placeCall: PlaceCall;
  readonly runner: ToolRunner;
  readonly readBatch: ReadBatchText;
  readonly clock: Clock;
  readonly note: RecordAudit;
  readonly agentPolicy: AgentPolicy;
  readonly sipPolicy: SipApiPolicy;
  readonly voices: readonly Voice[];
}
