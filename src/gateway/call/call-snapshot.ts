import { z } from 'zod';
import type { CallSnapshot } from '../model/call-snapshot.js';
import type { DialPermit } from '../model/dialling.js';
import type { Route } from '../model/records.js';
import { beginningOf, type Call, type CallNotes } from './call.js';
import { answerOf } from './call-record.js';
import { resumable } from './machine.js';

// A call as it is kept for the next process of this gateway, which may be of the version before this one or after it. They read each other:
//
// - a field that is added has a default here, for what the version before wrote;
// - what is not named is left alone: fields that may be left out, and what the version after may have added;
// - a field goes in two steps: one version stops reading it, the next one stops writing it.
//
// FORM is raised only when that is not possible; then the version before ends such calls with GATEWAY_RESTARTED.

const FORM = 9;

/** Of what is checked where it comes from: records, descriptions of media, documents. */
function known<T>(): z.ZodType<T> {
  return z.custom<T>((value) => typeof value === 'object' && value !== null);
}

const epochMs = z.number().nullable();

const originSchema = z.looseObject({
  callId: z.string(),
  sipCallId: z.string(),
  direction: z.enum(['inbound', 'outbound']),
  to: z.string(),
  caller: known<Call['origin']['caller']>(),
  source: known<Call['origin']['source']>(),
  startedAtMs: z.number(),
});

const legSchema = z.looseObject({
  callId: z.string(),
  to: z.string(),
  answeredAtMs: epochMs,
  endedAtMs: epochMs,
  reason: z.custom<Call['progress']['legs'][number]['reason']>().default(null),
});

const progressSchema = z.looseObject({
  ringingAtMs: epochMs.default(null),
  answeredAtMs: epochMs,
  resumed: z.number().default(0),
  agentError: z.string().nullable().default(null),
  signallingError: z.string().nullable().default(null),
  reasonDetail: z.string().nullable().default(null),
  reports: z.number().default(0),
  legs: z.array(legSchema).default([]),
  answeredBy: z.custom<Call['progress']['answeredBy']>().default(null),
});

const notesSchema = z.looseObject({
  said: z.looseObject({
    transcript: z.array(known<CallNotes['said']['transcript'][number]>()),
    state: z.enum(['complete', 'partial', 'failed']).nullable(),
    cause: z.string().nullable(),
  }),
  analysis: z.record(z.string(), z.unknown()).nullable().default(null),
  rejected: z.record(z.string(), z.unknown()).nullable().default(null),
  marks: z.array(z.string()).default([]),
});

type State = Call['state'];

const stateSchema = z.looseObject({
  name: z.custom<State['name']>((name) => typeof name === 'string'),
  facts: known<State['facts']>(),
  route: known<Route>(),
  isStale: z.boolean().default(false),
  identity: known<NonNullable<State['identity']>>().nullable().default(null),
  agent: known<State['agent']>(),
  placing: z.looseObject({ permit: known<DialPermit>().nullable() }).nullable().default(null) as z.ZodType<State['placing']>,
  media: known<NonNullable<State['media']>>().nullable(),
  agentFacing: known<NonNullable<State['agentFacing']>>().nullable(),
  local: known<NonNullable<State['local']>>().nullable(),
  agentSideKey: known<NonNullable<State['agentSideKey']>>().nullable().default(null),
  wantedSide: known<NonNullable<State['wantedSide']>>().nullable().default(null),
  session: known<NonNullable<State['session']>>().nullable(),
  lateOffer: known<NonNullable<State['lateOffer']>>().nullable().default(null),
  exchange: known<State['exchange']>(),
  transfer: known<NonNullable<State['transfer']>>().nullable().default(null),
  referCount: z.number().default(0),
  isBriefing: z.boolean().default(false),
  second: known<NonNullable<State['second']>>().nullable().default(null),
  attempt: z.number().default(0),
  unansweredProbes: z.number().default(0),
  isMoveDue: z.boolean().default(false),
  moves: z.number().default(0),
  isLegDue: z.boolean().default(false),
  legsLost: z.number().default(0),
  isRingDue: z.boolean().default(false),
  reason: z.custom<State['reason']>().default(null),
});

const keptSchema = z.looseObject({
  form: z.literal(FORM),
  origin: originSchema,
  own: z.looseObject({ contact: z.string(), warningHost: z.string(), peerHost: z.string() }),
  call: stateSchema,
  progress: progressSchema,
  dialog: known<NonNullable<Call['dialog']>>().nullable(),
  dialledId: z.string().nullable().default(null),
  node: z.string().nullable().default(null),
  script: known<NonNullable<Call['script']>>().nullable().default(null),
  notes: notesSchema,
});

/** `null`: there is nothing to take up again. */
export function snapshotOf(call: Call): CallSnapshot | null {
  const { origin, state, dialog, notes, ...parts } = call;
  const permit = state.placing?.permit ?? null;
  const { route } = state;
  if (route === null || (dialog === null && permit === null)) return null;
  return {
    call_id: origin.callId,
    org_id: route.org.org_id,
    phone_number: route.number.phone_number,
    call: beginningOf(origin),
    dial: permit === null ? null : { permit, to: origin.to },
    answer: dialog === null ? null : answerOf(call),
    state: { form: FORM, origin, ...parts, dialog, notes: storable(notes, route), call: state },
  };
}

/** Without the transcript of an organization that keeps none. */
function storable(notes: CallNotes, { org }: Route): CallNotes {
  return org.transcript_days !== 0 ? notes : { ...notes, said: { ...notes.said, transcript: [] } };
}

/** What another process kept of a call; `undefined`: it cannot be read. */
export function readSnapshot({ state: kept }: Pick<CallSnapshot, 'state'>): Call | undefined {
  const read = keptSchema.safeParse(kept);
  if (!read.success) return undefined;
  const { form: _form, call: state, ...parts } = read.data;
  return { ...parts, state };
}

/** The call as another process goes on with it. */
export function resumedCall(kept: Call): Call {
  const { progress } = kept;
  return { ...kept, state: resumable(kept.state), progress: { ...progress, resumed: progress.resumed + 1 } };
}
