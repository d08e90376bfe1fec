import { z } from 'zod';
import { adviceOn } from '../../model/advice.js';
import { REASONS, type Reason } from '../../model/reasons.js';

export const reasonSchema = z
  .object({
    code: z.string().describe('As it stands in records, logs and SIP answers'),
    sip_status: z.number().describe('Of the refusal; 200: it only ends answered calls'),
    fault: z.enum(['caller', 'customer', 'gateway', 'agent', 'nobody']).describe('Whose doing it was'),
    retryable: z.boolean().describe('The same INVITE may succeed later, or by another way'),
    explanation: z.string().describe('What happened, in a sentence'),
    advice: z.string().describe('What to do about it'),
  })
  .meta({
    id: 'Reason',
    description: 'Why calls are refused or end',
    examples: [shownReason('SOURCE_NOT_ALLOWED')],
  });

/** The answer to GET /v1/reasons. */
export const reasonsSchema = z
  .object({ status: z.literal('success'), reasons: z.array(reasonSchema).readonly() })
  .meta({ examples: [{ status: 'success', reasons: [shownReason('SOURCE_NOT_ALLOWED')] }] });

export function allReasons(): readonly z.output<typeof reasonSchema>[] {
  return (Object.keys(REASONS) as Reason[]).map(shownReason);
}

function shownReason(code: Reason) {
  const { sipStatus, fault, retryable, explanation } = REASONS[code];
  return { code, sip_status: sipStatus, fault, retryable, explanation, advice: adviceOn(code) };
}
