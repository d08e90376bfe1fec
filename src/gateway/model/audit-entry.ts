import { z } from 'zod';
import { moment, uuid } from './described.js';

export const auditEntrySchema = z
  .object({
    id: z.string(),
    org_id: uuid(),
    at: moment(),
    by: z.object({
      key_id: uuid('The id of an API key; null: the command line').nullable(),
      name: z.string().describe("The key's name, or `cli:` and the user"),
    }),
    action: z.string().describe('Such as `number.attach` or `agent.update`'),
    record: z.string().describe('Id or phone number of the changed record'),
    fields: z.array(z.string()).readonly().describe('Names of the changed fields'),
  })
  .meta({
    id: 'AuditEntry',
    description: 'A change to a record',
    examples: [
      {
        id: '1767225600000-0',
        org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
        at: '2026-01-01T00:00:00.000Z',
        by: { key_id: 'b1f0c6a4-6a53-4c53-9f5b-0f0d8a2d1c11', name: 'ci' },
        action: 'agent.update',
        record: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11',
        fields: ['prompt', 'language'],
      },
    ],
  });

/** `id`: give it back as `before` for what was before it. */
export type AuditEntry = Readonly<z.output<typeof auditEntrySchema>>;

/** A change, by a key or by a person at the command line: names of what changed of the record, never what they hold. */
export type AuditChange = Pick<AuditEntry, 'by' | 'action' | 'record' | 'fields'>;
