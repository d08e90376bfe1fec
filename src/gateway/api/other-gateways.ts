import { gatewayRequestSchema } from './schemas/gateway-requests.js';
import type { LiveCalls } from '../model/live-calls.js';

/** What this gateway answers to another one. Rejects what is no request: then the other one hears nothing. */
export async function answerGateway(calls: LiveCalls, body: unknown): Promise<object> {
  const request = gatewayRequestSchema.parse(body);
  switch (request.do) {
    case 'trace':
      return { trace: calls.trace(request.call_id) };
    case 'quality':
      return { samples: await calls.quality(request.call_id) };
    case 'stop':
      return { isStopped: calls.stop(request.call_id, request.reason) };
  }
}
