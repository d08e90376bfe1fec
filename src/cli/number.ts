import { Command, InvalidArgumentError } from 'commander';
import type { Client, Schemas } from '../client/index.js';
import { overApi, queryOf, type ApiFlags, type ApiIo } from './api.js';
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
  readonly voiceUrl?: string;
  readonly voiceFallbackUrl?: string;
  readonly statusCallback?: string;
  readonly statusCallbackEvent?: readonly string[];
  readonly refer?: string;
  readonly reinvite?: string;
  readonly outboundReinvite?: string;
  readonly challengeUsername?: string;
  readonly challengePasswordFile?: string;
  readonly headerToAgent?: readonly string[];
  readonly headerFromAgent?: readonly string[];
  readonly outboundHeaderFromAgent?: readonly string[];
  readonly optionsInterval?: number;
  readonly username?: string;
  readonly passwordFile?: string;
  readonly realm?: string;
  readonly caFile?: string;
  readonly tlsName?: readonly string[];
  readonly certificateFile?: string;
  readonly keyFile?: string;
  readonly callerIdHeader?: string;
  readonly registrar?: string;
}

/** `trunkline number …`: the /sip routes. */
export function numberCommand(io: ApiIo): Command {
  const number = new Command('number').description('attach, change, detach and list phone numbers over the control API');
  const attach = number.command('attach').description('attach a number; inbound, unless only --outbound is set');
  routingFlags(attach, io, async (api, flags, phone_number) => {
    const { outbound } = flags;
    const isInbound = flags.inbound === true || outbound === undefined || hasInbound(flags);
    const { data } = await api.POST('/sip/attach', {
      body: {
        phone_number,
        directions: [...(isInbound ? ['inbound' as const] : []), ...(typeof outbound === 'string' ? [await trunkOf(outbound, flags)] : [])],
        service: 'sip',
        ...(isInbound ? { agent_id: agentOf(flags) ?? null, options: await withChallenge(flags, optionsOf(flags)) } : {}),
      },
    });
    printResult(io, flags, data, `Attached ${data.phone_number} (${data.inbound_id}).`);
  }).option('--inbound', 'attach the inbound direction too');
  const update = number.command('update').description('change an attached number; omitted settings stay');
  routingFlags(update, io, async (api, flags, phone_number) => {
    const { outbound } = flags;
    if (!hasInbound(flags) && !hasOutbound(flags))
      throw new CommandFailure('nothing to change: set at least one option (trunkline number update --help)');
    let record = await recordOf(api, phone_number);
    if (hasInbound(flags)) record = await updated(api, record, await inboundUpdate(record, flags));
    if (hasOutbound(flags)) {
      const endpoint = typeof outbound === 'string' ? outbound : record.outbound?.sip_endpoint;
      if (endpoint === undefined) throw new CommandFailure(`${record.phone_number} has no trunk yet: give --outbound too`);
      record = await updated(api, record, await trunkOf(endpoint, flags));
    }
    printResult(io, flags, record, `Changed ${record.phone_number}.`);
  });
  const detach = number
    .command('detach <number>')
    .description('detach a number in all or the named directions; calls in progress continue');
  overApi(detach, io, async (api, flags: RoutingFlags, phone_number: string) => {
    const isAll = flags.inbound === undefined && flags.outbound === undefined;
    const record = isAll ? await recordOf(api, phone_number) : null;
    const directions = (['inbound', 'outbound'] as const).filter((one) => (record === null ? flags[one] === true : record[one] !== null));
    const { data } = await api.POST('/sip/detach', { body: { phone_number, directions, service: 'sip' } });
    printResult(io, flags, data, `Detached ${phone_number}: ${directions.join(' and ')}.`);
  })
    .option('--inbound', 'the inbound direction')
    .option('--outbound', 'the outbound direction');
  const list = number.command('list').description('list the numbers, sorted');
  overApi(list, io, async (api, flags: ApiFlags & { readonly take: string; readonly skip: string }) => {
    const { data } = await api.GET('/sip', { params: { query: { take: Number(flags.take), skip: Number(flags.skip) } } });
    const records = Array.isArray(data) ? (data as readonly SipRecord[]) : [];
    const rows = records.map((one) => [
      one.phone_number,
      one.inbound_id,
      agentText(one),
      one.outbound?.sip_endpoint ?? '-',
      one.updated_at,
    ]);
    printResult(io, flags, records, ...table(['NUMBER', 'ID', 'INBOUND', 'OUTBOUND', 'CHANGED'], rows));
  })
    .option('--take <n>', 'page size, 1 to 1000', '100')
    .option('--skip <n>', 'numbers to skip', '0');
  const show = number.command('show').description('show one number').argument('<number>', 'or its id, IN-…');
  overApi(show, io, async (api, flags: ApiFlags, id: string) => {
    const record = await recordOf(api, id);
    const { allowed_sources: sources, ...limits }: Partial<Options> = record.inbound?.options ?? {};
    const rows = [
      ['number', record.phone_number],
      ['id', record.inbound_id],
      ['inbound', agentText(record)],
      ...(sources === undefined ? [] : [['allowed from', sources.join(', ') || 'anywhere']]),
      ...Object.entries(limits).map(([name, value]) => [name.replaceAll('_', ' '), value === null ? 'no limit' : optionText(value)]),
      ['outbound', record.outbound?.sip_endpoint ?? '-'],
      ...trunkRows(record.outbound),
      ...(record.outbound?.registration === undefined ? [] : [['registration', registrationText(record.outbound.registration)]]),
      ['made', record.created_at],
      ['changed', record.updated_at],
    ];
    printResult(io, flags, record, ...rows.map(([name = '', value = '']) => `${name.padEnd(22)}${value}`));
  });
  const check = number.command('check <number>').description('dry run: how the gateway would decide a call now');
  overApi(check, io, async (api, flags: ApiFlags & { readonly source?: string; readonly sdp?: string }, phone_number: string) => {
    const sdp = flags.sdp === undefined ? undefined : await textOf(flags.sdp);
    const { data } = await api.POST('/sip/check', { body: { phone_number, ...queryOf({ source_ip: flags.source, sdp }) } });
    const { outcome, sip_status: status, reason, explanation } = data;
    printResult(io, flags, data, `${outcome} (${[String(status), ...(reason === null ? [] : [reason])].join(' ')}): ${explanation}`);
  })
    .option('--source <address>', "the call's source IP address")
    .option('--sdp <file>', "the call's SDP offer");
  return number;
}

function routingFlags(command: Command, io: ApiIo, work: (api: Client, flags: RoutingFlags, number: string) => Promise<void>): Command {
  return overApi(command.argument('<number>', 'in E.164 form, such as +15551234567'), io, work)
    .option('--outbound <endpoint>', 'outbound direction: a sip: or sips: URI, or host[:port]')
    .option('--username <name>', 'with --outbound: answers challenges of the trunk, with --password-file')
    .option('--password-file <file>', 'file with the password, which is never shown')
    .option('--realm <realm>', 'only challenges of this realm are answered')
    .option('--ca-file <file>', "with CAs of the trunk's certificate")
    .option('--tls-name <name>', "a name in the trunk's certificate; repeatable", repeated)
    .option('--certificate-file <file>', 'certificate shown to the trunk, with --key-file')
    .option('--key-file <file>', 'its private key, which is never shown')
    .option('--caller-id-header <name>', 'From or P-Asserted-Identity')
    .option('--registrar <endpoint>', 'where the gateway registers --username')
    .option('--agent <id>', 'agent that answers; "none": the test line, or the operator’s bot')
    .option('--allow-from <address>', 'accepted source address or CIDR block; repeatable', repeated)
    .option('--max-calls <n>', 'calls in progress, or "none"', limit)
    .option('--max-calls-per-second <n>', 'new calls a second, or "none"', limit)
    .option('--media-encryption <rule>', 'required or optional')
    .option('--refer <yes|no>', 'no: this carrier takes no REFER, and transfers are placed calls', yesOrNo)
    .option('--reinvite <yes|no>', 'no: this carrier gets no re-INVITE, UPDATE or session timer', yesOrNo)
    .option('--challenge-username <name>', 'calls that come in need it, with --challenge-password-file; "none": no challenge')
    .option('--challenge-password-file <file>', 'file with its password, which is never shown')
    .option('--options-interval <seconds>', 'between two OPTIONS to the trunk, 10 to 3600; 0: none', seconds)
    .option('--outbound-reinvite <yes|no>', 'no: the trunk gets none in calls that we place', yesOrNo)
    .option('--header-to-agent <name>', 'header of the INVITE that the agent gets, X-* for all X- headers, or "none"; repeatable', repeated)
    .option('--header-from-agent <name>', 'header that an agent may set in REFER and BYE, X-*, or "none"; repeatable', repeated)
    .option('--outbound-header-from-agent <name>', 'the same in calls that we place, also in INVITE', repeated)
    .option('--voice-url <url>', 'a server that answers with TwiML, or "none"')
    .option('--voice-fallback-url <url>', 'requested when --voice-url fails, or "none"')
    .option('--status-callback <url>', 'gets a form when a call has ended, or "none"')
    .option('--status-callback-event <event>', 'initiated, ringing, answered or completed; repeatable; default completed', repeated);
}

function optionText(value: NonNullable<Options[keyof Options]>): string {
  return typeof value === 'object' && 'username' in value ? value.username : String(value);
}

/** What is long, or an object, is only said to be there. */
function trunkRows(outbound: SipRecord['outbound']): string[][] {
  const { sip_endpoint: _endpoint, registration: _registration, ...settings } = outbound ?? { sip_endpoint: '' };
  return Object.entries(settings).map(([name, value]) => {
    return [`trunk's ${name.replaceAll('_', ' ')}`, settingText(value)];
  });
}

function settingText(value: object | string | number | boolean): string {
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' || (typeof value === 'string' && value.includes('\n')) ? 'set' : String(value);
}

function registrationText({ state, status, expires_at: expires }: NonNullable<NonNullable<SipRecord['outbound']>['registration']>): string {
  return [state, ...(status === null ? [] : [String(status)]), ...(expires === null ? [] : [`until ${expires}`])].join(', ');
}

function repeated(one: string, all: readonly string[] | undefined): readonly string[] {
  return [...(all ?? []), one];
}

function namesOf(names: readonly string[]): string[] {
  return names.filter((name) => name !== 'none');
}

function yesOrNo(text: string): string {
  if (text !== 'yes' && text !== 'no') throw new InvalidArgumentError('must be yes or no.');
  return text;
}

function seconds(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('must be a number of seconds.');
  return Number(text);
}

function limit(text: string): Limit {
  if (text === 'none') return text;
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('must be a number, or "none".');
  return Number(text);
}

async function inboundUpdate({ inbound }: SipRecord, flags: RoutingFlags) {
  const agent = agentOf(flags);
  // The API replaces options whole.
  const options = await withChallenge(flags, optionsOf(flags, inbound?.options));
  return { type: 'inbound' as const, options, ...(agent === undefined ? {} : { agent_id: agent }) };
}

/** What is left out keeps its value. */
async function trunkOf(sip_endpoint: string, flags: RoutingFlags) {
  const {
    username,
    passwordFile,
    realm,
    caFile,
    tlsName,
    certificateFile,
    keyFile,
    callerIdHeader,
    registrar,
    outboundReinvite,
    outboundHeaderFromAgent,
    optionsInterval,
  } = flags;
  const [password, ca, certificate, key] = await Promise.all(
    [passwordFile, caFile, certificateFile, keyFile].map(async (file) => (file === undefined ? undefined : await textOf(file))),
  );
  if ((certificate === undefined) !== (key === undefined)) throw new CommandFailure('--certificate-file and --key-file go together');
  return {
    type: 'outbound' as const,
    sip_endpoint,
    ...queryOf({ username, password: password?.replace(/\r?\n$/, ''), realm, ca, registrar }),
    ...(tlsName === undefined ? {} : { tls_names: [...tlsName] }),
    ...(certificate === undefined || key === undefined ? {} : { client_certificate: { certificate, key } }),
    ...(optionsInterval === undefined ? {} : { options_interval_s: optionsInterval }),
    ...(outboundReinvite === undefined ? {} : { no_reinvite: outboundReinvite === 'no' }),
    ...(outboundHeaderFromAgent === undefined ? {} : { headers_from_agent: namesOf(outboundHeaderFromAgent) }),
    // The API says which there are.
    ...(callerIdHeader === undefined ? {} : { caller_id_header: callerIdHeader as 'From' }),
  };
}

type Updates = Awaited<ReturnType<typeof trunkOf | typeof inboundUpdate>>;

/** Sends If-Match, so that it never undoes a change made meanwhile. */
async function updated(api: Client, { phone_number, updated_at }: SipRecord, updates: Updates): Promise<SipRecord> {
  const header = { 'if-match': `"${updated_at}"` };
  return (await api.POST('/sip/update', { params: { header }, body: { phone_number, updates } })).data;
}

async function recordOf(api: Client, id: string): Promise<SipRecord> {
  const { data } = await api.GET('/sip', { params: { query: { inbound_id: id } } });
  if (data === null || Array.isArray(data))
    throw new CommandFailure(`${plain(id)} is not attached (trunkline number list shows attached numbers)`);
  return data;
}

function hasInbound(flags: RoutingFlags): boolean {
  const { agent, voiceUrl, voiceFallbackUrl, statusCallback, challengeUsername, challengePasswordFile } = flags;
  const given = [agent, voiceUrl, voiceFallbackUrl, statusCallback, challengeUsername, challengePasswordFile];
  return given.some((one) => one !== undefined) || Object.keys(optionsOf(flags)).length > 0;
}

function hasOutbound(flags: RoutingFlags): boolean {
  const { username, passwordFile, realm, caFile, tlsName, certificateFile, keyFile, callerIdHeader, registrar } = flags;
  const ofTrunk = [username, passwordFile, realm, caFile, tlsName, certificateFile, keyFile, callerIdHeader, registrar];
  const { outbound, outboundReinvite, outboundHeaderFromAgent, optionsInterval } = flags;
  return [...ofTrunk, outbound, outboundReinvite, outboundHeaderFromAgent, optionsInterval].some((one) => one !== undefined);
}

/** `undefined`: not given. */
function agentOf({ agent }: RoutingFlags): string | null | undefined {
  return agent === 'none' ? null : agent;
}

/** The options with those that are given. */
function optionsOf(flags: RoutingFlags, before: Partial<Options> = {}): Partial<Options> {
  const { allowFrom, maxCalls, maxCallsPerSecond, mediaEncryption, refer, reinvite } = flags;
  const { voiceUrl, voiceFallbackUrl, statusCallback, statusCallbackEvent, headerToAgent, headerFromAgent } = flags;
  const options: Partial<Options> = {
    ...before,
    ...(allowFrom === undefined ? {} : { allowed_sources: [...allowFrom] }),
    ...(maxCalls === undefined ? {} : { max_concurrent_calls: maxCalls === 'none' ? null : maxCalls }),
    ...(maxCallsPerSecond === undefined ? {} : { max_calls_per_second: maxCallsPerSecond === 'none' ? null : maxCallsPerSecond }),
    // The API says what it may be.
    ...(statusCallbackEvent === undefined
      ? {}
      : { status_callback_events: [...statusCallbackEvent] as NonNullable<Options['status_callback_events']> }),
    ...(refer === undefined ? {} : { refer: refer === 'yes' }),
    ...(reinvite === undefined ? {} : { no_reinvite: reinvite === 'no' }),
    ...(headerToAgent === undefined ? {} : { headers_to_agent: namesOf(headerToAgent) }),
    ...(headerFromAgent === undefined ? {} : { headers_from_agent: namesOf(headerFromAgent) }),
    ...(mediaEncryption === undefined ? {} : { media_encryption: mediaEncryption as Options['media_encryption'] }),
  };
  const urls = { voice_url: voiceUrl, voice_fallback_url: voiceFallbackUrl, status_callback: statusCallback };
  for (const [name, url] of Object.entries(urls) as [keyof typeof urls, string | undefined][]) {
    if (url === 'none') Reflect.deleteProperty(options, name);
    else if (url !== undefined) options[name] = url;
  }
  return options;
}

/** The options with the challenge that is given. Without a password the API keeps the one of before. */
async function withChallenge(flags: RoutingFlags, options: Partial<Options>) {
  const { challengeUsername, challengePasswordFile } = flags;
  const { challenge, ...others } = options;
  if (challengeUsername === 'none') return others;
  const username = challengeUsername ?? challenge?.username;
  if (username === undefined) {
    if (challengePasswordFile === undefined) return others;
    throw new CommandFailure('the number has no challenge yet: give --challenge-username too');
  }
  const password = challengePasswordFile === undefined ? undefined : await textOf(challengePasswordFile);
  return { ...others, challenge: { username, ...queryOf({ password: password?.replace(/\r?\n$/, '') }) } };
}

function agentText({ inbound }: SipRecord): string {
  if (inbound === null) return '-';
  return inbound.options.voice_url ?? inbound.agent_id ?? 'default agent';
}
