import { gatewayRequestSchema, type stopAnswerSchema } from '../contracts/gateway-requests.js';
import type { LiveCalls } from '../contracts/live-calls.js';
import type { z } from 'zod';

/** What this gateway answers to another one. Throws on what is no request: then the other one hears nothing. */
export function answerGateway(calls: LiveCalls, body: unknown): z.output<typeof stopAnswerSchema> {
  const request = gatewayRequestSchema.parse(body);
  return { isStopped: calls.stop(request.call_id, request.reason) };
}
