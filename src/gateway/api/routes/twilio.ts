import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { RouteContext, ZodApp } from '../context.js';
import { parseE164 } from '../../model/e164.js';
import type { CallInProgress, CallTarget } from '../../model/live-calls.js';
import { accountSidOf, callIdOf, orgIdOf } from '../../model/twilio-ids.js';
import type { CallQuery, Stores } from '../../ports/stores.js';
import { callResource, callsUri, endedCallSeen, twilioDate, type CallSeen } from '../../twilio/call-resource.js';
import { isSameToken } from '../../twilio/signature.js';
import { successAnswer } from '../answers.js';
import { cursorOf, memberOf } from '../cursor.js';
import { checkDocument, common, failure, FORM, orgOf, refused, sendTwilioFailure, TWILIO_CODES, TwilioFailure } from '../twilio-failure.js';
import { twilioPlaceCallRoute } from './twilio-place-call.js';
import {
  accountParamsSchema,
  accountSchema,
  callListSchema,
  callParamsSchema,
  callResourceSchema,
  DAY_OR_TIME,
  listQuerySchema,
  updateFormSchema,
  type ListQuery,
  type UpdateForm,
} from '../schemas/twilio-api.js';

/** A whole document, encoded. */
const MAX_FORM_BYTES = 200_000;
const DEFAULT_PAGE_SIZE = 50;
const DAY_MS = 86_400_000;

/** The part of Twilio's API that applications use for their calls. @param perOrg run after authentication */
export function twilioRoutes(app: ZodApp, context: RouteContext, perOrg: readonly onRequestAsyncHookHandler[]): void {
  const { stores, reads, control, clock, note, sipPolicy } = context;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    FORM,
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request: FastifyRequest, body: string, done: (error: null, form: object) => void) => done(null, formOf(body)),
  );
  app.setErrorHandler((error, request, reply) => {
    sendTwilioFailure(reply, error, request.id);
  });
  app.addHook('onRequest', authenticateBasic(stores));
  for (const hook of perOrg) app.addHook('onRequest', hook);

  const find = async (orgId: string, callId: string): Promise<CallSeen | null> => {
    const live = await control.find(orgId, callId);
    if (live !== null) return { ...live, status: live.answeredAtMs === null ? 'ringing' : 'in-progress', endedAtMs: null };
    const record = await reads.call(orgId, callId);
    return record === null ? null : endedCallSeen(record);
  };
  twilioPlaceCallRoute(app, context);

  app.get('/2010-04-01/Accounts/:accountSid.json', {
    schema: {
      ...common,
      operationId: 'fetchAccount',
      summary: "Read the organization through Twilio's API",
      description: "The account of Twilio's libraries is the organization.",
      params: accountParamsSchema,
      response: { 200: successAnswer("Twilio's resource of the account", accountSchema), ...refused },
    },
    handler: async (request) => {
      const orgId = orgOf(request, request.params.accountSid);
      const org = await stores.orgs.get(orgId);
      const date = twilioDate(Date.parse(org?.created_at ?? new Date(clock.wallMs()).toISOString()));
      const sid = accountSidOf(orgId);
      return {
        sid,
        friendly_name: org?.name ?? '',
        status: 'active' as const,
        type: 'Full' as const,
        owner_account_sid: sid,
        date_created: date,
        date_updated: date,
        uri: `/2010-04-01/Accounts/${sid}.json`,
        subresource_uris: { calls: `${callsUri(orgId)}.json` },
      };
    },
  });

  app.get('/2010-04-01/Accounts/:accountSid/Calls.json', {
    schema: {
      ...common,
      operationId: 'listAccountCalls',
      summary: "List calls through Twilio's API",
      description: 'Calls in progress, then ended ones, newest first. With a filter, a page may hold fewer than `PageSize`.',
      params: accountParamsSchema,
      querystring: listQuerySchema,
      response: {
        200: successAnswer('A page of calls', callListSchema),
        400: failure(`\`${String(TWILIO_CODES.badRequest)}\`: A filter or the page is not valid`),
        ...refused,
      },
    },
    handler: async (request) => {
      const { query } = request;
      const orgId = orgOf(request, request.params.accountSid);
      const size = Number(query.PageSize ?? DEFAULT_PAGE_SIZE);
      const page = Number(query.Page ?? 0);
      const { calls, next } = await callsOf(reads, orgId, query, size);
      const uriOf = (at: number, token: string | null): string => {
        const { Page: _page, PageSize: _size, PageToken: _token, ...filters } = query;
        const given = new URLSearchParams({ PageSize: String(size), Page: String(at) });
        for (const [name, value] of Object.entries(filters)) if (value !== undefined) given.set(name, value);
        if (token !== null) given.set('PageToken', token);
        return `${callsUri(orgId)}.json?${given.toString()}`;
      };
      return {
        calls: calls.map((call) => callResource(call, orgId)),
        page,
        page_size: size,
        start: page * size,
        end: page * size + Math.max(0, calls.length - 1),
        uri: uriOf(page, query.PageToken ?? null),
        first_page_uri: uriOf(0, null),
        previous_page_uri: null,
        next_page_uri: next === null ? null : uriOf(page + 1, next),
      };
    },
  });

  app.get('/2010-04-01/Accounts/:accountSid/Calls/:callSid.json', {
    schema: {
      ...common,
      operationId: 'fetchAccountCall',
      summary: "Read a call through Twilio's API",
      description: 'In progress or ended.',
      params: callParamsSchema,
      response: { 200: successAnswer("Twilio's resource of the call", callResourceSchema), ...refused },
    },
    handler: async (request) => {
      const { accountSid, callSid } = request.params;
      const orgId = orgOf(request, accountSid);
      const callId = callIdOf(callSid);
      const call = callId === undefined ? null : await find(orgId, callId);
      if (call === null) throw noSuchCall(orgId, callSid);
      return callResource(call, orgId);
    },
  });

  app.post('/2010-04-01/Accounts/:accountSid/Calls/:callSid.json', {
    schema: {
      ...common,
      operationId: 'updateAccountCall',
      summary: "End a call, or send it elsewhere, through Twilio's API",
      description:
        '`Status=completed` ends the call as if its agent had hung up; `canceled` does so only before the answer. `Url` and `Twiml` replace what the caller gets to hear at once.',
      consumes: [FORM],
      params: callParamsSchema,
      body: updateFormSchema,
      response: {
        200: successAnswer("Twilio's resource of the call", callResourceSchema),
        400: failure(
          `\`${String(TWILIO_CODES.badRequest)}\`: The form is not valid, or the call is not in a state for it; \`${String(TWILIO_CODES.badDocument)}\`: Twiml cannot be read`,
        ),
        ...refused,
        413: failure(`\`${String(TWILIO_CODES.badRequest)}\`: The form is larger than 200 kB`),
        415: failure(`\`${String(TWILIO_CODES.badRequest)}\`: The body is not a form`),
      },
    },
    handler: async (request) => {
      const { accountSid, callSid } = request.params;
      const orgId = orgOf(request, accountSid);
      const callId = callIdOf(callSid);
      const call = callId === undefined ? null : await control.find(orgId, callId);
      if (call === null) throw noSuchCall(orgId, callSid);
      const seen = { ...call, endedAtMs: null };
      const target = targetOf(request.body);
      if (target !== null) {
        if ('url' in target && !sipPolicy.isWebhookHost(new URL(target.url).hostname))
          throw new TwilioFailure(
            400,
            TWILIO_CODES.badRequest,
            'Url is at a private, loopback or reserved address, which this service does not call',
          );
        if (!(await control.redirect(orgId, call.callId, target)))
          throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'The call is not answered yet: it cannot be redirected');
        await note(request, 'call.redirect', call.callId);
        return callResource({ ...seen, status: 'in-progress' }, orgId);
      }
      if (request.body.Status === 'canceled' && call.answeredAtMs !== null)
        throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'The call is answered: Status must be completed');
      if (!(await control.stop(orgId, call.callId, 'AGENT_HANGUP'))) throw noSuchCall(orgId, callSid);
      await note(request, 'call.stop', call.callId);
      return callResource({ ...seen, status: call.answeredAtMs === null ? 'canceled' : 'completed', endedAtMs: clock.wallMs() }, orgId);
    },
  });
}

/** Ended calls follow those in progress: a token is `L` or `E` and the cursor in that list. */
async function callsOf(
  reads: RouteContext['reads'],
  orgId: string,
  query: ListQuery,
  size: number,
): Promise<{ readonly calls: readonly CallSeen[]; readonly next: string | null }> {
  const { list, before } = readToken(query.PageToken);
  const filter = filterOf(query);
  const is = (call: CallSeen): boolean => query.Status === undefined || call.status === query.Status;
  const calls: CallSeen[] = [];
  if (list === 'L') {
    const page = await reads.liveCalls(orgId, { ...filter, ...before, limit: size });
    calls.push(...page.calls.map(liveCallSeen).filter(is));
    if (page.next !== null) return { calls, next: `L${cursorOf('calls', page.next)}` };
    if (calls.length === size) return { calls, next: 'E' };
  }
  const page = await reads.calls(orgId, { ...filter, ...(list === 'E' ? before : {}), limit: size - calls.length });
  calls.push(...page.calls.map(endedCallSeen).filter(is));
  return { calls, next: page.next === null ? null : `E${cursorOf('calls', page.next)}` };
}

function readToken(token: string | undefined): { readonly list: 'L' | 'E'; readonly before: { readonly before?: string } } {
  if (token === undefined) return { list: 'L', before: {} };
  const list = token.startsWith('E') ? 'E' : 'L';
  if (token === 'E') return { list, before: {} };
  const member = memberOf('calls', token.slice(1));
  if (member === null) throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'PageToken is not from a next_page_uri');
  return { list, before: { before: member } };
}

function filterOf(query: ListQuery): Omit<CallQuery, 'limit'> {
  const { ParentCallSid: parentSid } = query;
  const parentCallId = parentSid === undefined ? undefined : callIdOf(parentSid);
  if (parentSid !== undefined && parentCallId === undefined)
    throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'ParentCallSid must be the sid of a call');
  const started = stretchOf(query, 'StartTime');
  const ended = stretchOf(query, 'EndTime');
  return {
    ...(query.To === undefined ? {} : { to: parseE164(query.To) ?? query.To }),
    ...(query.From === undefined ? {} : { from: query.From }),
    ...(parentCallId === undefined ? {} : { parentCallId }),
    ...(started.since === null ? {} : { sinceMs: started.since }),
    ...(started.until === null ? {} : { untilMs: started.until }),
    ...(ended.since === null ? {} : { endedSinceMs: ended.since }),
    ...(ended.until === null ? {} : { endedUntilMs: ended.until }),
  };
}

/** From `since` on and before `until`; `null`: no bound. As at Twilio, `<=` a day ends at its midnight. */
function stretchOf(query: ListQuery, name: 'StartTime' | 'EndTime'): { readonly since: number | null; readonly until: number | null } {
  const [on, from, to] = [timeOf(query, name), timeOf(query, `${name}>`), timeOf(query, `${name}<`)];
  const day = on === null ? null : Math.floor(on / DAY_MS) * DAY_MS;
  const sinces = [day, from].filter((ms) => ms !== null);
  const untils = [day === null ? null : day + DAY_MS, to === null ? null : to + 1].filter((ms) => ms !== null);
  return { since: sinces.length === 0 ? null : Math.max(...sinces), until: untils.length === 0 ? null : Math.min(...untils) };
}

/** Milliseconds of the epoch; `null`: it is not given. */
function timeOf(query: ListQuery, name: keyof ListQuery): number | null {
  const text = query[name];
  if (text === undefined) return null;
  const ms = DAY_OR_TIME.test(text) ? Date.parse(text.replace(' ', '+')) : NaN;
  if (!Number.isNaN(ms)) return ms;
  const said = `${name.replace(/[<>]/, '$&=')} must be a day, such as 2026-01-31, or a time, such as 2026-01-31T12:00:00Z`;
  throw new TwilioFailure(400, TWILIO_CODES.badRequest, said);
}

function liveCallSeen(call: CallInProgress): CallSeen {
  const { call_id: callId, direction, from, to, started_at: startedAt, answer, parent_call_id: parentCallId = null } = call;
  return {
    callId,
    direction,
    from,
    to,
    status: answer === null ? 'ringing' : 'in-progress',
    startedAtMs: Date.parse(startedAt),
    answeredAtMs: answer === null ? null : Date.parse(answer.answered_at),
    endedAtMs: null,
    parentCallId,
  };
}

/** Names that come several times have a list of values. */
function formOf(body: string): Readonly<Record<string, string | readonly string[]>> {
  const form = new URLSearchParams(body);
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => {
      const values = form.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? '') : values];
    }),
  );
}

/** `null`: the call is to end. */
function targetOf({ Url, Method = 'POST', Twiml }: UpdateForm): CallTarget | null {
  if (Twiml !== undefined) {
    checkDocument(Twiml);
    return { twiml: Twiml };
  }
  return Url === undefined ? null : { url: Url, method: Method };
}

function noSuchCall(orgId: string, callSid: string): TwilioFailure {
  return new TwilioFailure(404, TWILIO_CODES.notFound, `The requested resource ${callsUri(orgId)}/${callSid}.json was not found`);
}

/** The user is the organization, as `AC…`, the password its Twilio token. */
function authenticateBasic(stores: Pick<Stores, 'orgs'>): onRequestAsyncHookHandler {
  return async (request) => {
    const [, encoded = ''] = /^Basic +([A-Za-z0-9+/=]{1,1024})$/i.exec(request.headers.authorization ?? '') ?? [];
    const [, user = '', password = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
    const orgId = orgIdOf(user);
    const org = orgId === undefined ? null : await stores.orgs.get(orgId);
    if (org === null || org.disabled || !isSameToken(password, org.twilio_token))
      throw new TwilioFailure(401, TWILIO_CODES.unauthenticated, 'Authenticate');
    request.identity = { orgId: org.org_id, keyId: org.org_id, keyName: 'Twilio token', org };
  };
}
