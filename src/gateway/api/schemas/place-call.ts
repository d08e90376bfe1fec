import { z } from 'zod';
import type { AgentRecord } from '../../model/agent-record.js';
import type { E164 } from '../../model/e164.js';
import type { NumberRecord, OrgRecord, OutboundTrunk } from '../../model/records.js';
import type { VoiceApplication } from '../../model/voice-application.js';
import type { Reason } from '../../model/reasons.js';
import type { Result } from '../../../lib/result.js';
import { agentSettingsSchema } from './agent-settings.js';
import type { AgentPolicy } from './agent-rules.js';
import { phoneNumber } from './sip-api.js';

/** Places calls through the gateway that serves the API. */
export interface PlaceCall {
  /** Why this call is not placed now; `null`: it may be. */
  refusal(call: {
    readonly org: OrgRecord;
    readonly number: NumberRecord;
    readonly to: E164;
  }): { readonly code: 'DIAL_NOT_ALLOWED' | 'NOT_READY'; readonly message: string } | null;
  /** Begins the call; everything else stands in its record. */
  place(call: {
    readonly callId: string;
    readonly orgId: string;
    readonly from: E164;
    readonly to: E164;
    readonly trunk: OutboundTrunk;
    /** `null`: the operator's default. */
    readonly agent: AgentRecord | null;
    readonly ringTimeoutMs: number;
    readonly detectAnswerer: boolean;
    /** The call's length at most; left out: as its agent and the gateway say. */
    readonly timeLimitMs?: number;
    /** Left out: its agent talks. */
    readonly voice?: VoiceApplication;
  }): Result<string, Reason>;
}

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
      detect_answerer: z.boolean().default(false).describe('Find out whether a person, a machine or a fax answers'),
    })
    .refine(({ agent_id: id, agent }) => id === undefined || agent === undefined, {
      path: ['agent'],
      message: 'cannot be set together with agent_id',
    })
    .meta({
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

export const placeCallHeaders = z.looseObject({
  'idempotency-key': z
    .string()
    .regex(IDEMPOTENCY_KEY, 'must be 1 to 255 printable characters without spaces')
    .optional()
    .meta({
      description: 'Within a day, a request with the same key and body places no second call and gets the same `call_id`',
      examples: ['order-1047'],
    }),
});
