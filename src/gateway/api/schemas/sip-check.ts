import { z } from 'zod';
import { ADDRESS_PATTERN, ipFamily } from '../../../lib/address.js';
import { whole } from '../../model/described.js';
import { phoneNumber } from './sip-api.js';
import type { E164 } from '../../model/e164.js';

const MAX_SDP = 32_768;

/** The body of POST /sip/check. */
export const checkBodySchema = z
  .strictObject({
    phone_number: phoneNumber,
    source_ip: z
      .string()
      .max(64)
      .refine((value) => ipFamily(value) !== 0, 'must be an IPv4 or IPv6 address')
      .optional()
      .meta({ description: "The INVITE's source; default: not checked", pattern: ADDRESS_PATTERN }),
    sdp: z.string().min(1).max(MAX_SDP).optional().describe("The INVITE's SDP offer; default: not checked"),
  })
  .meta({
    examples: [
      { phone_number: '+15551234567' },
      {
        phone_number: '+15551234567',
        source_ip: '203.0.113.7',
        sdp: 'v=0\r\no=- 1 1 IN IP4 203.0.113.7\r\ns=-\r\nc=IN IP4 203.0.113.7\r\nt=0 0\r\nm=audio 30000 RTP/SAVP 0\r\n',
      },
    ],
  });

/** What a dry run is about. */
export interface CheckRequest {
  readonly number: E164;
  /** `null`: the source is not judged. */
  readonly sourceIp: string | null;
  /** `null`: the SDP is not judged. */
  readonly sdp: string | null;
}

/** How an INVITE would be decided at this moment. */
export const checkResultSchema = z
  .object({
    outcome: z.enum(['accept', 'reject']),
    sip_status: whole('Status of the final response to the INVITE'),
    reason: z.string().nullable().describe('A code of docs/errors.md; null: accepted'),
    explanation: z.string().describe('Explanation for people; names what was not checked'),
    codec: z.enum(['PCMU', 'PCMA']).nullable().describe('null: not decided'),
    crypto_tag: whole('Tag of the chosen a=crypto line; null: not decided, or plain RTP').nullable(),
  })
  .meta({
    id: 'CheckResult',
    description: 'How the gateway would decide an INVITE now',
    examples: [
      {
        outcome: 'reject',
        sip_status: 403,
        reason: 'SOURCE_NOT_ALLOWED',
        explanation: 'The number does not accept calls from this source address.',
        codec: null,
        crypto_tag: null,
      },
    ],
  });

export type CheckResult = Readonly<z.output<typeof checkResultSchema>>;

/**
 * Decides as on a real INVITE, and counts nothing. A number that is not the organization's is as good as not attached.
 * Rejects with `StoreUnavailableError`.
 */
export type CallCheck = (orgId: string, request: CheckRequest) => Promise<CheckResult>;
