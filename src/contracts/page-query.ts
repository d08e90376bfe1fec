import { z } from 'zod';

/** `<time in ms, 15 digits>:<id>` in base64url. */
export const EXAMPLE_CURSOR = 'MDAxNzY3MjI1NjAwMDAwOjE1M2VlNTQ2LTA1YjktNGQ5NS1iZDZkLWY4OTlmMDgyZDQ4Yg';

export const DEFAULT_PAGE_LIMIT = 50;

const LIMIT = /^[1-9]\d{0,2}$/;

/** How a page of a list is asked for that goes on from where the page before ended. */
export const pageQuery = {
  limit: z
    .string()
    .refine((value) => LIMIT.test(value) && Number(value) <= 500, 'must be an integer from 1 to 500')
    .optional()
    .meta({ description: `1 to 500, ${String(DEFAULT_PAGE_LIMIT)} when left out`, examples: ['50'] }),
  before: z
    .string()
    .max(200)
    .optional()
    .meta({ description: '`next` of the page before', examples: [EXAMPLE_CURSOR] }),
};
