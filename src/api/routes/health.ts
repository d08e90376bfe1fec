import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { errorEnvelope, errorEnvelopeSchema } from '../../contracts/api-error.js';
import { successAnswer } from '../answers.js';

/** How one part of the service is. */
export interface PartStatus {
  /** `redis`, `rtpengine`, `sip-server` and the like. */
  readonly name: string;
  readonly ready: boolean;
  /** A sentence for a person; `null`: nothing to say. */
  readonly detail: string | null;
}

/** How every part is now. Must come back within a second or so; what it rejects with counts as not ready. */
export type Readiness = () => Promise<readonly PartStatus[]>;

export interface HealthRoutesOptions {
  readonly readiness: Readiness;
  readonly version: string;
}

const partSchema = z.object({ name: z.string(), ready: z.boolean(), detail: z.string().nullable() });
const partsSchema = z.array(partSchema).readonly();
const tags = ['Health'];

/** GET /healthz (the process runs) and GET /readyz (it can take calls). Without authentication. */
export const healthRoutes: FastifyPluginAsyncZod<HealthRoutesOptions> = async (app, { readiness, version }) => {
  app.get('/healthz', {
    config: { unlimited: true },
    schema: {
      tags,
      summary: 'Does the process run?',
      response: {
        200: successAnswer(
          'It does',
          z.object({ status: z.literal('success'), data: z.object({ version: z.string() }), errors: z.null() }),
        ),
      },
    },
    handler: () => ({ status: 'success' as const, data: { version }, errors: null }),
  });

  app.get('/readyz', {
    config: { unlimited: true },
    schema: {
      tags,
      summary: 'Can it take calls?',
      response: {
        200: successAnswer(
          'Every part is ready',
          z.object({ status: z.literal('success'), data: z.object({ parts: partsSchema }), errors: z.null() }),
        ),
        503: successAnswer('`NOT_READY`: an entry of errors for each part that is not', errorEnvelopeSchema.extend({ parts: partsSchema })),
      },
    },
    handler: async (_request, reply) => {
      const parts = await partsOf(readiness);
      const missing = parts.filter((part) => !part.ready);
      if (missing.length === 0) return { status: 'success' as const, data: { parts }, errors: null };
      const errors = missing.map(({ name, detail }) => ({ error: 'NOT_READY' as const, message: `${name}: ${detail ?? 'not ready'}` }));
      const envelope = errorEnvelope('NOT_READY', `Not ready: ${missing.map(({ name }) => name).join(', ')}`, errors);
      return reply.code(503).send({ ...envelope, parts });
    },
  });
  return Promise.resolve();
};

async function partsOf(readiness: Readiness): Promise<readonly PartStatus[]> {
  try {
    return await readiness();
  } catch {
    return [{ name: 'readiness', ready: false, detail: 'the check itself failed' }];
  }
}
