import { z } from 'zod';
import { cursorOf, type PagedList } from '../cursor.js';
import { TOOL_ID } from './agent-settings.js';

export const exampleCursor = (list: PagedList): string => cursorOf(list, '001767225600000:153ee546-05b9-4d95-bd6d-f899f082d48b');

export const DEFAULT_PAGE_LIMIT = 50;

const LIMIT = /^[1-9]\d{0,2}$/;

/** The id of a record in a path. What is none finds nothing: this is for the document alone. */
const idParam = (form: object, description: string, example: string) =>
  z
    .string()
    .max(100)
    .meta({ ...form, description, examples: [example] });

export const uuidParam = (description: string, example: string) => idParam({ format: 'uuid' }, description, example);
export const toolIdParam = (example: string) => idParam({ pattern: TOOL_ID.source }, 'TL- and a UUID', example);

/** Whose records are read: for operator keys. */
export const orgQuery = {
  org_id: z
    .string()
    .max(64)
    .optional()
    .meta({
      description: 'For an operator key: the organization; default: all. `none`: calls without an organization',
      pattern: '^(?:none|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$',
      examples: ['0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52'],
    }),
};

/** How a page of a list is asked for that goes on from where the page before ended. @param otherwise what a missing `limit` stands for */
export function pageQueryOf(list: PagedList, otherwise = String(DEFAULT_PAGE_LIMIT)) {
  return {
    limit: z
      .string()
      .refine((value) => LIMIT.test(value) && Number(value) <= 500, 'must be an integer from 1 to 500')
      .optional()
      .meta({
        type: 'integer',
        minimum: 1,
        maximum: 500,
        description: `Default: ${otherwise}. A page of large records may have fewer, and a \`next\``,
        examples: [50],
      }),
    before: z
      .string()
      .max(200)
      .optional()
      .meta({ description: "The previous page's `next`", examples: [exampleCursor(list)] }),
    ...orgQuery,
  };
}

/** What a page says of the one behind it. */
export const nextCursor = z.string().nullable().describe('Pass it as `before` to get the next page; null: last page');
