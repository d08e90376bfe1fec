import type { FastifyRequest } from 'fastify';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { AuditLog } from '../ports/stores.js';
import { identityOf } from './auth.js';

/** A change that a request made: what was done, to which record, and the names of the fields that changed. */
export type RecordAudit = (request: FastifyRequest, action: string, record: string, fields?: readonly string[]) => Promise<void>;

/** Writes changes into the audit log of the requester. Never rejects: the change stands even if the note fails. */
export function auditRecorder(audit: AuditLog, log: Log): RecordAudit {
  return async (request, action, record, fields = []) => {
    const { orgId, keyId, keyName } = identityOf(request);
    try {
      await audit.append(orgId, { by: { key_id: keyId, name: keyName }, action, record, fields });
    } catch (error) {
      log.warn({ request_id: request.id, action, error: errorText(error) }, 'audit.not_written');
    }
  };
}
