import type { ZodApp } from '../context.js';
import { z } from 'zod';
import { errorEnvelope, errorEnvelopeSchema } from '../schemas/api-error.js';
import { dataAnswer, exampleOf, failureAnswers, success, successAnswer } from '../answers.js';

/** For each part of the service (`redis`, `rtpengine`, `sip_server`; `gateway` while it drains), whether it is ready, or a text that says why it is not. */
export type PartStates = Readonly<Record<string, boolean | string>>;

export interface ServiceState {
  readonly parts: PartStates;
  /** What works, and should be seen to: for a person. */
  readonly warnings: readonly string[];
}

/** How every part is now. Should come back within a second or so; when it rejects, the service is not ready. */
export type Readiness = () => Promise<ServiceState>;

export interface HealthRoutesOptions {
  readonly readiness: Readiness;
  readonly version: string;
}

const warningsSchema = z
  .array(z.string())
  .describe('What works, and should be seen to: a Redis that is slow, nearly full, or would delete keys')
  .meta({ examples: [[]] });
const partsSchema = z.record(z.string(), z.boolean()).meta({ examples: [{ redis: true, rtpengine: true, sip_server: true }] });
const tags = ['Health'];

/** GET /healthz (the process runs) and GET /readyz (it can take calls). Without authentication. */
export function healthRoutes(app: ZodApp, { readiness, version }: HealthRoutesOptions): void {
  app.get('/healthz', {
    config: { unlimited: true },
    schema: {
      operationId: 'getHealth',
      tags,
      security: [],
      summary: 'Check that the process runs',
      description: 'Checks no other part. Needs no key and has no rate limit.',
      response: {
        200: dataAnswer('The process runs', z.object({ version: z.string() }), { version: '1.0.0' }),
        ...failureAnswers(['INTERNAL']),
      },
    },
    handler: () => success({ version }),
  });

  app.get('/readyz', {
    config: { unlimited: true },
    schema: {
      operationId: 'getReadiness',
      tags,
      security: [],
      summary: 'Check that the gateway can take calls',
      description:
        'Checks every part that a call needs. A gateway that is shutting down is not ready, and has a part `gateway` that says so. Needs no key and has no rate limit.',
      response: {
        200: dataAnswer('Every part is ready', z.object({ parts: partsSchema, warnings: warningsSchema }), {
          parts: exampleOf(partsSchema),
          warnings: [],
        }),
        503: successAnswer(
          '`NOT_READY`: an entry of errors for each part that is not',
          errorEnvelopeSchema.extend({ parts: partsSchema, warnings: warningsSchema }),
        ),
      },
    },
    handler: async (_request, reply) => {
      const { parts: states, warnings: read } = await stateOf(readiness);
      const warnings = [...read];
      const parts = Object.fromEntries(Object.entries(states).map(([name, state]) => [name, state === true]));
      const missing = Object.keys(parts).filter((name) => parts[name] !== true);
      if (missing.length === 0) return success({ parts, warnings });
      const errors = missing.map((name) => ({ error: 'NOT_READY' as const, message: `${name} is not ready${why(states[name])}` }));
      const envelope = errorEnvelope('NOT_READY', `Not ready: ${missing.join(', ')}`, errors);
      return reply.code(503).send({ ...envelope, parts, warnings });
    },
  });
}

const why = (state: boolean | string | undefined): string => (typeof state === 'string' ? `: ${state}` : '');

async function stateOf(readiness: Readiness): Promise<ServiceState> {
  try {
    return await readiness();
  } catch {
    return { parts: { readiness: false }, warnings: [] };
  }
}
