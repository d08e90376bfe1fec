import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { Log } from '../../lib/log.js';
import type { OrgRecord } from '../model/records.js';
import { NO_ORG, type ApiKeyRecord, type Scope, type Stores } from '../ports/stores.js';
import { ApiFailure, validationFailure } from './failure.js';

/** Who asks, for an organization. */
export interface Identity {
  readonly orgId: string;
  readonly keyId: string;
  readonly keyName: string;
  /** As it was read with the key. */
  readonly org: OrgRecord;
}

/** An operator, who reads. */
export interface OperatorIdentity {
  /** The organization that is asked about; `null`: all of them. */
  readonly scope: Scope;
  readonly keyId: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by authentication; `null` on routes without it. */
    identity: Identity | OperatorIdentity | null;
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

/** A valid key and its organization; `null`: it is an operator's. */
export interface KeyOwner {
  readonly record: ApiKeyRecord;
  readonly org: OrgRecord | null;
}

/** `null`: no key, an unknown or a revoked one, or its organization is gone. */
export async function ownerOf(stores: Pick<Stores, 'keys' | 'orgs'>, key: string | null): Promise<KeyOwner | null> {
  const record = key === null ? null : await stores.keys.find(key);
  if (record === null || record.org_id === null) return record === null ? null : { record, org: null };
  const org = await stores.orgs.get(record.org_id);
  return org === null ? null : { record, org };
}

export function identityBy(record: ApiKeyRecord, org: OrgRecord): Identity {
  return { orgId: org.org_id, keyId: record.key_id, keyName: record.name, org };
}

/** Identifies the requester, or refuses the request. Reads key and organization each time: a revocation counts at once. */
export function authenticate(stores: Pick<Stores, 'keys' | 'orgs'>, log: Log): onRequestAsyncHookHandler {
  return async (request) => {
    const owner = await ownerOf(stores, keyOf(request.headers.authorization));
    if (owner === null) {
      const message = 'The authorization header must hold a valid API key';
      throw new ApiFailure('UNAUTHENTICATED', message, { headers: { 'www-authenticate': 'Bearer' } });
    }
    const { record, org } = owner;
    if (org?.disabled === true) throw new ApiFailure('ORG_DISABLED', 'The organization is disabled');
    const asked = askedOrg(request);
    if (org === null) {
      request.identity = { scope: await operatorScope(stores, request, asked), keyId: record.key_id };
    } else {
      if (asked !== undefined && asked !== org.org_id)
        throw validationFailure([
          { error: 'VALIDATION', message: 'is for operator keys: this key is of one organization', path: 'org_id' },
        ]);
      request.identity = identityBy(record, org);
    }
    // Beside the request: whether the note can be written is nothing to the caller.
    stores.keys.touch(record).catch((error: unknown) => {
      log.debug({ request_id: request.id, error: String(error) }, 'api.key.use_not_noted');
    });
  };
}

/** The organization in the query, which is not validated yet. */
function askedOrg({ query }: FastifyRequest): unknown {
  return typeof query === 'object' && query !== null && 'org_id' in query ? query.org_id : undefined;
}

async function operatorScope(stores: Pick<Stores, 'orgs'>, { method }: FastifyRequest, asked: unknown): Promise<Scope> {
  if (method !== 'GET' && method !== 'HEAD') throw readOnly();
  if (asked === undefined) return null;
  if (asked === NO_ORG) return NO_ORG;
  if (typeof asked !== 'string' || (await stores.orgs.get(asked.toLowerCase())) === null)
    throw new ApiFailure('NOT_FOUND', 'There is no such organization (org_id)');
  return asked.toLowerCase();
}

function readOnly(): ApiFailure {
  return new ApiFailure('READ_ONLY_KEY', 'This is an operator key: it reads, and changes nothing. Use a key of the organization');
}

/** Refuses organizations without the SIP entitlement. Runs after `authenticate`. */
export const requireSipEntitlement: onRequestAsyncHookHandler = async (request) => {
  if (isOperator(request) || identityOf(request).org.sip_enabled) return Promise.resolve();
  throw new ApiFailure('SIP_NOT_ENABLED', 'The organization does not have SIP enabled');
};

/** The organization that asks, on a route behind `authenticate`. Throws READ_ONLY_KEY for an operator, who belongs to none. */
export function identityOf(request: FastifyRequest): Identity {
  const identity = someoneOf(request);
  if ('scope' in identity) throw readOnly();
  return identity;
}

/** Whose records are read, on a route behind `authenticate`. */
export function scopeOf(request: FastifyRequest): Scope {
  const identity = someoneOf(request);
  return 'scope' in identity ? identity.scope : identity.orgId;
}

export function isOperator(request: FastifyRequest): boolean {
  return 'scope' in someoneOf(request);
}

/** The key that asks, on a route behind `authenticate`. */
export function keyIdOf(request: FastifyRequest): string {
  return someoneOf(request).keyId;
}

function someoneOf({ identity }: FastifyRequest): Identity | OperatorIdentity {
  if (identity === null) throw new Error('the route is not behind authenticate');
  return identity;
}
