import type { FastifyRequest } from 'fastify';
import { accountSidOf } from '../model/twilio-ids.js';
import { identityOf } from './auth.js';
import { twilioErrorSchema } from './schemas/twilio-api.js';

/** A refusal in the form that Twilio's libraries read. */
export class TwilioFailure extends Error {
  override readonly name = 'TwilioFailure';
  constructor(
    readonly statusCode: number,
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** https://www.twilio.com/docs/api/errors */
export const TWILIO_CODES = {
  badRequest: 20_001,
  unauthenticated: 20_003,
  notFound: 20_404,
  rateLimited: 20_429,
  internal: 20_500,
  noTo: 21_201,
  badUrl: 21_205,
  fromNotVerified: 21_210,
  badTo: 21_211,
  badFrom: 21_212,
  noFrom: 21_213,
  notPermitted: 21_215,
  badStatusCallback: 21_609,
} as const;

export const FORM = 'application/x-www-form-urlencoded';
export const CHALLENGE = 'Basic realm="Trunkline"';

/** An answer of OpenAPI. @param codes which there are, and when */
export const failure = (codes: string) => ({ description: codes, content: { 'application/json': { schema: twilioErrorSchema } } });

const challenge = { type: 'string', description: `Always \`${CHALLENGE}\``, examples: [CHALLENGE] };

/** What every route may answer. */
export const refused = {
  401: {
    ...failure(`\`${String(TWILIO_CODES.unauthenticated)}\`: The user is not the organization, or the password not its Twilio token`),
    headers: { 'www-authenticate': challenge },
  },
  404: failure(`\`${String(TWILIO_CODES.notFound)}\`: The organization has no such call, or the account is another one`),
  429: failure(`\`${String(TWILIO_CODES.rateLimited)}\`: Too many requests; retry after the seconds in the retry-after header`),
  500: failure(`\`${String(TWILIO_CODES.internal)}\`: A fault of the service; the message holds the request id`),
  503: failure(
    `\`${String(TWILIO_CODES.internal)}\`: The store, or the gateway that has the call, does not answer; try again after retry-after seconds`,
  ),
};
export const common = { tags: ['Calls'], security: [{ basic: [] }] };

/** The organization that asks; its own account only. */
export function orgOf(request: FastifyRequest, accountSid: string): string {
  const { orgId } = identityOf(request);
  if (accountSid !== accountSidOf(orgId))
    throw new TwilioFailure(404, TWILIO_CODES.notFound, `The requested account ${accountSid} was not found`);
  return orgId;
}
