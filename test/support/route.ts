import type { E164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS, type Route } from '../../src/gateway/model/records.js';

export const NUMBER = '+15550100100' as E164;

/** An attached number of an organization that may use it, answered by the built-in test line. */
export const ROUTE: Route = {
  number: {
    inbound_id: 'IN-1',
    phone_number: NUMBER,
    org_id: 'o',
    inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS },
    outbound: null,
    created_at: '',
    updated_at: '',
  },
  org: {
    org_id: 'o',
    name: '',
    sip_enabled: true,
    disabled: false,
    max_concurrent_calls: null,
    max_calls_per_second: null,
    max_provider_sessions: null,
    max_provider_minutes_per_day: null,
    max_provider_tokens_per_day: null,
    allowed_sources: [],
    webhook_secret: '',
    twilio_token: '',
    provider_keys: {},
    operator_keys: false,
    pathway_url: null,
    pathway_token: null,
    transcript_days: null,
    dialling: null,
    created_at: '',
  },
  agent: null,
};
