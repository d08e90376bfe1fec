import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { PROVIDERS } from '../../model/provider.js';
import { PROVIDER_VOICES } from '../../model/provider-voices.js';
import { exampleOf, fieldsAnswer } from '../answers.js';
import { orgQuery } from '../schemas/page-query.js';

const voiceSchema = z
  .object({
    name: z.string(),
    language: z.string().nullable().describe('A language code; null: not known, or any'),
    provider: z.enum(PROVIDERS).nullable().describe('For agents with this provider; null: for agents without one'),
  })
  .meta({ id: 'Voice', examples: [{ name: 'en-us', language: 'ENG', provider: null }] });

/** GET /v1/voices. Registered behind authentication. */
export function voiceRoutes(app: ZodApp, { voices }: RouteContext): void {
  app.get('/v1/voices', {
    schema: {
      operationId: 'listVoices',
      tags: ['Agents'],
      summary: 'List the voices',
      description: 'The voices that an agent may use. An agent with its own stream, or with a provider, may use any voice.',
      querystring: z.strictObject(orgQuery),
      response: { 200: fieldsAnswer('The voices', { voices: z.array(voiceSchema).readonly() }, { voices: [exampleOf(voiceSchema)] }) },
    },
    handler: () =>
      Promise.resolve({
        status: 'success' as const,
        voices: [...voices.map((voice) => ({ ...voice, provider: null })), ...PROVIDER_VOICES],
      }),
  });
}
