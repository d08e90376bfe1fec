import { z } from 'zod';
import { orgQuery } from './page-query.js';
import { wholeNumber } from './sip-api.js';

// Who changed what, over HTTP.

export const DEFAULT_AUDIT_TAKE = 100;

export const auditQuerySchema = z.strictObject({
  take: wholeNumber(1, 1000, DEFAULT_AUDIT_TAKE),
  ...orgQuery,
  before: z
    .string()
    .regex(/^\d{1,15}-\d{1,15}$/, 'must be the id of an entry')
    .optional()
    .meta({ description: 'The `id` of an entry: list the entries before it', examples: ['1767225600000-0'] }),
});
