import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { twilioCallSchema, twilioErrorSchema, twilioFormSchema, twilioParamsSchema, type TwilioCall } from '../schemas/twilio-api.js';
import { accountSidOf, callIdOf, callSidOf } from '../../model/twilio-ids.js';
import type { LiveCall } from '../../model/live-calls.js';
import type { Clock } from '../../../lib/clock.js';
import type { Stores } from '../../ports/stores.js';
import { successAnswer } from '../answers.js';
import type { CallControl } from '../call-control.js';
import { identityBy, identityOf, keyOf, ownerOf } from '../auth.js';
import type { RecordAudit } from '../audit.js';
import { failureOf } from '../failure.js';

export interface TwilioRoutesOptions {
  readonly stores: Pick<Stores, 'keys' | 'orgs'>;
  readonly control: CallControl;
  readonly clock: Clock;
  /** After authentication. */
  readonly perKey: onRequestAsyncHookHandler;
  readonly note: RecordAudit;
}

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
    415: failure(`\`${String(BAD_REQUEST)}\`: The body is no form`),
    429: failure(`\`${String(RATE_LIMITED)}\`: Too many requests; the retry-after header says when to come back`),
    500: failure(`\`${String(INTERNAL)}\`: A fault of the service; the message holds the request id`),
    503: failure(
      `\`${String(INTERNAL)}\`: The store, or the gateway that has the call, does not answer; try again after retry-after seconds`,
    ),
  },
};

/** As much of Twilio's API as a bot needs to end its call: the call's resource is set to `completed`. */
export const twilioRoutes: FastifyPluginAsyncZod<TwilioRoutesOptions> = async (app, { stores, control, clock, perKey, note }) => {
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
  return Promise.resolve();
};

/** The user is the organization, by its id or as `AC…`, the password one of its API keys. */
function authenticateBasic(stores: TwilioRoutesOptions['stores']): onRequestAsyncHookHandler {
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
