import { z } from 'zod';
import type { RouteContext, ZodApp } from '../context.js';
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { accountSidOf, callIdOf, callSidOf } from '../../model/twilio-ids.js';
import type { LiveCall } from '../../model/live-calls.js';
import type { Stores } from '../../ports/stores.js';
import { successAnswer } from '../answers.js';
import { identityBy, identityOf, keyOf, ownerOf } from '../auth.js';
import { failureOf } from '../failure.js';

const ACCOUNT_SID = 'AC7c9e6679742540de944be07fc1f90ae7';
const CALL_SID = 'CA153ee54605b94d95bd6df899f082d48b';
const RFC_2822 = 'RFC 2822, UTC';

const accountSid = z.string().meta({ description: '`AC` and the hex digits of the organization’s id', examples: [ACCOUNT_SID] });
const callSid = z.string().meta({ description: '`CA` and the hex digits of the call’s id', examples: [CALL_SID] });
/** Fields that Twilio has and Trunkline has nothing to say about. */
const nothing = z.null();

const twilioParamsSchema = z.object({ accountSid, callSid });

const twilioFormSchema = z
  .object({ Status: z.enum(['completed', 'canceled'], 'must be completed, or canceled for a call that is not answered') })
  .meta({ description: 'Other fields are ignored', examples: [{ Status: 'completed' }] });

const twilioCallSchema = z
  .object({
    sid: callSid,
    account_sid: accountSid,
    parent_call_sid: nothing,
    phone_number_sid: nothing,
    from: z.string().meta({ description: 'The calling number' }),
    from_formatted: z.string(),
    to: z.string().meta({ description: 'The called number' }),
    to_formatted: z.string(),
    direction: z.literal('inbound'),
    status: z.literal('completed'),
    date_created: z.string().meta({ description: RFC_2822 }),
    date_updated: z.string().meta({ description: RFC_2822 }),
    start_time: z.string().meta({ description: RFC_2822 }),
    end_time: z.string().meta({ description: RFC_2822 }),
    duration: z.string().meta({ description: 'Seconds since the answer' }),
    answered_by: nothing,
    caller_name: nothing,
    price: nothing,
    price_unit: nothing,
    api_version: z.literal('2010-04-01'),
    uri: z.string(),
    subresource_uris: z.object({}),
  })
  .meta({
    examples: [
      {
        sid: CALL_SID,
        account_sid: ACCOUNT_SID,
        parent_call_sid: null,
        phone_number_sid: null,
        from: '+15550100200',
        from_formatted: '+15550100200',
        to: '+15550100100',
        to_formatted: '+15550100100',
        direction: 'inbound',
        status: 'completed',
        date_created: 'Thu, 01 Jan 2026 00:00:00 GMT',
        date_updated: 'Thu, 01 Jan 2026 00:00:09 GMT',
        start_time: 'Thu, 01 Jan 2026 00:00:00 GMT',
        end_time: 'Thu, 01 Jan 2026 00:00:09 GMT',
        duration: '7',
        answered_by: null,
        caller_name: null,
        price: null,
        price_unit: null,
        api_version: '2010-04-01',
        uri: `/2010-04-01/Accounts/${ACCOUNT_SID}/Calls/${CALL_SID}.json`,
        subresource_uris: {},
      },
    ],
  });
type TwilioCall = z.output<typeof twilioCallSchema>;

const twilioErrorSchema = z
  .object({
    code: z.int().meta({ description: 'Twilio’s code' }),
    message: z.string(),
    more_info: z.string().meta({ description: 'Where Twilio explains the code' }),
    status: z.int().meta({ description: 'The HTTP status' }),
  })
  .meta({
    id: 'TwilioError',
    examples: [{ code: 20_003, message: 'Authenticate', more_info: 'https://www.twilio.com/docs/errors/20003', status: 401 }],
  });

/** A refusal in the form that Twilio's libraries read. */
class TwilioFailure extends Error {
  override readonly name = 'TwilioFailure';
  constructor(
    readonly statusCode: number,
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

const NOT_FOUND = 20_404;
const BAD_REQUEST = 20_001;
const UNAUTHENTICATED = 20_003;
const RATE_LIMITED = 20_429;
const INTERNAL = 20_500;
const FORM = 'application/x-www-form-urlencoded';
const MAX_FORM_BYTES = 16_384;
const CHALLENGE = 'Basic realm="Trunkline"';

const failure = (codes: string) => ({ description: codes, content: { 'application/json': { schema: twilioErrorSchema } } });
const challenge = { type: 'string', description: `Always \`${CHALLENGE}\``, examples: [CHALLENGE] };

const schema = {
  tags: ['Calls'],
  security: [{ basic: [] }],
  operationId: 'postTwilioCall',
  summary: "End a call through Twilio's API",
  description:
    "For bots written for Twilio: the part of its API that ends a call. `Status=completed` ends the call as if its agent had hung up; `canceled` does so only before the answer. Failures have Twilio's shape too. Use the ids of the `start` message.",
  consumes: [FORM],
  params: twilioParamsSchema,
  body: twilioFormSchema,
  response: {
    200: successAnswer("Twilio's resource of the call", twilioCallSchema),
    400: failure(`\`${String(BAD_REQUEST)}\`: The form has another \`Status\`, or the call is answered and cannot be canceled`),
    401: {
      ...failure(`\`${String(UNAUTHENTICATED)}\`: The user is not the organization, or the password none of its API keys`),
      headers: { 'www-authenticate': challenge },
    },
    404: failure(`\`${String(NOT_FOUND)}\`: The organization has no such call in progress`),
    413: failure(`\`${String(BAD_REQUEST)}\`: The form is larger than 16 KiB`),
    415: failure(`\`${String(BAD_REQUEST)}\`: The body is not a form`),
    429: failure(`\`${String(RATE_LIMITED)}\`: Too many requests; retry after the seconds in the retry-after header`),
    500: failure(`\`${String(INTERNAL)}\`: A fault of the service; the message holds the request id`),
    503: failure(
      `\`${String(INTERNAL)}\`: The store, or the gateway that has the call, does not answer; try again after retry-after seconds`,
    ),
  },
};

/** As much of Twilio's API as a bot needs to end its call: its resource is set to `completed`. @param perKey after authentication */
export function twilioRoutes(app: ZodApp, { stores, control, clock, note }: RouteContext, perKey: onRequestAsyncHookHandler): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    FORM,
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request: FastifyRequest, body: string, done: (error: null, form: object) => void) =>
      done(null, Object.fromEntries(new URLSearchParams(body))),
  );
  app.setErrorHandler((error, request, reply) => {
    const { status, code, message, headers } = answerOf(error, request.id);
    const info = `https://www.twilio.com/docs/errors/${String(code)}`;
    void reply.code(status).headers(headers).send({ code, message, more_info: info, status });
  });
  app.addHook('onRequest', authenticateBasic(stores));
  app.addHook('onRequest', perKey);
  app.post('/2010-04-01/Accounts/:accountSid/Calls/:callSid.json', {
    schema,
    handler: async (request) => {
      const { accountSid, callSid } = request.params;
      const { orgId } = identityOf(request);
      const callId = accountSid === accountSidOf(orgId) ? callIdOf(callSid) : undefined;
      const call = callId === undefined ? null : await control.find(orgId, callId);
      const notFound = new TwilioFailure(404, NOT_FOUND, `The requested resource ${pathOf(orgId, callSid)} was not found`);
      if (call === null) throw notFound;
      if (request.body.Status === 'canceled' && call.answeredAtMs !== null)
        throw new TwilioFailure(400, BAD_REQUEST, 'The call is answered: Status must be completed');
      if (!(await control.stop(orgId, call.callId, 'AGENT_HANGUP'))) throw notFound;
      await note(request, 'call.stop', call.callId);
      return resourceOf(call, orgId, clock.wallMs());
    },
  });
}

/** The user is the organization, by its id or as `AC…`, the password one of its API keys. */
function authenticateBasic(stores: Pick<Stores, 'keys' | 'orgs'>): onRequestAsyncHookHandler {
  return async (request) => {
    const [, encoded = ''] = /^Basic +([A-Za-z0-9+/=]{1,1024})$/i.exec(request.headers.authorization ?? '') ?? [];
    const [, user = '', password = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
    const owner = await ownerOf(stores, keyOf(password));
    const org = owner?.org ?? null;
    const orgId = org?.org_id ?? '';
    if (owner === null || org === null || org.disabled || ![orgId, accountSidOf(orgId)].includes(user))
      throw new TwilioFailure(401, UNAUTHENTICATED, 'Authenticate');
    request.identity = identityBy(owner.record, org);
    stores.keys.touch(owner.record).catch(() => undefined);
  };
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
  if (statusCode === 415) return { status: 415, code: BAD_REQUEST, message: 'The body must be application/x-www-form-urlencoded', headers };
  const code = statusCode === 429 ? RATE_LIMITED : statusCode >= 500 ? INTERNAL : BAD_REQUEST;
  return { status: statusCode, code, message, headers };
}

function pathOf(orgId: string, callSid: string): string {
  return `/2010-04-01/Accounts/${accountSidOf(orgId)}/Calls/${callSid}.json`;
}

/** Twilio's resource of a call, as far as there is something to say. */
function resourceOf({ callId, from, to, startedAtMs, answeredAtMs }: LiveCall, orgId: string, nowMs: number): TwilioCall {
  const now = new Date(nowMs).toUTCString();
  const started = new Date(startedAtMs).toUTCString();
  return {
    sid: callSidOf(callId),
    account_sid: accountSidOf(orgId),
    parent_call_sid: null,
    phone_number_sid: null,
    from,
    from_formatted: from,
    to,
    to_formatted: to,
    direction: 'inbound' as const,
    status: 'completed' as const,
    date_created: started,
    date_updated: now,
    start_time: started,
    end_time: now,
    duration: String(answeredAtMs === null ? 0 : Math.max(0, Math.round((nowMs - answeredAtMs) / 1_000))),
    answered_by: null,
    caller_name: null,
    price: null,
    price_unit: null,
    api_version: '2010-04-01',
    uri: pathOf(orgId, callSidOf(callId)),
    subresource_uris: {},
  };
}
