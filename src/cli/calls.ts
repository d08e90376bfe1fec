import { Command, InvalidArgumentError } from 'commander';
import type { Client, Schemas } from '../client/index.js';
import { adviceOn } from '../gateway/model/advice.js';
import { REASONS, type Reason } from '../gateway/model/reasons.js';
import { overApi, queryOf, type ApiFlags, type ApiIo } from './api.js';
import { printResult, table, whole } from './command.js';

interface ListFlags extends ApiFlags {
  readonly live?: boolean;
  readonly number?: string;
  readonly from?: string;
  readonly reason?: string;
  readonly sipCallId?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly before?: string;
}

/** `trunkline calls …`: the /v1/calls routes. */
export function callsCommand(io: ApiIo): Command {
  const calls = new Command('calls').description('list, show, trace, place and stop calls over the control API');
  const list = calls.command('list').description('list ended and refused calls, newest first; or calls in progress');
  overApi(list, io, async (api, flags: ListFlags) => {
    const { live, number: phone_number, sipCallId: sip_call_id, from, since, until, limit, before } = flags;
    const query = queryOf({ phone_number, from, sip_call_id, since, until, limit: limit === undefined ? limit : Number(limit), before });
    // The API says which reasons there are.
    const reason = flags.reason === undefined ? {} : { reason: flags.reason as 'CALLER_HANGUP' };
    const { calls: found, next } = await api.GET('/v1/calls', {
      params: { query: { ...query, ...reason, ...(live === true ? { state: 'live' } : {}) } },
    });
    const rows = found.map((one) => [one.started_at, one.call_id, callersOf(one), calledOf(one), one.reason ?? one.state, secondsOf(one)]);
    const more = next === null ? [] : [`More: --before ${next}`];
    printResult(io, flags, { calls: found, next }, ...table(['BEGAN', 'ID', 'FROM', 'TO', 'WHAT', 'SECONDS'], rows), ...more);
  })
    .option('--live', 'calls in progress, on all gateways')
    .option('--number <number>', 'the called number')
    .option('--from <number>', 'the caller')
    .option('--sip-call-id <id>', "the carrier's Call-ID")
    .option('--reason <code>', 'such as CALLER_HANGUP')
    .option('--since <time>', 'began at this time or later; ISO 8601 with a time zone')
    .option('--until <time>', 'began before this time')
    .option('--limit <n>', '1 to 500', '50')
    .option('--before <cursor>', 'cursor of the next page, which the previous page prints');
  overApi(
    calls.command('show <call-id>').description('show one call, with its transcript'),
    io,
    async (api, flags: ApiFlags, call_id: string) => {
      const { call } = await api.GET('/v1/calls/{call_id}', { params: { path: { call_id } } });
      const agent = call.agent_id === null ? 'default agent' : await agentTitle(api, call.agent_id);
      printResult(io, flags, call, ...linesOf(call, agent));
    },
  );
  const trace = calls.command('trace <call-id>').description('print the trace of a call, one line an event');
  overApi(trace, io, async (api, flags: ApiFlags & { readonly full?: boolean }, call_id: string) => {
    const { trace: entries } = await api.GET('/v1/calls/{call_id}/trace', { params: { path: { call_id } } });
    const lines = entries.flatMap((entry) => traceLines(entry, flags.full === true));
    printResult(io, flags, entries, ...(entries.length === 0 ? ['No trace is stored for this call.'] : lines));
  }).option('--full', 'include the messages');
  overApi(
    calls.command('stop <call-id>').description('end a call in progress on any gateway'),
    io,
    async (api, flags: ApiFlags, call_id: string) => {
      const { status, message } = await api.POST('/v1/calls/{call_id}/stop', { params: { path: { call_id } }, body: {} });
      printResult(io, flags, { status, message }, `${message}.`);
    },
  );
  addPlace(calls, io);
  return calls;
}

interface PlaceFlags extends ApiFlags {
  readonly from: string;
  readonly agent?: string;
  readonly maxDuration?: number;
  readonly ringTimeout?: number;
  readonly detectAnswerer?: boolean;
  readonly metadata?: Record<string, unknown>;
  readonly webhook?: string;
  readonly sipHeader?: Readonly<Record<string, string>>;
  readonly idempotencyKey?: string;
}

function addPlace(calls: Command, io: ApiIo): void {
  const place = calls.command('place <number>').description('call a number; the agent talks to whoever answers (docs/outbound.md)');
  overApi(place, io, async (api, flags: PlaceFlags, phone_number: string) => {
    const { from, agent, maxDuration, ringTimeout, detectAnswerer, metadata, webhook, sipHeader, idempotencyKey: key } = flags;
    const { status, message, call_id } = await api.POST('/v1/calls', {
      params: { header: key === undefined ? {} : { 'idempotency-key': key } },
      body: {
        phone_number,
        from,
        ...(agent === undefined ? {} : { agent_id: agent }),
        ...(maxDuration === undefined ? {} : { max_duration: maxDuration }),
        ...(ringTimeout === undefined ? {} : { ring_timeout: ringTimeout }),
        ...(detectAnswerer === true ? { detect_answerer: true } : {}),
        ...(metadata === undefined ? {} : { metadata }),
        ...(webhook === undefined ? {} : { webhook }),
        ...(sipHeader === undefined ? {} : { sip_headers: sipHeader }),
      },
    });
    printResult(io, flags, { status, message, call_id }, `${message}: ${call_id}`, `Next: trunkline calls show ${call_id}`);
  })
    .requiredOption('--from <number>', 'a number of yours that is attached for outbound calls')
    .option('--agent <id>', "the agent (default: the operator's)")
    .option('--max-duration <minutes>', 'longest duration, in place of the agent’s', whole(1, 1_440))
    .option('--ring-timeout <seconds>', 'until an unanswered call is given up, 5 to 180 (default: 60)', whole(5, 180))
    .option('--detect-answerer', 'find out whether a person, a machine or a fax answers')
    .option('--metadata <json>', 'a JSON object, in place of the agent’s', jsonObject)
    .option('--webhook <url>', 'in place of the agent’s')
    .option('--sip-header <header>', 'header of the INVITE, such as "X-Ticket: 4711"; repeatable', sipHeader)
    .option('--idempotency-key <key>', 'within a day, the same key places no second call');
}

function sipHeader(text: string, before: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  const [, name, value] = /^([^:\s]+):\s*(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('must be a name and a value, such as "X-Ticket: 4711".');
  return { ...before, [name]: value };
}

function jsonObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('must be a JSON object.');
}

const ARROWS = { in: '→', out: '←' } as const;

function traceLines({ at, source, direction, summary, text }: Schemas['TraceEntry'], isFull: boolean): string[] {
  const arrow = direction === null ? ' ' : ARROWS[direction];
  const line = `${at.slice(11, 23)}  ${source.padEnd(9)} ${arrow} ${summary.replaceAll('\n', ' ')}`;
  const message = isFull && text !== null ? text.trimEnd().split(/\r?\n/) : [];
  return [line, ...message.map((one) => `    ${one}`)];
}

/** One that was deleted since has its id only. */
async function agentTitle(api: Client, agentId: string): Promise<string> {
  return api.GET('/v1/agents/{agent_id}', { params: { path: { agent_id: agentId } } }).then(
    ({ agent }) => `${agent.name} (${agentId})`,
    () => agentId,
  );
}

function linesOf(call: Schemas['CallDetail'], agent: string): string[] {
  const rows: readonly (readonly [string, string | null])[] = [
    ['id', call.call_id],
    ['state', call.state],
    ['direction', call.direction],
    ['from', callersOf(call)],
    ['to', call.to],
    ['agent', agent],
    ['reason', call.reason],
    ['reason, in detail', call.reason_detail],
    ['what to do', adviceFor(call)],
    ['answered by', call.answered_by],
    ['agent error', call.agent_error],
    ['signalling error', call.signalling_error],
    ['Q.850 cause', call.q850_cause === null ? null : String(call.q850_cause)],
    ['SIP status', call.sip_status === null ? null : String(call.sip_status)],
    ['Call-ID', call.sip_call_id],
    ['source', `${call.source.transport} ${call.source.ip}:${String(call.source.port)}`],
    [
      'media',
      call.codec === null ? null : `${call.codec}, ${call.crypto_suite ?? (call.answered_at === null ? 'not answered' : 'plain RTP')}`,
    ],
    ['began', call.started_at],
    ['answered', call.answered_at],
    ['ended', call.ended_at],
    ['seconds', secondsOf(call)],
    ['analysis', call.analysis === null ? null : JSON.stringify(call.analysis)],
  ];
  const said = call.transcript.map(
    ({ at_ms: at, speaker, text }) => `${(at / 1000).toFixed(1).padStart(8)} s  ${speaker.padEnd(6)}  ${text}`,
  );
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return [...rows.map(([name, value]) => `${name.padEnd(width)}${value ?? '-'}`), ...said];
}

/** `null`: the call goes on, or ended as calls do. A gateway of a later version may have reasons that this one does not know. */
function adviceFor({ reason }: Schemas['CallDetail']): string | null {
  if (reason === null || !Object.hasOwn(REASONS, reason)) return null;
  const known = reason as Reason;
  return REASONS[known].fault === 'nobody' ? null : adviceOn(known);
}

/** The called number; an arrow shows that we placed the call. */
function calledOf({ direction, to }: Pick<Schemas['Call'], 'direction' | 'to'>): string {
  return direction === 'outbound' ? `↗ ${to}` : to;
}

/** Calls that were refused together have no caller. */
function callersOf({ from, summed_calls: summed }: Pick<Schemas['Call'], 'from' | 'summed_calls'>): string {
  return summed === null ? from : `${String(summed)} calls`;
}

/** Seconds of talk. */
function secondsOf({ timings }: Pick<Schemas['Call'], 'timings'>): string {
  return timings.talk_ms === null ? '-' : (timings.talk_ms / 1000).toFixed(1);
}
