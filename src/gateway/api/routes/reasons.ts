import { z } from 'zod';
import { adviceOn } from '../../model/advice.js';
import { whole } from '../../model/described.js';
import { REASONS, type Reason } from '../../model/reasons.js';
import type { ZodApp } from '../context.js';
import { successAnswer } from '../answers.js';
import { orgQuery } from '../schemas/page-query.js';

const reasonSchema = z
  .object({
    code: z.string().describe('As in records, logs and SIP responses'),
    sip_status: whole('Status of the refusal; 200: it only ends answered calls'),
    fault: z.enum(['caller', 'customer', 'gateway', 'agent', 'nobody']).describe('Who caused it'),
    retryable: z.boolean().describe('Whether the same INVITE may succeed later or by another route'),
    explanation: z.string().describe('What happened'),
    advice: z.string().describe('What to do'),
  })
  .meta({
    id: 'Reason',
    description: 'A reason why a call was refused or ended',
    examples: [shownReason('SOURCE_NOT_ALLOWED')],
  });

/** The answer to GET /v1/reasons. */
const reasonsSchema = z
  .object({ status: z.literal('success'), reasons: z.array(reasonSchema).readonly() })
  .meta({ examples: [{ status: 'success', reasons: [shownReason('SOURCE_NOT_ALLOWED')] }] });

function shownReason(code: Reason) {
  const { sipStatus, fault, retryable, explanation } = REASONS[code];
  return { code, sip_status: sipStatus, fault, retryable, explanation, advice: adviceOn(code) };
}

/** GET /v1/reasons. Registered behind authentication. */
export function reasonRoutes(app: ZodApp): void {
  const reasons = (Object.keys(REASONS) as Reason[]).map(shownReason);
  app.get('/v1/reasons', {
    schema: {
      operationId: 'listReasons',
      tags: ['Calls'],
      summary: 'List the reason codes',
      description: "Every code of a call's `reason`, with an explanation and advice.",
      querystring: z.strictObject(orgQuery),
      response: { 200: successAnswer('The reasons', reasonsSchema) },
    },
    handler: () => Promise.resolve({ status: 'success' as const, reasons }),
  });
}
