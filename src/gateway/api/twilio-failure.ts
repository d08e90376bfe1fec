import type { FastifyReply, FastifyRequest } from 'fastify';
import { accountSidOf } from '../model/twilio-ids.js';
import { parseTwiml } from '../twilio/twiml.js';
import { identityOf } from './auth.js';
import { failureOf } from './failure.js';
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
  badMethod: 20_004,
  notFound: 20_404,
  rateLimited: 20_429,
  internal: 20_500,
  badDocument: 12_100,
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

/** Whether Twilio's libraries asked. */
export const isTwilioUrl = (url: string): boolean => url.startsWith('/2010-04-01/');

/** Answers a request that failed in the form that Twilio's libraries read. */
export function sendTwilioFailure(reply: FastifyReply, error: unknown, requestId: string): void {
  const { status, code, message, headers } = answerOf(error, requestId);
  const info = `https://www.twilio.com/docs/errors/${String(code)}`;
  void reply.code(status).headers(headers).send({ code, message, more_info: info, status });
}

interface TwilioAnswer {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}

function answerOf(error: unknown, requestId: string): TwilioAnswer {
  if (error instanceof TwilioFailure) {
    const headers: Readonly<Record<string, string>> = error.statusCode === 401 ? { 'www-authenticate': CHALLENGE } : {};
    return { status: error.statusCode, code: error.code, message: error.message, headers };
  }
  const { statusCode, message, headers } = failureOf(error, requestId);
  if (statusCode === 415)
    return { status: 415, code: TWILIO_CODES.badRequest, message: 'The body must be application/x-www-form-urlencoded', headers };
  return { status: statusCode, code: codeOf(statusCode), message, headers };
}

function codeOf(status: number): number {
  if (status === 404) return TWILIO_CODES.notFound;
  if (status === 405) return TWILIO_CODES.badMethod;
  if (status === 429) return TWILIO_CODES.rateLimited;
  return status >= 500 ? TWILIO_CODES.internal : TWILIO_CODES.badRequest;
}

/** Throws when a document cannot be read: it would end a call that nobody could explain. */
export function checkDocument(twiml: string): void {
  const document = parseTwiml(twiml);
  if (!document.ok) throw new TwilioFailure(400, TWILIO_CODES.badDocument, `Twiml: ${document.error}`);
}

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
