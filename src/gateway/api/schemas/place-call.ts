import { z } from 'zod';
import { sipHeaders } from '../../../agent-protocol/sip-headers.js';
import { agentSettingsSchema } from './agent-settings.js';
import type { AgentPolicy } from './agent-rules.js';
import { phoneNumber } from './sip-api.js';

export const RING_TIMEOUT_S = { least: 5, most: 180, usual: 60 };
export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** The body of POST /v1/calls. */
export function placeCallSchema({ languages }: AgentPolicy) {
  const settings = agentSettingsSchema(languages);
  const { metadata, max_duration, webhook } = settings.shape;
  return z
    .strictObject({
      phone_number: phoneNumber.describe('The number to call'),
      from: phoneNumber.describe('A number of yours that is attached for outbound calls; its `sip_endpoint` is the trunk'),
      agent_id: z.uuid('must be the id of an agent of yours, or null').nullable().optional().describe("null: the operator's default agent"),
      agent: settings.optional().describe('Settings of an agent for this call alone, in place of `agent_id`'),
      metadata: metadata.describe("In place of the agent's"),
      max_duration: max_duration.describe("Minutes, in place of the agent's"),
      webhook: webhook.describe("In place of the agent's; also called when nobody answers"),
      ring_timeout: z
        .int()
        .min(RING_TIMEOUT_S.least)
        .max(RING_TIMEOUT_S.most)
        .default(RING_TIMEOUT_S.usual)
        .describe('Seconds until an unanswered call is given up'),
      sip_headers: sipHeaders.default({}).meta({
        description: "Headers of the INVITE, by name, which the number's `headers_from_agent` allows: at most 10, of 1,024 bytes each",
        examples: [{ 'X-Ticket': '4711' }],
      }),
      detect_answerer: z.boolean().default(false).describe('Find out whether a person, a machine or a fax answers'),
    })
    .refine(({ agent_id: id, agent }) => id === undefined || agent === undefined, {
      path: ['agent'],
      message: 'cannot be set together with agent_id',
    })
    .meta({
      not: { required: ['agent', 'agent_id'] },
      examples: [
        {
          phone_number: '+15550100999',
          from: '+15551234567',
          agent_id: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11',
          metadata: { order: '1047' },
          ring_timeout: 30,
        },
      ],
    });
}

export type PlaceCallBody = z.output<ReturnType<typeof placeCallSchema>>;

export const IDEMPOTENCY_HEADERS = z.looseObject({
  'idempotency-key': z
    .string()
    .regex(IDEMPOTENCY_KEY, 'must be 1 to 255 printable characters without spaces')
    .optional()
    .meta({
      description:
        'Within a day, a request with the same key and body does nothing and gets the same answer, with `Idempotent-Replayed: true`. The order of fields does not matter',
      examples: ['order-1047'],
    }),
});
