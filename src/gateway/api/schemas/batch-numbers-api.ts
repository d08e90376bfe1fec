import { z } from 'zod';
import { MAX_BATCH_NUMBERS } from '../batch-numbers.js';

const metadata = z
  .record(z.string().max(64), z.unknown())
  .refine((value) => JSON.stringify(value).length <= 16_384, 'must have at most 16 kB');

/** The numbers of a batch as a list. */
export const batchNumbers = z
  .array(
    z.union([
      z.string().max(64),
      z
        .strictObject({ phone_number: z.string().max(64), time_zone: z.string().max(64).optional(), metadata: metadata.optional() })
        .meta({ title: 'BatchNumber' }),
    ]),
  )
  .min(1)
  .max(MAX_BATCH_NUMBERS)
  .describe('Phone numbers in E.164 form, or objects with the time zone of the person (IANA) and metadata for the agent');
