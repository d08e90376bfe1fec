import { z } from 'zod';
import { moment } from '../../model/described.js';
import { parseE164, type E164 } from '../../model/e164.js';
import { MAX_DO_NOT_CALL } from '../../ports/batches.js';
import { fieldsAnswer, messageAnswer } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import type { RouteContext, ZodApp } from '../context.js';
import { ApiFailure, validationFailure } from '../failure.js';
import { orgQuery } from '../schemas/page-query.js';
import { phoneNumber, wholeNumber } from '../schemas/sip-api.js';

const DEFAULT_TAKE = 100;
const tags = ['Calls'];
const listedNumber = z.object({ phone_number: z.string(), added_at: moment() }).meta({ title: 'ListedNumber' });

/** GET, POST and DELETE /v1/do-not-call. Registered behind authentication. */
export function doNotCallRoutes(app: ZodApp, { stores, note }: RouteContext): void {
  app.get('/v1/do-not-call', {
    schema: {
      operationId: 'listDoNotCall',
      tags,
      summary: 'List the numbers that are never dialled',
      description: 'Newest first. An operator key names the organization.',
      querystring: z.strictObject({
        take: wholeNumber(1, 1_000, DEFAULT_TAKE),
        skip: wholeNumber(0, MAX_DO_NOT_CALL, 0),
        ...orgQuery,
      }),
      response: {
        200: fieldsAnswer(
          'The numbers',
          { numbers: z.array(listedNumber).readonly() },
          { numbers: [{ phone_number: '+15550100999', added_at: '2026-01-01T00:00:00.000Z' }] },
        ),
      },
    },
    handler: async (request) => {
      const scope = scopeOf(request);
      if (scope === null) throw validationFailure([{ error: 'VALIDATION', message: 'must name the organization', path: 'org_id' }]);
      const page = { take: Number(request.query.take ?? DEFAULT_TAKE), skip: Number(request.query.skip ?? 0) };
      return { status: 'success' as const, numbers: await stores.doNotCall.list(scope, page) };
    },
  });

  app.post('/v1/do-not-call', {
    config: { failures: ['LIMIT_REACHED'] },
    schema: {
      operationId: 'addDoNotCall',
      tags,
      summary: 'Never dial these numbers',
      description:
        'Checked before each call that the organization places, in batches too. Agents and callers add numbers as well (docs/batches.md).',
      body: z
        .strictObject({ phone_numbers: z.array(phoneNumber).min(1).max(1_000) })
        .meta({ examples: [{ phone_numbers: ['+15550100999'] }] }),
      response: { 200: messageAnswer('They are on the list', '1 number added to the do-not-call list') },
    },
    handler: async (request) => {
      const { orgId } = identityOf(request);
      const numbers = request.body.phone_numbers.flatMap((text) => parseE164(text) ?? []);
      const added = await stores.doNotCall.add(orgId, [...new Set(numbers)]);
      if (added === null)
        throw new ApiFailure('LIMIT_REACHED', `A do-not-call list has at most ${MAX_DO_NOT_CALL.toLocaleString('en')} numbers`);
      for (const number of numbers) await note(request, 'do_not_call.add', number);
      const message = `${String(added)} ${added === 1 ? 'number' : 'numbers'} added to the do-not-call list`;
      return { status: 'success' as const, message };
    },
  });

  app.delete('/v1/do-not-call/:phone_number', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      operationId: 'removeDoNotCall',
      tags,
      summary: 'Take a number off the do-not-call list',
      description: 'It may be dialled again.',
      params: z.object({ phone_number: phoneNumber }),
      response: { 200: messageAnswer('It is off the list', '+15550100999 is off the do-not-call list') },
    },
    handler: async (request) => {
      const { orgId } = identityOf(request);
      const number: E164 | undefined = parseE164(request.params.phone_number);
      if (number === undefined || !(await stores.doNotCall.remove(orgId, number)))
        throw new ApiFailure('NOT_FOUND', 'The number is not on the do-not-call list');
      await note(request, 'do_not_call.remove', number);
      return { status: 'success' as const, message: `${number} is off the do-not-call list` };
    },
  });
}
