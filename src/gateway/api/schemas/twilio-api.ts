import { z } from 'zod';

// As much of Twilio's REST API as ends a call: its names, its values, its times.

const ACCOUNT_SID = 'AC7c9e6679742540de944be07fc1f90ae7';
const CALL_SID = 'CA153ee54605b94d95bd6df899f082d48b';
const RFC_2822 = 'RFC 2822, UTC';

const accountSid = z.string().meta({ description: '`AC` and the hex digits of the organization’s id', examples: [ACCOUNT_SID] });
const callSid = z.string().meta({ description: '`CA` and the hex digits of the call’s id', examples: [CALL_SID] });
/** Fields that Twilio has and Trunkline has nothing to say about. */
const nothing = z.null();

export const twilioParamsSchema = z.object({ accountSid, callSid });

export const twilioFormSchema = z
  .object({ Status: z.enum(['completed', 'canceled'], 'must be completed, or canceled for a call that is not answered') })
  .meta({ description: 'Other fields are ignored', examples: [{ Status: 'completed' }] });

export const twilioCallSchema = z
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
export type TwilioCall = z.output<typeof twilioCallSchema>;

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
