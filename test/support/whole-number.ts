import type { z } from 'zod';
import { sipConfigurationSchema, type InboundOptions, type OutboundTrunk } from '../../src/gateway/model/records.js';
import { testCertificates } from './certificates.js';

/** Every option of a number's inbound direction, none as it is by default. */
export const EVERY_OPTION: Required<InboundOptions> = {
  allowed_sources: ['203.0.113.0/24', '2001:db8::/32'],
  max_concurrent_calls: 7,
  max_calls_per_second: 3,
  media_encryption: 'optional',
  refer: false,
  no_reinvite: true,
  headers_to_agent: ['X-*', 'Subject'],
  headers_from_agent: ['X-Ticket'],
  challenge: { username: 'acme', password: 's3 cret' },
  voice_url: 'https://app.example/voice',
  voice_fallback_url: 'https://app.example/fallback',
  status_callback: 'https://app.example/status',
  status_callback_events: ['ringing', 'completed'],
};

/** Every setting of a trunk. */
export async function everySetting(): Promise<Required<OutboundTrunk>> {
  const { ca, cert, key } = await testCertificates();
  return {
    sip_endpoint: 'sips:trunk.example:5061',
    username: 'acme',
    password: 's3 cret',
    realm: 'trunk.example',
    ca,
    tls_names: ['sip.trunk.example'],
    client_certificate: { certificate: cert, key },
    caller_id_header: 'P-Asserted-Identity',
    registrar: 'registrar.example',
    options_interval_s: 60,
    no_reinvite: true,
    headers_from_agent: ['User-to-User'],
  };
}

const { inbound, outbound } = sipConfigurationSchema.shape;

/** The names that the API's schema has: an option that is not handled everywhere fails a test. */
export const OPTION_NAMES = namesOf(inbound.unwrap().shape.options);
export const TRUNK_NAMES = [
  ...namesOf(outbound.unwrap()).filter((name) => !['registration', 'trunk_state', 'trunk_error'].includes(name)),
  'password',
];

function namesOf(schema: z.ZodObject): string[] {
  return Object.keys(schema.shape);
}
