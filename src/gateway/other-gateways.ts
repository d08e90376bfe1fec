import { gatewayRequestSchema } from '../contracts/gateway-requests.js';
import type { LiveCalls } from '../contracts/live-calls.js';

/** What this gateway answers to another one. Throws on what is no request: then the other one hears nothing. */
export function answerGateway(calls: LiveCalls, body: unknown): object {
  const request = gatewayRequestSchema.parse(body);
  if (request.do === 'trace') return { trace: calls.trace(request.call_id) };
  return { isStopped: calls.stop(request.call_id, request.reason) };
}
