import { newUuid } from '../../../lib/ids.js';
import { E164_FORM, parseE164, type E164 } from '../../model/e164.js';
import { REASONS } from '../../model/reasons.js';
import { STATUS_CALLBACK_EVENTS, type StatusCallbackEvent } from '../../model/records.js';
import type { CallbackUrl, VoiceApplication } from '../../model/voice-application.js';
import { callResource } from '../../twilio/call-resource.js';
import { successAnswer } from '../answers.js';
import { identityOf } from '../auth.js';
import type { RouteContext, ZodApp } from '../context.js';
import { RING_TIMEOUT_S } from '../schemas/place-call.js';
import { accountParamsSchema, callResourceSchema, FORM_URL, placeFormSchema, type PlaceForm } from '../schemas/twilio-api.js';
import { checkDocument, common, failure, FORM, orgOf, refused, TWILIO_CODES, TwilioFailure } from '../twilio-failure.js';

const NOT_PLACED_CODES = [
  `\`${String(TWILIO_CODES.badTo)}\`: To is not valid`,
  `\`${String(TWILIO_CODES.fromNotVerified)}\`: From is not a number of yours that calls may come from`,
  `\`${String(TWILIO_CODES.notPermitted)}\`: The operator does not allow it`,
  `\`${String(TWILIO_CODES.badUrl)}\`: Url and Twiml are missing, or not valid`,
  `\`${String(TWILIO_CODES.badDocument)}\`: Twiml cannot be read`,
];

/** `POST /v1/calls` as Twilio's libraries ask for it: TwiML talks to the person who answers. Registered behind authentication. */
export function twilioPlaceCallRoute(app: ZodApp, { stores, sipPolicy, placeCall, clock, note }: RouteContext): void {
  app.post('/2010-04-01/Accounts/:accountSid/Calls.json', {
    schema: {
      ...common,
      operationId: 'createAccountCall',
      summary: "Place a call through Twilio's API",
      description:
        'Needs an operator who enabled placing calls for the organization (docs/outbound.md). TwiML runs once the call is answered.',
      consumes: [FORM],
      params: accountParamsSchema,
      body: placeFormSchema,
      response: {
        201: successAnswer("Twilio's resource of the call", callResourceSchema),
        400: failure(NOT_PLACED_CODES.join('; ')),
        ...refused,
        413: failure(`\`${String(TWILIO_CODES.badRequest)}\`: The form is larger than 200 kB`),
        415: failure(`\`${String(TWILIO_CODES.badRequest)}\`: The body is not a form`),
      },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const orgId = orgOf(request, request.params.accountSid);
      const { to, from } = numbersOf(body);
      const { org } = identityOf(request);
      const [number, listed] = await Promise.all([stores.callers.get(orgId, from), stores.doNotCall.find(orgId, [to])]);
      const trunk = number?.outbound ?? null;
      if (number === null || trunk === null || org.dialling?.callers.includes(from) === false)
        throw new TwilioFailure(
          400,
          TWILIO_CODES.fromNotVerified,
          `The number ${from} is not verified for your account: calls cannot come from it`,
        );
      const voice = voiceOf(body, org.twilio_token, (host) => sipPolicy.isWebhookHost(host));
      const refusal = placeCall.refusal({ org, number, to });
      if (refusal?.code === 'NOT_READY') throw new TwilioFailure(503, TWILIO_CODES.internal, refusal.message);
      if (refusal !== null) throw new TwilioFailure(400, TWILIO_CODES.notPermitted, refusal.message);
      if (listed.has(to)) throw new TwilioFailure(400, TWILIO_CODES.notPermitted, `Not dialled: ${to} is on the do-not-call list`);
      const callId = newUuid();
      const startedAtMs = clock.wallMs();
      const placed = placeCall.place({
        callId,
        orgId,
        from,
        to,
        trunk,
        voice,
        agent: null,
        detectAnswerer: body.MachineDetection !== undefined,
        ...limitsOf(body),
      });
      if (!placed.ok) throw new TwilioFailure(503, TWILIO_CODES.internal, REASONS[placed.error].explanation);
      // A call that was accepted has a record, also when the gateway dies now.
      await placeCall.kept(callId);
      // Beside the answer: it never rejects.
      void note(request, 'call.place', callId, Object.keys(body));
      const call = { callId, direction: 'outbound', from, to, status: 'queued', startedAtMs, answeredAtMs: null, endedAtMs: null } as const;
      return reply.code(201).send(callResource(call, orgId));
    },
  });
}

function numbersOf({ To, From }: PlaceForm): { readonly to: E164; readonly from: E164 } {
  if (To === undefined || To === '') throw new TwilioFailure(400, TWILIO_CODES.noTo, 'To: the number to call is missing');
  if (From === undefined || From === '') throw new TwilioFailure(400, TWILIO_CODES.noFrom, 'From: the number that calls is missing');
  const [to, from] = [parseE164(To), parseE164(From)];
  if (to === undefined) throw new TwilioFailure(400, TWILIO_CODES.badTo, `To: ${To} is not ${E164_FORM}`);
  if (from === undefined) throw new TwilioFailure(400, TWILIO_CODES.badFrom, `From: ${From} is not ${E164_FORM}`);
  return { to, from };
}

/** Throws `TwilioFailure`. */
function voiceOf(form: PlaceForm, token: string, isWebhookHost: (host: string) => boolean): VoiceApplication {
  const callback = (name: string, url: string | undefined, method: CallbackUrl['method'] | undefined, code: number): CallbackUrl | null => {
    if (url === undefined || url === '') return null;
    if (!FORM_URL.test(url) || !URL.canParse(url)) throw new TwilioFailure(400, code, `${name} must be an http:// or https:// URL`);
    if (isWebhookHost(new URL(url).hostname)) return { url, method: method ?? 'POST' };
    throw new TwilioFailure(400, code, `${name} is at a private, loopback or reserved address, which this service does not call`);
  };
  const { Url, Twiml, FallbackUrl, StatusCallback, SendDigits, MachineDetectionTimeout } = form;
  if (form.Record === 'true')
    throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'Record is not supported: calls are not recorded here. Leave it out');
  if (form.ApplicationSid !== undefined)
    throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'ApplicationSid is not supported: give Url or Twiml');
  if (Twiml !== undefined) checkDocument(Twiml);
  if (form.AsyncAmd === 'true')
    throw new TwilioFailure(400, TWILIO_CODES.badRequest, 'AsyncAmd is not supported: leave it out, and the document waits for AnsweredBy');
  // As at Twilio, Url is not asked when there is a document.
  const first = Twiml === undefined ? callback('Url', Url, form.Method, TWILIO_CODES.badUrl) : { twiml: Twiml };
  if (first === null) throw new TwilioFailure(400, TWILIO_CODES.badUrl, 'Url or Twiml is needed: what does the call begin with?');
  const status = callback('StatusCallback', StatusCallback, form.StatusCallbackMethod, TWILIO_CODES.badStatusCallback);
  return {
    token,
    first,
    sendDigits: SendDigits ?? null,
    ...(form.MachineDetection === undefined ? {} : { machineDetection: form.MachineDetection }),
    ...(MachineDetectionTimeout === undefined ? {} : { machineDetectionTimeoutMs: 1_000 * Number(MachineDetectionTimeout) }),
    fallback: callback('FallbackUrl', FallbackUrl, form.FallbackMethod, TWILIO_CODES.badUrl),
    statusCallback: status === null ? null : { ...status, events: eventsOf(form) },
  };
}

function eventsOf({ StatusCallbackEvent: given }: PlaceForm): readonly StatusCallbackEvent[] {
  const names = [given ?? 'completed'].flat().flatMap((text) => text.split(/[\s,]+/).filter((name) => name !== ''));
  return names.map((name) => {
    const event = STATUS_CALLBACK_EVENTS.find((one) => one === name);
    if (event !== undefined) return event;
    throw new TwilioFailure(400, TWILIO_CODES.badRequest, `StatusCallbackEvent must be of ${STATUS_CALLBACK_EVENTS.join(', ')}`);
  });
}

function limitsOf({ Timeout, TimeLimit }: PlaceForm): { readonly ringTimeoutMs: number; readonly timeLimitMs?: number } {
  const { least, most, usual } = RING_TIMEOUT_S;
  const ringTimeoutMs = 1_000 * Math.min(most, Math.max(least, Number(Timeout ?? usual)));
  return TimeLimit === undefined ? { ringTimeoutMs } : { ringTimeoutMs, timeLimitMs: 1_000 * Math.max(1, Number(TimeLimit)) };
}
