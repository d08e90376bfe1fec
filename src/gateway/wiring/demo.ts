import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseE164, type E164 } from '../model/e164.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../model/agent-record.js';
import { DEFAULT_INBOUND_OPTIONS } from '../model/records.js';
import { isoNow, type Clock } from '../../lib/clock.js';
import { newToken, newUuid } from '../../lib/ids.js';
import type { Stores } from '../ports/stores.js';
import { writePrivateFile } from '../../config/data-dir.js';

/** What a newcomer needs to place a first call and to try the API. */
export interface Demo {
  readonly api_key: string;
  readonly org_id: string;
  readonly agent_id: string;
  readonly phone_number: string;
}

export interface DemoOptions {
  readonly stores: Pick<Stores, 'orgs' | 'keys' | 'agents' | 'numbers'>;
  /** Where `demo.json` is kept. */
  readonly dataDir: string;
  readonly clock: Clock;
}

const FILE_NAME = 'demo.json';
const ORG_NAME = 'Demo';
const DEMO_NUMBER = '+15550100100';
const GREETING =
  'Hello, and welcome to Trunkline. This is your test line: the call reached it over an encrypted trunk. ' +
  'Say something or press some keys; hang up whenever you like.';

const PROMPT =
  'You are the test line of Trunkline. Greet the caller, say back what you hear, and read out the keys that the caller presses. ' +
  'Say goodbye when the caller does.';

const fileSchema = z.object({ api_key: z.string().startsWith('tl_'), org_id: z.uuid(), agent_id: z.uuid() });
type DemoFile = z.output<typeof fileSchema>;

/**
 * Makes the demo organization with its key, agent and number, unless it was made before: then whatever was changed since
 * stays changed. A store that lost its data gets the same ids and the same key again.
 */
export async function ensureDemo(options: DemoOptions): Promise<Demo> {
  const { stores, dataDir } = options;
  const path = join(dataDir, FILE_NAME);
  let file = await readDemoFile(path);
  if (file === null) {
    // The file first: a start that is cut short here goes on with the same ids at the next one.
    file = (await adoptDemo(options)) ?? { api_key: `tl_${newToken(32)}`, org_id: newUuid(), agent_id: newUuid() };
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    writePrivateFile(path, `${JSON.stringify(file, null, 2)}\n`);
  }
  // The organization is made last, so that one that is there says that everything was made.
  if ((await stores.orgs.get(file.org_id)) === null) await makeDemo(options, file);
  return { ...file, phone_number: DEMO_NUMBER };
}

async function makeDemo({ stores, clock }: DemoOptions, { api_key, org_id, agent_id }: DemoFile): Promise<void> {
  await stores.agents.put(demoAgent(org_id, agent_id, isoNow(clock)));
  await stores.keys.restore(org_id, 'demo', api_key);
  // Taken: somebody else's number by now, and it stays theirs.
  await stores.numbers.attach(org_id, demoNumber(), { inbound: { agent_id, options: DEFAULT_INBOUND_OPTIONS } });
  await stores.orgs.create({ name: ORG_NAME, sip_enabled: true, org_id });
}

/** The demo organization of a data directory whose `demo.json` was lost, with a new key: the old one is nowhere in clear. */
async function adoptDemo({ stores }: DemoOptions): Promise<DemoFile | null> {
  for (const org of await stores.orgs.list()) {
    if (org.name !== ORG_NAME) continue;
    const record = await stores.numbers.get(org.org_id, demoNumber());
    const agentId = record?.inbound?.agent_id ?? (await stores.agents.list(org.org_id, { limit: 1 })).records[0]?.agent_id;
    if (record === null || agentId === undefined) continue;
    const { key } = await stores.keys.create(org.org_id, 'demo');
    return { api_key: key, org_id: org.org_id, agent_id: agentId };
  }
  return null;
}

function demoAgent(orgId: string, agentId: string, now: string): AgentRecord {
  return {
    agent_id: agentId,
    org_id: orgId,
    ...DEFAULT_AGENT_SETTINGS,
    name: 'Test line',
    prompt: PROMPT,
    first_sentence: GREETING,
    created_at: now,
    updated_at: now,
  };
}

function demoNumber(): E164 {
  const number = parseE164(DEMO_NUMBER);
  if (number === undefined) throw new Error(`${DEMO_NUMBER} is not a phone number`);
  return number;
}

/** `null`: there is none. A file that is damaged is an error: overwriting it would lose the key. */
async function readDemoFile(path: string): Promise<DemoFile | null> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  try {
    return fileSchema.parse(JSON.parse(text));
  } catch {
    // Without the cause, which may quote the key.
    throw new Error(`${path} is damaged: restore it, or delete it to get a new demo key`);
  }
}
