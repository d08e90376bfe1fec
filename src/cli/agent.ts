import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { supportedLanguages } from '../gateway/agents/languages.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord, type AgentSettings, type ToolRecord } from '../gateway/model/agent-record.js';
import { agentSettingsOf, agentSettingsSchema } from '../gateway/api/schemas/agent-settings.js';
import { newToolOf } from '../gateway/model/tool-definition.js';
import { newToolBody } from '../gateway/api/schemas/tools-api.js';
import { isoNow } from '../lib/clock.js';
import { newUuid } from '../lib/ids.js';
import { ok } from '../lib/result.js';
import { systemClock } from '../lib/system-clock.js';
import { changedFields } from '../gateway/model/agent-update.js';
import { deleteAgent, deleteTool } from '../gateway/api/naming.js';
import { MAX_TOOLS, type Stores } from '../gateway/ports/stores.js';
import { checkName, CommandFailure, findOrg, noteChange, printLine, table, withStores, type CommandIo, type Connect } from './org.js';

interface Flags {
  readonly org: string;
  readonly json?: boolean;
  readonly name?: string;
  readonly url?: string;
  readonly format?: string;
  readonly bearerTokenFile?: string;
  readonly settings?: string;
  readonly force?: boolean;
}

/** What a secret may be given by where a file is too much. */
const TOKEN_VARIABLE = 'AGENT_BEARER_TOKEN';

/** `trunkline agent …`. @param print where lines go; standard output unless a test reads them */
export function agentCommand(connect: Connect, print = printLine): Command {
  const io = { connect, print };
  const agent = new Command('agent').description('make, change, list and delete agents, whom callers talk to');
  const create = settingsFlags(agent.command('create').description('make an agent and print its id'));
  create.action((flags: Flags) =>
    withOrg(create, io, flags, async (stores, orgId) => {
      const now = isoNow(systemClock);
      const settings = settingsFrom(DEFAULT_AGENT_SETTINGS, await givenSettings(flags), flags);
      const name = checkName('an agent', flags.name ?? 'agent');
      const made: AgentRecord = { ...settings, agent_id: newUuid(), org_id: orgId, name, created_at: now, updated_at: now };
      await stores.agents.put(made);
      await noteChange(stores, orgId, 'agent.create', made.agent_id);
      tell(io, flags, made, `Agent "${name}" made: ${made.agent_id}`);
    }),
  );
  const set = settingsFlags(agent.command('set').description('change an agent; what is not given stays').argument('<agent-id>'));
  set.action((agentId: string, flags: Flags) =>
    withOrg(set, io, flags, async (stores, orgId) => {
      const given = await givenSettings(flags);
      let before: AgentRecord | undefined;
      const decide = (current: AgentRecord) => {
        before = current;
        const name = flags.name === undefined ? current.name : checkName('an agent', flags.name);
        return ok({ ...settingsFrom(current, given, flags), name });
      };
      const changed = await stores.agents.change<never>(orgId, agentId, decide);
      if (!changed.ok) throw noSuchAgent();
      await noteChange(stores, orgId, 'agent.update', agentId, changedFields(before ?? changed.value, changed.value));
      tell(io, flags, changed.value, `Agent "${changed.value.name}" changed.`);
    }),
  );
  const list = orgFlags(agent.command('list').description('show the agents of an organization'));
  list.action((flags: Flags) =>
    withOrg(list, io, flags, async (stores, orgId) => {
      const { records: agents } = await stores.agents.list(orgId);
      const rows = agents.map((one) => [one.agent_id, one.name, whereOf(one), one.language, one.updated_at]);
      tell(io, flags, agents.map(shown), ...table(['ID', 'NAME', 'WHERE', 'LANGUAGE', 'CHANGED'], rows));
    }),
  );
  const show = orgFlags(agent.command('show').description('print an agent as JSON').argument('<agent-id>'));
  show.action((agentId: string, flags: Flags) =>
    withOrg(show, io, flags, async (stores, orgId) => {
      io.print(JSON.stringify(shown(await findAgent(stores, orgId, agentId)), null, 2));
    }),
  );
  const remove = orgFlags(
    agent
      .command('delete')
      .description('delete an agent')
      .argument('<agent-id>')
      .option('--force', 'also one that a number names: it refuses calls with 480 from then on'),
  );
  remove.action((agentId: string, flags: Flags) =>
    withOrg(remove, io, flags, async (stores, orgId) => {
      const deleted = flags.force === true ? await stores.agents.delete(orgId, agentId) : await deleteAgent(stores, orgId, agentId);
      if (!deleted.ok) {
        if (typeof deleted.error === 'string') throw noSuchAgent();
        throw new CommandFailure(`${deleted.error.usedBy.join(', ')} names this agent: give the number another one first, or say --force`);
      }
      await noteChange(stores, orgId, 'agent.delete', agentId);
      tell(io, flags, { agent_id: agentId }, `Agent ${agentId} is deleted.`);
    }),
  );
  return agent;
}

/** `trunkline tool …`. @param print where lines go; standard output unless a test reads them */
export function toolCommand(connect: Connect, print = printLine): Command {
  const io = { connect, print };
  const tool = new Command('tool').description('make, list and delete custom tools, which agents name by their ids');
  const create = orgFlags(tool.command('create').description('make a tool of a JSON file and print its id').argument('<file>'));
  create.action((file: string, flags: Flags) =>
    withOrg(create, io, flags, async (stores, orgId) => {
      const parsed = newToolBody.safeParse(await jsonOf(file));
      if (!parsed.success) throw badFile(file, parsed.error.issues);
      if ((await stores.tools.count(orgId)) >= MAX_TOOLS)
        throw new CommandFailure(`an organization has at most ${String(MAX_TOOLS)} tools`);
      const now = isoNow(systemClock);
      const made: ToolRecord = { ...newToolOf(parsed.data), tool_id: `TL-${newUuid()}`, org_id: orgId, created_at: now, updated_at: now };
      await stores.tools.put(made);
      await noteChange(stores, orgId, 'tool.create', made.tool_id);
      tell(io, flags, made, `Tool "${made.tool.name}" made: ${made.tool_id}`);
    }),
  );
  const list = orgFlags(tool.command('list').description('show the tools of an organization'));
  list.action((flags: Flags) =>
    withOrg(list, io, flags, async (stores, orgId) => {
      const { records: tools } = await stores.tools.list(orgId);
      const rows = tools.map((one) => [one.tool_id, one.tool.name, one.label ?? '-', one.tool.method, one.updated_at]);
      tell(io, flags, tools, ...table(['ID', 'NAME', 'LABEL', 'METHOD', 'CHANGED'], rows));
    }),
  );
  const remove = orgFlags(tool.command('delete').description('delete a tool').argument('<tool-id>'));
  remove.action((toolId: string, flags: Flags) =>
    withOrg(remove, io, flags, async (stores, orgId) => {
      const deleted = await deleteTool(stores, orgId, toolId);
      if (!deleted.ok)
        throw new CommandFailure(
          typeof deleted.error === 'string'
            ? 'there is no tool with this id (trunkline tool list shows them)'
            : `agents name this tool: take it from them first. Their ids: ${deleted.error.usedBy.join(', ')}`,
        );
      await noteChange(stores, orgId, 'tool.delete', toolId);
      tell(io, flags, { tool_id: toolId }, `Tool ${toolId} is deleted.`);
    }),
  );
  return tool;
}

function orgFlags(command: Command): Command {
  return command.requiredOption('--org <org>', "the organization's id or name").option('--json', 'print JSON');
}

function settingsFlags(command: Command): Command {
  return orgFlags(command)
    .option('--name <name>', 'what you call it')
    .option('--url <url>', 'wss:// of the bot, or test-line; without it calls go to the operator’s default')
    .option('--format <format>', 'audio and framing of the bot: twilio, pcmu, pcma, pcm16-8000 or pcm16-16000')
    .option('--bearer-token-file <file>', `file with the bot's bearer token (or ${TOKEN_VARIABLE})`)
    .option('--settings <file>', 'JSON file with settings (docs/interface.md has them)');
}

function withOrg(
  command: Command,
  { connect }: CommandIo,
  flags: Flags,
  work: (stores: Stores, orgId: string) => Promise<void>,
): Promise<void> {
  return withStores(command, connect, async (stores) => work(stores, (await findOrg(stores, flags.org)).org_id));
}

/** What the files say. */
interface GivenSettings {
  readonly file: object;
  readonly token: string | undefined;
}

async function givenSettings({ settings, bearerTokenFile }: Flags): Promise<GivenSettings> {
  const file = settings === undefined ? {} : await jsonOf(settings);
  if (typeof file !== 'object' || file === null || Array.isArray(file)) throw new CommandFailure('the settings must be a JSON object');
  const token = bearerTokenFile === undefined ? process.env[TOKEN_VARIABLE] : (await textOf(bearerTokenFile)).trim();
  return { file, token };
}

/** The settings of the file, then the flags. */
function settingsFrom(before: AgentSettings, { file, token }: GivenSettings, flags: Flags): AgentSettings {
  // Voices are not known here: any name is taken.
  const schema = agentSettingsSchema({ languages: supportedLanguages(), voices: null });
  const stream = streamFrom(before, flags, token);
  const parsed = schema.safeParse({ ...file, ...(stream === undefined ? {} : { stream }) });
  if (!parsed.success) throw badFile(flags.settings ?? 'the settings', parsed.error.issues);
  return agentSettingsOf(before, parsed.data);
}

/** `undefined`: no flag says anything of it. */
function streamFrom({ stream }: AgentSettings, { url, format }: Flags, token: string | undefined): unknown {
  if (url === 'test-line') return url;
  const before = typeof stream === 'object' && stream !== null ? stream : undefined;
  if (url === undefined && (before === undefined || (format === undefined && token === undefined))) return undefined;
  // A token is for one address: a new one does not get the old token.
  const kept = url === undefined || url === before?.url ? before : undefined;
  return {
    ...kept,
    ...(url === undefined ? {} : { url }),
    ...(format === undefined ? {} : { format }),
    ...(token === undefined ? {} : { bearer_token: token }),
  };
}

async function findAgent(stores: Stores, orgId: string, agentId: string): Promise<AgentRecord> {
  const agent = await stores.agents.get(orgId, agentId);
  if (agent === null) throw noSuchAgent();
  return agent;
}

function noSuchAgent(): CommandFailure {
  return new CommandFailure('there is no agent with this id (trunkline agent list shows them)');
}

function tell({ print }: CommandIo, { json }: Flags, record: object, ...lines: readonly string[]): void {
  if (json === true) return print(JSON.stringify('stream' in record ? shown(record as AgentRecord) : record));
  for (const line of lines) print(line);
}

/** Everything but the bearer token. */
function shown(agent: AgentRecord): object {
  const { stream } = agent;
  return typeof stream === 'object' && stream !== null ? { ...agent, stream: { url: stream.url, format: stream.format } } : agent;
}

function whereOf({ stream }: AgentRecord): string {
  return stream === null ? 'default' : typeof stream === 'string' ? stream : stream.url;
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandFailure(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function jsonOf(file: string): Promise<unknown> {
  try {
    return JSON.parse(await textOf(file)) as unknown;
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(`${file} is no JSON`);
  }
}

function badFile(file: string, issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]): CommandFailure {
  const lines = issues.map(({ path, message }) => `  ${path.map(String).join('.') || 'the whole'}: ${message}`);
  return new CommandFailure([`${file} is not valid:`, ...lines].join('\n'));
}
