import type { E164 } from '../contracts/e164.js';

// Every key name. The part in braces is the hash tag: what one script or one multi-key command touches shares it, so that
// everything works on Redis Cluster.

/** String, JSON: the record of a number. The truth; every index below is secondary to it. */
export const numberKey = (number: E164): string => `num:{${number}}`;
export const NUMBER_KEY_PATTERN = 'num:{*}';

/** String: the number that an inbound_id belongs to. */
export const inboundIdKey = (inboundId: string): string => `inbound:{${inboundId}}`;

/** String, JSON: the organization. */
export const orgKey = (orgId: string): string => `org:{${orgId}}`;

/** Sorted set, all scores 0: the organization's numbers. */
export const orgNumbersKey = (orgId: string): string => `org:{${orgId}}:numbers`;

/** Set: digests of the organization's API keys. */
export const orgKeysKey = (orgId: string): string => `org:{${orgId}}:keys`;

/** Set: ids of the organization's agents. */
export const orgAgentsKey = (orgId: string): string => `org:{${orgId}}:agents`;

/** Sorted set, all scores 0: `<start, 15 digits of milliseconds>:<call id>`, so that order is time. */
export const orgCallsKey = (orgId: string): string => `org:{${orgId}}:calls`;

/** String, JSON, expires: one call's record. */
export const callKey = (orgId: string, callId: string): string => `org:{${orgId}}:call:${callId}`;

/** List, JSON, newest first, trimmed: calls that belong to no organization. */
export const UNROUTED_CALLS_KEY = 'calls:unrouted';

/** Set: ids of all organizations. */
export const ORGS_KEY = 'orgs';

/** Hash: the record of an API key, by the SHA-256 of the key in hex. */
export const apiKeyKey = (digest: string): string => `key:{${digest}}`;

/** String: the digest of the API key with this id. */
export const apiKeyIdKey = (keyId: string): string => `keyid:{${keyId}}`;

/** String, JSON: an agent. */
export const agentKey = (agentId: string): string => `agent:{${agentId}}`;
