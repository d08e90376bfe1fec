import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { exampleOf, fieldsAnswer } from '../answers.js';

const voiceSchema = z
  .object({ name: z.string(), language: z.string().nullable().describe('A language code; null: not known') })
  .meta({ id: 'Voice', examples: [{ name: 'en-us', language: 'ENG' }] });

/** GET /v1/voices. Registered behind authentication. */
export function voiceRoutes(app: ZodApp, { voices }: RouteContext): void {
  app.get('/v1/voices', {
    schema: {
      tags: ['Agents'],
      summary: 'List the voices',
      description: 'The voices that an agent may use. An agent with its own stream may use any voice.',
      response: { 200: fieldsAnswer('The voices', { voices: z.array(voiceSchema).readonly() }, { voices: [exampleOf(voiceSchema)] }) },
    },
    handler: () => Promise.resolve({ status: 'success' as const, voices }),
  });
}
