import { Command } from 'commander';
import type { Client, Schemas } from '../client/index.js';
import { overApi, queryOf, type ApiFlags, type ApiIo } from './api.js';
import { CommandFailure, jsonOf, printResult, table, textOf } from './command.js';

type Agent = Schemas['Agent'];

interface SettingsFlags extends ApiFlags {
  readonly name?: string;
  readonly url?: string;
  readonly format?: string;
  readonly bearerTokenFile?: string;
  readonly settings?: string;
}

/** Passes the bearer token without a file. */
const TOKEN_VARIABLE = 'AGENT_BEARER_TOKEN';

/** `trunkline agent …`: the /v1/agents routes. */
export function agentCommand(io: ApiIo): Command {
  const agent = new Command('agent').description('create, change, list and delete agents over the control API; agents answer calls');
  const create = agent.command('create').description('create an agent and print its id');
  settingsFlags(create, io, async (api, flags) => {
    const { agent: made, warnings } = await api.POST('/v1/agents', { body: await bodyOf(io, flags, null) });
    printResult(io, flags, made, `Created agent "${made.name}": ${made.agent_id}`, ...warnings.map(warningLine));
  });
  const set = agent.command('set <agent-id>').description('change an agent; omitted settings stay');
  settingsFlags(set, io, async (api, flags, agent_id: string) => {
    const path = { agent_id };
    const { agent: before } = await api.GET('/v1/agents/{agent_id}', { params: { path } });
    // If-Match: the flags replace a part of the stream that was read.
    const header = { 'if-match': `"${before.updated_at}"` };
    const { warnings } = await api.POST('/v1/agents/{agent_id}', { params: { path, header }, body: await bodyOf(io, flags, before) });
    const { agent: changed } = await api.GET('/v1/agents/{agent_id}', { params: { path } });
    printResult(io, flags, changed, `Changed agent "${changed.name}".`, ...warnings.map(warningLine));
  });
  overApi(agent.command('list').description('show the agents of an organization'), io, async (api, flags: ApiFlags) => {
    const agents = await allAgents(api);
    const rows = agents.map((one) => [one.agent_id, one.name, whereOf(one), one.language, one.updated_at]);
    printResult(io, flags, agents, ...table(['ID', 'NAME', 'WHERE', 'LANGUAGE', 'CHANGED'], rows));
  });
  overApi(agent.command('show <agent-id>').description('print an agent as JSON'), io, async (api, _flags, agent_id: string) => {
    const { agent: found } = await api.GET('/v1/agents/{agent_id}', { params: { path: { agent_id } } });
    io.print(JSON.stringify(found, null, 2));
  });
  const remove = agent.command('delete <agent-id>').description('delete an agent that no number uses');
  overApi(remove, io, async (api, flags: ApiFlags, agent_id: string) => {
    await api.DELETE('/v1/agents/{agent_id}', { params: { path: { agent_id } } });
    printResult(io, flags, { agent_id }, `Deleted agent ${agent_id}.`);
  });
  return agent;
}

function settingsFlags(command: Command, io: ApiIo, work: (api: Client, flags: SettingsFlags, agentId: string) => Promise<void>): void {
  overApi(command, io, work)
    .option('--name <name>', 'its name')
    .option('--url <url>', 'wss:// of the bot, or test-line; without it calls go to the operator’s default')
    .option('--format <format>', 'audio and framing of the bot: twilio, pcmu, pcma, pcm16-8000 or pcm16-16000')
    .option('--bearer-token-file <file>', `file with the bot's bearer token (or ${TOKEN_VARIABLE})`)
    .option('--settings <file>', 'JSON file with settings (docs/interface.md has them)');
}

/** The settings of the file, then the flags. The API judges them. @param before `null`: a new agent */
async function bodyOf({ environment }: ApiIo, flags: SettingsFlags, before: Agent | null): Promise<object> {
  const { settings, bearerTokenFile, name } = flags;
  const file = settings === undefined ? {} : await jsonOf(settings);
  if (typeof file !== 'object' || file === null || Array.isArray(file)) throw new CommandFailure('the settings must be a JSON object');
  const token = bearerTokenFile === undefined ? environment[TOKEN_VARIABLE] : (await textOf(bearerTokenFile)).trim();
  const stream = streamOf(before?.stream ?? null, flags, token);
  return { ...file, ...(name === undefined ? {} : { name }), ...(stream === undefined ? {} : { stream }) };
}

/** `undefined`: no flag sets it. An omitted token stays as long as the URL does. */
function streamOf(before: Agent['stream'], { url, format }: SettingsFlags, token: string | undefined): unknown {
  if (url === 'test-line') return url;
  const current = typeof before === 'object' ? before : null;
  if (url === undefined && (current === null || (format === undefined && token === undefined))) return undefined;
  const kept = url === undefined || url === current?.url ? current : null;
  return { ...kept, ...queryOf({ url, format, bearer_token: token }) };
}

async function allAgents(api: Client): Promise<readonly Agent[]> {
  const agents: Agent[] = [];
  for (let before: string | null | undefined; before !== null;) {
    const page = await api.GET('/v1/agents', { params: { query: { limit: 500, ...(before === undefined ? {} : { before }) } } });
    agents.push(...page.agents);
    before = page.next;
  }
  return agents;
}

function whereOf({ stream }: Agent): string {
  return stream === null ? 'default' : typeof stream === 'string' ? stream : stream.url;
}

function warningLine({ path, message }: { readonly path: string; readonly message: string }): string {
  return `Note: ${path} ${message}`;
}
