import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { Log } from '../lib/log.js';
import type { OrgRecord } from '../contracts/records.js';
import type { ApiKeyRecord, Stores } from '../store/stores.js';
import { ApiFailure } from './failure.js';

/** Who asks. */
export interface Identity {
  readonly orgId: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly sipEnabled: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by authentication; `null` on routes without it. */
    identity: Identity | null;
  }
}

// Longer than any key that this product makes, short enough that hashing one costs nothing.
const KEY = /^tl_[A-Za-z0-9_-]{24,128}$/;
const BEARER = /^Bearer +/i;

/** The key in an `authorization` header, raw or after `Bearer`; `null` when it cannot be one. */
export function keyOf(header: string | undefined): string | null {
  const key = header?.trim().replace(BEARER, '') ?? '';
  return KEY.test(key) ? key : null;
}

/** A valid key and its organization. */
export interface KeyOwner {
  readonly record: ApiKeyRecord;
  readonly org: OrgRecord;
}

/** `null`: no key, an unknown or a revoked one, or its organization is gone. */
export async function ownerOf(stores: Pick<Stores, 'keys' | 'orgs'>, key: string | null): Promise<KeyOwner | null> {
  const record = key === null ? null : await stores.keys.find(key);
  const org = record === null ? null : await stores.orgs.get(record.org_id);
  return record === null || org === null ? null : { record, org };
}

export function identityBy({ record, org }: KeyOwner): Identity {
  return { orgId: org.org_id, keyId: record.key_id, keyName: record.name, sipEnabled: org.sip_enabled };
}

/** Finds out who asks, and refuses whoever cannot tell. Reads key and organization each time: a revocation counts at once. */
export function authenticate(stores: Pick<Stores, 'keys' | 'orgs'>, log: Log): onRequestAsyncHookHandler {
  return async (request) => {
    const owner = await ownerOf(stores, keyOf(request.headers.authorization));
    if (owner === null) {
      const message = 'The authorization header must hold a valid API key';
      throw new ApiFailure('UNAUTHENTICATED', message, { headers: { 'www-authenticate': 'Bearer' } });
    }
    const { record, org } = owner;
    if (org.disabled) throw new ApiFailure('ORG_DISABLED', 'The organization is disabled');
    request.identity = identityBy(owner);
    // Beside the request: whether the note can be written is nothing to the caller.
    stores.keys.touch(record).catch((error: unknown) => {
      log.debug({ request_id: request.id, reason: String(error) }, 'use of an API key not noted');
    });
  };
}

/** Refuses organizations without the SIP entitlement. Runs after `authenticate`. */
export const requireSipEntitlement: onRequestAsyncHookHandler = async (request) => {
  if (identityOf(request).sipEnabled) return Promise.resolve();
  throw new ApiFailure('SIP_NOT_ENABLED', 'The organization does not have SIP enabled');
};

/** Who asks, on a route behind `authenticate`. */
export function identityOf(request: FastifyRequest): Identity {
  if (request.identity === null) throw new Error('the route is not behind authenticate');
  return request.identity;
}
