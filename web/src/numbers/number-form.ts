import { ApiError, type Client, type paths, type Schemas } from '../../../src/client/index.js';
import { ifMatch, jsonOf, jsonText, numberOf, refuse, wordsOf } from '../parts/input.js';

// A number as a form has it: texts. What was not touched is not sent, and what has no field of its own is in one of JSON, so that no option
// is lost, whichever there will be.

type NumberRecord = Schemas['SipConfiguration'];
type Options = NonNullable<NumberRecord['inbound']>['options'];
type Trunk = NonNullable<NumberRecord['outbound']>;
type BodyOf<Path extends '/sip/attach' | '/sip/update'> = paths[Path]['post']['requestBody']['content']['application/json'];
type Update = BodyOf<'/sip/update'>['updates'];
/** The API judges what somebody wrote as JSON. */
type TrunkChanges = Omit<Extract<Update, { type: 'outbound' }>, 'type' | 'sip_endpoint'>;

export interface NumberForm {
  readonly phone: string;
  readonly isInbound: boolean;
  readonly isOutbound: boolean;
  /** '': the operator's default. */
  readonly agent: string;
  readonly sources: string;
  readonly calls: string;
  readonly rate: string;
  readonly encryption: string;
  /** JSON: the other options. */
  readonly options: string;
  readonly endpoint: string;
  /** JSON: the other settings of the trunk. */
  readonly trunk: string;
}

const INBOUND_FIELDS = ['agent', 'sources', 'calls', 'rate', 'encryption', 'options'] as const;
const OUTBOUND_FIELDS = ['endpoint', 'trunk'] as const;

export function formOf(number: NumberRecord | null): NumberForm {
  const { inbound = null, outbound = null } = number ?? {};
  return {
    phone: number?.phone_number ?? '',
    isInbound: number === null || inbound !== null,
    isOutbound: outbound !== null,
    agent: inbound?.agent_id ?? '',
    sources: inbound?.options.allowed_sources.join('\n') ?? '',
    calls: textOf(inbound?.options.max_concurrent_calls),
    rate: textOf(inbound?.options.max_calls_per_second),
    encryption: inbound?.options.media_encryption ?? 'required',
    options: inbound === null ? '' : jsonText(otherOptions(inbound.options)),
    endpoint: outbound?.sip_endpoint ?? '',
    trunk: outbound === null ? '' : jsonText(otherSettings(outbound)),
  };
}

/** Attaches a number, or changes one. Rejects with an `ApiError`. @param onSaved gets the record after each step */
export async function save(
  api: Client,
  number: NumberRecord | null,
  form: NumberForm,
  onSaved: (record: NumberRecord) => void = () => undefined,
): Promise<void> {
  if (!form.isInbound && !form.isOutbound) refuse('directions', 'select inbound, outbound, or both');
  if (number === null) {
    onSaved((await api.POST('/sip/attach', { body: attachBody(form) })).data);
    return;
  }
  let record = number;
  // Each step is of the version that the one before made.
  for (const updates of updatesOf(number, form)) {
    const body = { phone_number: record.phone_number, updates };
    record = (await api.POST('/sip/update', { params: { header: ifMatch(record) }, body }).catch(asOfForm)).data;
    onSaved(record);
  }
}

/** Fields of an update are those of the form. */
function asOfForm(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  const errors = error.errors.map((one) => (one.path === undefined ? one : { ...one, path: one.path.replace(/^updates\./, '') }));
  const { message, status, code, requestId, retryAfterSeconds } = error;
  throw new ApiError(message, { status, code, requestId, retryAfterSeconds, errors });
}

function attachBody(form: NumberForm): BodyOf<'/sip/attach'> {
  const { phone, isInbound, isOutbound, endpoint } = form;
  return {
    phone_number: phone,
    directions: [
      ...(isInbound ? (['inbound'] as const) : []),
      ...(isOutbound ? [{ type: 'outbound' as const, sip_endpoint: endpoint, ...changes({}, objectOf('trunk', form.trunk)) }] : []),
    ],
    service: 'sip',
    ...(isInbound ? { agent_id: agentOf(form), options: optionsOf(form) } : {}),
  };
}

/** What changed: one update for each direction. */
function updatesOf(number: NumberRecord, form: NumberForm): readonly Update[] {
  const before = formOf(number);
  const isTouched = (fields: readonly (keyof NumberForm)[]): boolean => fields.some((field) => before[field] !== form[field]);
  const updates: Update[] = [];
  if (form.isInbound && (number.inbound === null || isTouched(INBOUND_FIELDS)))
    updates.push({ type: 'inbound', agent_id: agentOf(form), options: optionsOf(form) });
  if (form.isOutbound && (number.outbound === null || isTouched(OUTBOUND_FIELDS))) {
    const settings = changes(objectOf('trunk', before.trunk), objectOf('trunk', form.trunk));
    updates.push({ type: 'outbound', sip_endpoint: form.endpoint, ...settings });
  }
  return updates;
}

/** As a whole, which is how the API takes them. */
function optionsOf({ sources, calls, rate, encryption, options }: NumberForm): Options {
  return {
    ...(objectOf('options', options) as Partial<Options>),
    allowed_sources: wordsOf(sources),
    max_concurrent_calls: numberOf('options.max_concurrent_calls', calls),
    max_calls_per_second: numberOf('options.max_calls_per_second', rate),
    media_encryption: encryption === 'optional' ? 'optional' : 'required',
  };
}

function otherOptions(options: Options): object {
  const {
    allowed_sources: _sources,
    max_concurrent_calls: _calls,
    max_calls_per_second: _rate,
    media_encryption: _media,
    ...others
  } = options;
  return others;
}

function otherSettings({
  sip_endpoint: _endpoint,
  registration: _registration,
  trunk_state: _state,
  trunk_error: _error,
  ...others
}: Trunk): object {
  return others;
}

/** What is not the same any more; null: it is gone. What is never shown, such as a password, stays. */
function changes(before: Readonly<Record<string, unknown>>, now: Readonly<Record<string, unknown>>): TrunkChanges {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(now[name]));
  return Object.fromEntries(changed.map((name) => [name, now[name] ?? null]));
}

function objectOf(path: string, text: string): Readonly<Record<string, unknown>> {
  const value = jsonOf(path, text) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) return refuse(path, 'is not a JSON object');
  return value as Readonly<Record<string, unknown>>;
}

function agentOf({ agent }: NumberForm): string | null {
  return agent === '' ? null : agent;
}

function textOf(value: number | null | undefined): string {
  return value == null ? '' : String(value);
}
