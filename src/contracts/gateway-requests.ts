import { z } from 'zod';

/** What one gateway asks another about a call that is there. */
export const gatewayRequestSchema = z.strictObject({
  do: z.literal('stop'),
  call_id: z.uuid(),
  reason: z.enum(['AGENT_HANGUP', 'API_STOPPED']),
});

export type GatewayRequest = z.output<typeof gatewayRequestSchema>;

export const stopAnswerSchema = z.strictObject({ isStopped: z.boolean() });
