import { z } from 'zod';

const optionsSchema = z.object({
  allowed_sources: z.array(z.string()).readonly(),
  max_concurrent_calls: z.number().nullable(),
  max_calls_per_second: z.number().nullable(),
  media_encryption: z.enum(['required', 'optional']),
});

/** `NumberRecord` as the API returns it. */
export const sipConfigurationSchema = z
  .object({
    inbound_id: z.string().describe('IN- and a UUID'),
    phone_number: z.string().describe('E.164 with the plus'),
    org_id: z.string(),
    inbound: z.object({ agent_id: z.string().nullable(), options: optionsSchema }).nullable().describe('null: not attached inbound'),
    outbound: z.object({ sip_endpoint: z.string() }).nullable().describe('null: not attached outbound'),
    created_at: z.string().describe('ISO 8601'),
    updated_at: z.string().describe('ISO 8601'),
  })
  .meta({
    id: 'SipConfiguration',
    description: 'The SIP configuration of one phone number',
    examples: [
      {
        inbound_id: 'IN-8f6f6bb0-6a53-4c53-9f5b-0f0d8a2d1c11',
        phone_number: '+15551234567',
        org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
        inbound: {
          agent_id: null,
          options: {
            allowed_sources: ['203.0.113.0/24'],
            max_concurrent_calls: 100,
            max_calls_per_second: 20,
            media_encryption: 'required',
          },
        },
        outbound: null,
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      },
    ],
  });

/** The success envelope of /sip around `data`. */
export function successSchema<T extends z.ZodType>(data: T) {
  return z.object({ status: z.literal('success'), data, errors: z.null() });
}
