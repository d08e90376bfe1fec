import { parseJson } from '../../../lib/bounded-json.js';
import { withoutNulls } from '../../../lib/without-nulls.js';
import { z } from 'zod';
import type { CallerInput } from '../../model/conversation.js';
import type { ConversationSettings } from '../../model/agent.js';

// Messages of Twilio's ConversationRelay: https://www.twilio.com/docs/voice/conversationrelay/websocket-messages

export const MAX_HANDOFF_CHARACTERS = 32_768;

/** As in the attributes: true is `any`, false `none`. */
const callerInput = z.union([z.boolean(), z.enum(['none', 'dtmf', 'speech', 'any', 'true', 'false'])]).transform((value): CallerInput => {
  if (value === true || value === 'true') return 'any';
  return value === false || value === 'false' ? 'none' : value;
});
/** Applications write `"last": "true"` too. */
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]);
const optional = { interruptible: callerInput.optional(), preemptible: flag.optional() };

/** What an application sends. Fields that are not named here are ignored. */
const fromApplication = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('text'),
    token: z.string().max(100_000),
    last: flag.default(false),
    lang: z.string().max(35).optional(),
    ...optional,
  }),
  z.object({
    type: z.literal('play'),
    source: z.url({ protocol: /^https?$/ }).max(2_048),
    loop: z.int().min(0).max(1_000).default(1),
    ...optional,
  }),
  z.object({ type: z.literal('sendDigits'), digits: z.string().regex(/^[0-9*#A-Dw]{1,64}$/i, 'must be 1 to 64 of 0-9, *, #, A-D, w') }),
  z.object({
    type: z.literal('language'),
    ttsLanguage: z.string().max(35).optional(),
    transcriptionLanguage: z.string().max(35).optional(),
  }),
  z.object({ type: z.literal('end'), handoffData: z.string().max(MAX_HANDOFF_CHARACTERS).optional() }),
]);
export type FromApplication = z.output<typeof fromApplication>;

/** Reads a message; the error is a sentence for the person who wrote the application. */
export function readMessage(text: string): FromApplication | { readonly type: 'invalid'; readonly problem: string } {
  const read = parseJson(text);
  const parsed = fromApplication.safeParse(read.ok ? withoutNulls(read.value) : undefined);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return {
    type: 'invalid',
    problem: `The message is not valid: ${issue === undefined ? 'unknown' : `${issue.path.join('.')}: ${issue.message}`}`,
  };
}

/** What is sent to an application. */
export type ToApplication =
  | { readonly type: 'prompt'; readonly voicePrompt: string; readonly lang: string; readonly last: boolean }
  | { readonly type: 'interrupt'; readonly utteranceUntilInterrupt: string; readonly durationUntilInterruptMs: number }
  | { readonly type: 'dtmf'; readonly digit: string }
  | { readonly type: 'error'; readonly description: string };

/** The first message. */
export function setupMessage(settings: ConversationSettings): string {
  const { sessionId, accountSid, callSid, direction, from, to, forwardedFrom, callerName, customParameters } = settings;
  return JSON.stringify({
    type: 'setup',
    sessionId,
    accountSid,
    parentCallSid: '',
    callSid,
    from,
    to,
    forwardedFrom: forwardedFrom ?? '',
    callType: 'PSTN',
    callerName: callerName ?? '',
    direction,
    callStatus: 'IN-PROGRESS',
    customParameters,
  });
}
