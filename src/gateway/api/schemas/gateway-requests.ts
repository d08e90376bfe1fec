import { z } from 'zod';
import { traceEntrySchema } from '../../model/call-trace.js';
import { qualitySampleSchema } from './calls-api.js';

/** What one gateway asks another about a call that is there. */
export const gatewayRequestSchema = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('stop'), call_id: z.uuid(), reason: z.enum(['AGENT_HANGUP', 'API_STOPPED']) }),
  z.strictObject({ do: z.literal('trace'), call_id: z.uuid() }),
  z.strictObject({ do: z.literal('quality'), call_id: z.uuid() }),
]);

export type GatewayRequest = z.output<typeof gatewayRequestSchema>;

export const stopAnswerSchema = z.strictObject({ isStopped: z.boolean() });

/** `null`: the call has ended. */
export const traceAnswerSchema = z.strictObject({ trace: z.array(traceEntrySchema).nullable() });

/** `null`: the call has ended. */
export const qualityAnswerSchema = z.strictObject({ samples: z.array(qualitySampleSchema).nullable() });
