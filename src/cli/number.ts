import { Command, InvalidArgumentError } from 'commander';
import type { Client, Schemas } from '../client/index.js';
import { apiFlags, queryOf, withApi, type ApiFlags, type ApiIo } from './api.js';
import { CommandFailure, plain, printResult, table, textOf } from './command.js';

type SipRecord = Schemas['SipConfiguration'];
type Options = NonNullable<SipRecord['inbound']>['options'];

/** The parser of flags takes null for nothing given. */
type Limit = number | 'none';

interface RoutingFlags extends ApiFlags {
  readonly inbound?: boolean;
  /** attach, update: the endpoint. detach: true removes it. */
  readonly outbound?: string | boolean;
  readonly agent?: string;
  readonly allowFrom?: readonly string[];
  readonly maxCalls?: Limit;
  readonly maxCallsPerSecond?: Limit;
  readonly mediaEncryption?: string;
}

/** `trunkline number …`: the /sip routes. */
export function numberCommand(io: ApiIo): Command {
  const number = new Command('number').description('attach, change, detach and list phone numbers over the control API');
  addAttach(number, io);
  addUpdate(number, io);
  addDetach(number, io);
  addList(number, io);
  addShow(number, io);
  addCheck(number, io);
  return number;
}

function routingFlags(command: Command): Command {
  return apiFlags(command)
    .argument('<number>', 'in E.164 form, such as +15551234567')
    .option('--outbound <endpoint>', 'outbound direction: a sip: or sips: URI, or host[:port]')
    .option('--agent <id>', 'agent that answers; "none": the test line, or the operator’s bot')
    .option('--allow-from <address>', 'accepted source address or CIDR block; repeatable', (one, all: readonly string[] | undefined) => [
      ...(all ?? []),
      one,
    ])
    .option('--max-calls <n>', 'calls in progress, or "none"', limit)
    .option('--max-calls-per-second <n>', 'new calls a second, or "none"', limit)
    .option('--media-encryption <rule>', 'required or optional');
}

function limit(text: string): Limit {
  if (text === 'none') return text;
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('must be a number, or "none".');
  return Number(text);
}

function addAttach(parent: Command, io: ApiIo): void {
  const command = routingFlags(parent.command('attach').description('attach a number; inbound, unless only --outbound is set'));
  command.option('--inbound', 'attach the inbound direction too');
  command.action((number: string, flags: RoutingFlags) =>
    withApi(command, io, flags, async (api) => {
      const { outbound } = flags;
      const isInbound = flags.inbound === true || outbound === undefined || hasInbound(flags);
      const { data } = await api.POST('/sip/attach', {
        body: {
          phone_number: number,
          directions: [
            ...(isInbound ? ['inbound' as const] : []),
            ...(typeof outbound === 'string' ? [{ type: 'outbound' as const, sip_endpoint: outbound }] : []),
          ],
          service: 'sip',
          ...(isInbound ? { agent_id: agentOf(flags) ?? null, options: optionsOf(flags) } : {}),
        },
      });
      printResult(io, flags, data, `Attached ${data.phone_number} (${data.inbound_id}).`);
    }),
  );
}

function addUpdate(parent: Command, io: ApiIo): void {
  const command = routingFlags(parent.command('update').description('change an attached number; omitted settings stay'));
  command.action((number: string, flags: RoutingFlags) =>
    withApi(command, io, flags, async (api) => {
      const { outbound } = flags;
      if (outbound === undefined && !hasInbound(flags))
        throw new CommandFailure('nothing to change: set at least one option (trunkline number update --help)');
      let record = await recordOf(api, number);
      if (hasInbound(flags)) record = await updated(api, record, inboundUpdate(record, flags));
      if (typeof outbound === 'string') record = await updated(api, record, { type: 'outbound', sip_endpoint: outbound });
      printResult(io, flags, record, `Changed ${record.phone_number}.`);
    }),
  );
}

function inboundUpdate({ inbound }: SipRecord, flags: RoutingFlags) {
  const agent = agentOf(flags);
  // The API replaces options whole.
  const options = { ...inbound?.options, ...optionsOf(flags) };
  return { type: 'inbound' as const, options, ...(agent === undefined ? {} : { agent_id: agent }) };
}

type Updates = { type: 'outbound'; sip_endpoint: string } | ReturnType<typeof inboundUpdate>;

/** Sends If-Match, so that it never undoes a change made meanwhile. */
async function updated(api: Client, { phone_number, updated_at }: SipRecord, updates: Updates): Promise<SipRecord> {
  const header = { 'if-match': `"${updated_at}"` };
  return (await api.POST('/sip/update', { params: { header }, body: { phone_number, updates } })).data;
}

function addDetach(parent: Command, io: ApiIo): void {
  const command = apiFlags(
    parent.command('detach').description('detach a number in all or the named directions; calls in progress continue'),
  )
    .argument('<number>')
    .option('--inbound', 'the inbound direction')
    .option('--outbound', 'the outbound direction');
  command.action((number: string, flags: RoutingFlags) =>
    withApi(command, io, flags, async (api) => {
      const isAll = flags.inbound === undefined && flags.outbound === undefined;
      const record = isAll ? await recordOf(api, number) : null;
      const directions = (['inbound', 'outbound'] as const).filter((one) => (record === null ? flags[one] === true : record[one] !== null));
      const { data } = await api.POST('/sip/detach', { body: { phone_number: number, directions, service: 'sip' } });
      printResult(io, flags, data, `Detached ${number}: ${directions.join(' and ')}.`);
    }),
  );
}

function addList(parent: Command, io: ApiIo): void {
  const command = apiFlags(parent.command('list').description('list the numbers, sorted'))
    .option('--take <n>', 'page size, 1 to 1000', '100')
    .option('--skip <n>', 'numbers to skip', '0');
  command.action((flags: ApiFlags & { readonly take: string; readonly skip: string }) =>
    withApi(command, io, flags, async (api) => {
      const { data } = await api.GET('/sip', { params: { query: queryOf({ take: flags.take, skip: flags.skip }) } });
      const records = Array.isArray(data) ? (data as readonly SipRecord[]) : [];
      const rows = records.map((one) => [
        one.phone_number,
        one.inbound_id,
        agentText(one),
        one.outbound?.sip_endpoint ?? '-',
        one.updated_at,
      ]);
      printResult(io, flags, records, ...table(['NUMBER', 'ID', 'INBOUND', 'OUTBOUND', 'CHANGED'], rows));
    }),
  );
}

function addShow(parent: Command, io: ApiIo): void {
  const command = apiFlags(parent.command('show').description('show one number').argument('<number>', 'or its id, IN-…'));
  command.action((number: string, flags: ApiFlags) =>
    withApi(command, io, flags, async (api) => {
      const record = await recordOf(api, number);
      const { allowed_sources: sources, ...limits }: Partial<Options> = record.inbound?.options ?? {};
      const rows = [
        ['number', record.phone_number],
        ['id', record.inbound_id],
        ['inbound', agentText(record)],
        ...(sources === undefined ? [] : [['allowed from', sources.join(', ') || 'anywhere']]),
        ...Object.entries(limits).map(([name, value]) => [name.replaceAll('_', ' '), value === null ? 'no limit' : String(value)]),
        ['outbound', record.outbound?.sip_endpoint ?? '-'],
        ['made', record.created_at],
        ['changed', record.updated_at],
      ];
      printResult(io, flags, record, ...rows.map(([name = '', value = '']) => `${name.padEnd(22)}${value}`));
    }),
  );
}

function addCheck(parent: Command, io: ApiIo): void {
  const command = apiFlags(parent.command('check').description('dry run: how the gateway would decide a call now'))
    .argument('<number>')
    .option('--source <address>', "the call's source IP address")
    .option('--sdp <file>', "the call's SDP offer");
  command.action((number: string, flags: ApiFlags & { readonly source?: string; readonly sdp?: string }) =>
    withApi(command, io, flags, async (api) => {
      const sdp = flags.sdp === undefined ? {} : { sdp: await textOf(flags.sdp) };
      const source = flags.source === undefined ? {} : { source_ip: flags.source };
      const { data } = await api.POST('/sip/check', { body: { phone_number: number, ...source, ...sdp } });
      const { outcome, sip_status: status, reason, explanation } = data;
      printResult(io, flags, data, `${outcome} (${[String(status), ...(reason === null ? [] : [reason])].join(' ')}): ${explanation}`);
    }),
  );
}

async function recordOf(api: Client, id: string): Promise<SipRecord> {
  const { data } = await api.GET('/sip', { params: { query: { inbound_id: id } } });
  if (data === null || Array.isArray(data))
    throw new CommandFailure(`${plain(id)} is not attached (trunkline number list shows attached numbers)`);
  return data;
}

function hasInbound({ agent, allowFrom, maxCalls, maxCallsPerSecond, mediaEncryption }: RoutingFlags): boolean {
  return [agent, allowFrom, maxCalls, maxCallsPerSecond, mediaEncryption].some((one) => one !== undefined);
}

/** `undefined`: not given. */
function agentOf({ agent }: RoutingFlags): string | null | undefined {
  return agent === 'none' ? null : agent;
}

/** Those that are given. */
function optionsOf({ allowFrom, maxCalls, maxCallsPerSecond, mediaEncryption }: RoutingFlags) {
  return {
    ...(allowFrom === undefined ? {} : { allowed_sources: [...allowFrom] }),
    ...(maxCalls === undefined ? {} : { max_concurrent_calls: maxCalls === 'none' ? null : maxCalls }),
    ...(maxCallsPerSecond === undefined ? {} : { max_calls_per_second: maxCallsPerSecond === 'none' ? null : maxCallsPerSecond }),
    // The API says what it may be.
    ...(mediaEncryption === undefined ? {} : { media_encryption: mediaEncryption as Options['media_encryption'] }),
  };
}

function agentText({ inbound }: SipRecord): string {
  return inbound === null ? '-' : (inbound.agent_id ?? 'default agent');
}
