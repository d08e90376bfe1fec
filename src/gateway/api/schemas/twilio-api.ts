import { z } from 'zod';
import { E164_PATTERN } from '../../model/e164.js';

// The part of Twilio's REST API that applications use for calls: https://www.twilio.com/docs/voice/api/call-resource

export const EXAMPLE_ACCOUNT_SID = 'AC7c9e6679742540de944be07fc1f90ae7';
export const EXAMPLE_CALL_SID = 'CA153ee54605b94d95bd6df899f082d48b';
const CALLS = `/2010-04-01/Accounts/${EXAMPLE_ACCOUNT_SID}/Calls`;
const RFC_2822 = 'RFC 2822, UTC; null: not yet';
const DATE = 'Thu, 01 Jan 2026 00:00:00 +0000';
const MAX_PAGE = 1_000;
const MAX_URL = 2_000;
const MAX_TWIML = 65_536;

const accountSid = z.string().meta({ description: '`AC` and the hex digits of the organization’s id', examples: [EXAMPLE_ACCOUNT_SID] });
const callSid = z.string().meta({ description: '`CA` and the hex digits of the call’s id', examples: [EXAMPLE_CALL_SID] });
/** Fields that Twilio has and Trunkline has nothing to say about. */
const nothing = z.null().meta({ type: ['string', 'null'], description: 'Always null' });

export const accountParamsSchema = z.object({ accountSid });
export const callParamsSchema = z.object({ accountSid, callSid });

const statuses = ['queued', 'ringing', 'in-progress', 'completed', 'busy', 'failed', 'no-answer', 'canceled'] as const;

export const updateFormSchema = z
  .object({
    Status: z.enum(['completed', 'canceled'], 'must be completed, or canceled for a call that is not answered').optional(),
    Url: z
      .url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' })
      .max(MAX_URL)
      .optional(),
    Method: z.enum(['GET', 'POST'], 'must be GET or POST').optional(),
    Twiml: z.string().max(MAX_TWIML).optional(),
  })
  .refine(
    ({ Status, Url, Twiml }) => [Status, Url, Twiml].filter((one) => one !== undefined).length === 1,
    'Give one of Status, Url and Twiml',
  )
  .meta({ description: 'One of Status, Url and Twiml. Other fields are ignored', examples: [{ Status: 'completed' }] });
export type UpdateForm = z.output<typeof updateFormSchema>;

/** Of URLs that the route takes: Twilio's answer has a code for each field. */
export const FORM_URL = /^[Hh][Tt][Tt][Pp][Ss]?:\/\//;
const url = z
  .string()
  .max(MAX_URL)
  .meta({ pattern: `^$|${FORM_URL.source}` })
  .optional();
/** What the document has in place of a value that the route refuses with a reason. */
const neverTrue = { enum: ['false'] };
const method = z.enum(['GET', 'POST'], 'must be GET or POST').optional();
/** What Twilio allows at most. */
const seconds = z
  .string()
  .regex(/^[0-9]{1,6}$/, 'must be seconds')
  .optional();

/** The form of a call to be placed. Wrong values of what has a code of its own are refused by the route. */
export const placeFormSchema = z
  .object({
    To: z.string().max(200).optional().meta({ description: 'The number to call, E.164', pattern: E164_PATTERN }),
    From: z
      .string()
      .max(200)
      .optional()
      .meta({ description: 'A number of yours that is attached for outbound calls', pattern: E164_PATTERN }),
    Url: url.describe('Answers with TwiML once the call is answered'),
    Method: method,
    Twiml: z.string().max(MAX_TWIML).optional().describe('A document in place of Url'),
    FallbackUrl: url,
    FallbackMethod: method,
    StatusCallback: url,
    StatusCallbackMethod: method,
    StatusCallbackEvent: z
      .union([z.string().max(200), z.array(z.string().max(200)).max(20)])
      .optional()
      .describe('`initiated`, `ringing`, `answered`, `completed`; several times or with spaces. Default: `completed`'),
    Timeout: seconds.describe('Seconds until an unanswered call is given up: 60; less than 5 counts as 5, more than 180 as 180'),
    TimeLimit: seconds.describe("The call's length at most, in seconds"),
    MachineDetection: z
      .enum(['Enable', 'DetectMessageEnd'], 'must be Enable or DetectMessageEnd')
      .optional()
      .describe("`Url` or `Twiml` waits until it is known who answered, or until the end of a machine's greeting"),
    MachineDetectionTimeout: z
      .string()
      .regex(/^(?:0?[3-9]|[1-5][0-9])$/, 'must be from 3 to 59')
      .optional()
      .describe('Seconds after the answer until `Url` or `Twiml` begins all the same: 30'),
    AsyncAmd: z
      .enum(['true', 'false'], 'must be true or false')
      .optional()
      .meta({ ...neverTrue, description: 'true is refused: detection is never asynchronous here' }),
    Record: z
      .enum(['true', 'false'], 'must be true or false')
      .optional()
      .meta({ ...neverTrue, description: 'true is refused: calls are not recorded here' }),
    ApplicationSid: z
      .string()
      .max(200)
      .optional()
      .meta({ not: { type: 'string' }, description: 'Refused: there are no applications here' }),
    SendDigits: z
      .string()
      .regex(/^[0-9*#A-Dw]{1,32}$/i, 'must be 1 to 32 of 0-9, *, #, A-D, w')
      .optional(),
  })
  .meta({
    // The route has Twilio's answer to a form without them.
    required: ['To', 'From'],
    description: 'Other fields are ignored',
    examples: [{ To: '+15550100999', From: '+15551234567', Url: 'https://app.example.com/voice', StatusCallbackEvent: 'answered' }],
  });
export type PlaceForm = z.output<typeof placeFormSchema>;

const TIME_OF_DAY = '(?:[01][0-9]|2[0-3]):[0-5][0-9]';
/** A day stands for its midnight (UTC); the plus of a time may arrive as a space. */
export const DAY_OR_TIME = new RegExp(
  '^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])' +
    String.raw`(?:T${TIME_OF_DAY}(?::[0-5][0-9](?:\.[0-9]{1,6})?)?(?:Z|[ +-](?:[01][0-9]|2[0-3]):?[0-5][0-9]))?$`,
);
const CALL_SID = '^CA[0-9A-Fa-f]{32}$';

/** A text of the query. @param pattern for the document: what has another form has Twilio's answer */
function text(description: string, example: string, pattern?: string) {
  return z
    .string()
    .max(200)
    .optional()
    .meta({ description, examples: [example], ...(pattern === undefined ? {} : { pattern }) });
}

const moment = (description: string, example: string) => text(description, example, DAY_OR_TIME.source);

function count(least: number, most: number, description: string, example: number) {
  return z
    .string()
    .refine(
      (value) => /^[0-9]{1,9}$/.test(value) && Number(value) >= least && Number(value) <= most,
      `must be from ${String(least)} to ${String(most)}`,
    )
    .optional()
    .meta({ type: 'integer', minimum: least, maximum: most, description, examples: [example] });
}

export const listQuerySchema = z.strictObject({
  To: text('The called number', '+15550100100'),
  From: text('The calling number', '+15550100200'),
  Status: z
    .enum(statuses)
    .optional()
    .meta({ description: 'The state of the calls', examples: ['completed'] }),
  ParentCallSid: text('Calls that were dialled for the caller of this one', EXAMPLE_CALL_SID, CALL_SID),
  StartTime: moment('Calls that began on this day (UTC)', '2026-01-01'),
  'StartTime>': moment('Calls that began at this time or after it: a day (its midnight, UTC) or an ISO 8601 time', '2026-01-01'),
  'StartTime<': moment('Calls that began before this time, or just then', '2036-01-01T12:00:00Z'),
  EndTime: moment('Calls that ended on this day (UTC)', '2026-01-01'),
  'EndTime>': moment('Calls that ended at this time or after it', '2026-01-01'),
  'EndTime<': moment('Calls that ended before this time, or just then', '2036-01-01'),
  PageSize: count(1, MAX_PAGE, `1 to ${String(MAX_PAGE)}. Default: 50`, 50),
  Page: count(0, 999_999_999, 'As in next_page_uri', 0),
  PageToken: text('As in next_page_uri', 'E'),
});
export type ListQuery = z.output<typeof listQuerySchema>;

export const callResourceSchema = z
  .object({
    sid: callSid,
    account_sid: accountSid,
    parent_call_sid: callSid.nullable().meta({ description: 'The call whose caller this one was dialled for; null: none' }),
    phone_number_sid: nothing,
    from: z.string().meta({ description: 'The calling number' }),
    from_formatted: z.string(),
    to: z.string().meta({ description: 'The called number' }),
    to_formatted: z.string(),
    direction: z.enum(['inbound', 'outbound-api']),
    status: z.enum(statuses),
    date_created: z.string().meta({ description: RFC_2822 }),
    date_updated: z.string().meta({ description: RFC_2822 }),
    start_time: z.string().nullable().meta({ description: RFC_2822 }),
    end_time: z.string().nullable().meta({ description: RFC_2822 }),
    duration: z.string().nullable().meta({ description: 'Seconds since the answer; null: the call has not ended' }),
    answered_by: z.enum(['human', 'machine_start', 'fax', 'unknown']).nullable(),
    caller_name: nothing,
    forwarded_from: nothing,
    group_sid: nothing,
    trunk_sid: nothing,
    queue_time: z.literal('0'),
    price: nothing,
    price_unit: nothing,
    annotation: nothing,
    api_version: z.literal('2010-04-01'),
    uri: z.string(),
    subresource_uris: z.object({}),
  })
  .meta({
    examples: [
      {
        sid: EXAMPLE_CALL_SID,
        account_sid: EXAMPLE_ACCOUNT_SID,
        parent_call_sid: null,
        phone_number_sid: null,
        from: '+15550100200',
        from_formatted: '+15550100200',
        to: '+15550100100',
        to_formatted: '+15550100100',
        direction: 'inbound',
        status: 'completed',
        date_created: DATE,
        date_updated: DATE,
        start_time: DATE,
        end_time: DATE,
        duration: '7',
        answered_by: null,
        caller_name: null,
        forwarded_from: null,
        group_sid: null,
        trunk_sid: null,
        queue_time: '0',
        price: null,
        price_unit: null,
        annotation: null,
        api_version: '2010-04-01',
        uri: `${CALLS}/${EXAMPLE_CALL_SID}.json`,
        subresource_uris: {},
      },
    ],
  });

export const callListSchema = z
  .object({
    calls: z.array(callResourceSchema),
    page: z.int(),
    page_size: z.int(),
    start: z.int(),
    end: z.int(),
    uri: z.string(),
    first_page_uri: z.string(),
    previous_page_uri: nothing,
    next_page_uri: z.string().nullable().meta({ description: 'null: there is no other page' }),
  })
  .meta({
    examples: [
      {
        calls: [],
        page: 0,
        page_size: 50,
        start: 0,
        end: 0,
        uri: `${CALLS}.json`,
        first_page_uri: `${CALLS}.json?PageSize=50&Page=0`,
        previous_page_uri: null,
        next_page_uri: null,
      },
    ],
  });

export const accountSchema = z
  .object({
    sid: accountSid,
    friendly_name: z.string(),
    status: z.literal('active'),
    type: z.literal('Full'),
    owner_account_sid: accountSid,
    date_created: z.string().meta({ description: RFC_2822 }),
    date_updated: z.string().meta({ description: RFC_2822 }),
    uri: z.string(),
    subresource_uris: z.object({ calls: z.string() }),
  })
  .meta({
    examples: [
      {
        sid: EXAMPLE_ACCOUNT_SID,
        friendly_name: 'My company',
        status: 'active',
        type: 'Full',
        owner_account_sid: EXAMPLE_ACCOUNT_SID,
        date_created: DATE,
        date_updated: DATE,
        uri: `/2010-04-01/Accounts/${EXAMPLE_ACCOUNT_SID}.json`,
        subresource_uris: { calls: `${CALLS}.json` },
      },
    ],
  });

export const twilioErrorSchema = z
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
