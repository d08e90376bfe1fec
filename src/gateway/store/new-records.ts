import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Completion } from '../model/completion.js';
import type { Delivery } from '../model/delivery.js';
import type { OrgRecord } from '../model/records.js';
import { newToken, newUuid } from '../../lib/ids.js';
import type { ApiKeyRecord, NewOrg } from '../ports/stores.js';

/** @param now ISO 8601 */
export function newOrgRecord(org: NewOrg, now: string): OrgRecord {
  return {
    org_id: org.org_id ?? newUuid(),
    name: org.name,
    sip_enabled: org.sip_enabled,
    disabled: false,
    max_concurrent_calls: null,
    max_calls_per_second: null,
    max_provider_sessions: null,
    max_provider_minutes_per_day: null,
    max_provider_tokens_per_day: null,
    allowed_sources: [],
    webhook_secret: newWebhookSecret(),
    twilio_token: newTwilioToken(),
    provider_keys: {},
    operator_keys: false,
    pathway_url: null,
    pathway_token: null,
    transcript_days: null,
    dialling: null,
    created_at: now,
  };
}

/** @param now ISO 8601 */
export function newDelivery(orgId: string, callId: string, { url, payload, analysisSchema }: Completion, now: string): Delivery {
  const delivery = {
    delivery_id: callId,
    org_id: orgId,
    url,
    body: JSON.stringify(payload),
    created_at: now,
    attempts: 0,
    last_error: null,
  };
  return analysisSchema === null ? delivery : { ...delivery, analysis_schema: analysisSchema };
}

/** As Standard Webhooks has it: `whsec_` and 256 random bits in base64. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** 258 random bits. */
export function newTwilioToken(): string {
  return newToken(43);
}

export function newApiKeyRecord(orgId: string | null, name: string, now: string): ApiKeyRecord {
  return { key_id: newUuid(), org_id: orgId, name, created_at: now, last_used_at: null, revoked_at: null };
}

/** The text of a new API key: `tl_` and 32 URL-safe characters, 192 random bits. */
export function newApiKey(): string {
  return `tl_${newToken(32)}`;
}

export function newInboundId(): string {
  return `IN-${newUuid()}`;
}

/** What is stored of an API key: its SHA-256, in hex. The key has 192 random bits, so that a slow hash would add nothing. */
export function apiKeyDigest(key: string): string {
  return createHash('sha256').update(key, 'utf8').digest('hex');
}

/** Compares two digests in constant time. */
export function sameDigest(a: string, b: string): boolean {
  const left = Buffer.from(a, 'utf8');
  const right = Buffer.from(b, 'utf8');
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Uses of one key are noted this often at most, in milliseconds. */
export const TOUCH_INTERVAL_MS = 60_000;
