import { describe, expect, it } from 'vitest';
import { newAdapter } from '../../../../../src/gateway/agents/provider/adapters.js';
import type { ProviderAction, ProviderAdapter } from '../../../../../src/gateway/agents/provider/adapter.js';
import { describeAgent } from '../../../../../src/gateway/call/agent.js';
import { DEFAULT_AGENT_SETTINGS, type AgentSettings } from '../../../../../src/gateway/model/agent-record.js';
import { NO_TUNING, type AgentProviderName } from '../../../../../src/gateway/model/provider.js';
import { PROVIDER_FIELDS, type ProviderField } from '../../../../../src/gateway/model/provider-fields.js';
import { supportedLanguages } from '../../../../../src/gateway/model/espeak-voices.js';
import { OPERATOR } from '../../../../support/providers.js';
import { NUMBER, ROUTE } from '../../../../support/route.js';
import { TOOL } from '../../../../support/tool.js';

// Each cell of the table in docs/providers.md that says "takes effect at the provider" has a row here that reads it in what is sent there.

const caller = {
  number: '+4930123456',
  display_name: null,
  asserted: [],
  diversions: [],
  history: [],
  headers: {},
  user_to_user: null,
} as never;
const GUIDE = [{ word: 'ETA', pronunciation: 'E T A', case_sensitive: false, spaced: true }];

/** What goes to the provider before and with the answer of a call, as one text, and the adapter. */
function sent(
  provider: AgentProviderName,
  settings: Partial<AgentSettings>,
): { readonly text: string; readonly adapter: ProviderAdapter | null } {
  const chosen = { name: provider, model: null, url: null, audio: 'g711', api_key: 'key', ...NO_TUNING } as const;
  const relay = { ...chosen, url: 'wss://app.example/' };
  const agent = {
    ...DEFAULT_AGENT_SETTINGS,
    agent_id: 'a',
    org_id: 'o',
    name: '',
    created_at: '',
    updated_at: '',
    ...settings,
    provider: provider === 'conversation-relay' ? relay : chosen,
  };
  const call = {
    direction: 'inbound' as const,
    callId: 'c',
    to: NUMBER,
    caller,
    identity: null,
    codec: null,
    resumed: 0,
    conversation: [],
    marks: [],
    unheardSinceMs: null,
  };
  const described = describeAgent(
    OPERATOR,
    {
      ...call,
      route: { ...ROUTE, agent },
      tools: settings.tools === undefined ? [] : [{ ...TOOL, name: 'book a table', speech: 'One moment.' }],
    },
    'own',
  );
  if (described.agent.kind === 'conversation') return { text: JSON.stringify(described.agent.customParameters), adapter: null };
  if (described.agent.kind !== 'provider') throw new Error(described.agent.kind);
  const adapter = newAdapter(described.agent);
  const begins = settings.wait_for_greeting === true ? [] : adapter.begin();
  return { text: textOf([...adapter.open([], null), ...begins]), adapter };
}

function textOf(actions: readonly ProviderAction[]): string {
  return actions.map((action) => (action.do === 'send' ? String(action.message) : JSON.stringify(action))).join('\n');
}

interface Row {
  readonly set: Partial<AgentSettings>;
  /** In what is sent with the setting, and not without it. */
  readonly has: string;
}

const PROMPT: Row = { set: { prompt: 'You sell boats.' }, has: 'You sell boats.' };
const SPOKEN: Row = { set: { pronunciation_guide: GUIDE }, has: '\\"ETA\\": \\"E T A\\"' };
const FUNCTION: Row = { set: { tools: ['TL-1'] }, has: '"name":"book_a_table"' };
const ROWS: Readonly<Record<AgentProviderName, Partial<Record<ProviderField, Row>>>> = {
  'openai-realtime': {
    prompt: PROMPT,
    voice: { set: { voice: 'marin' }, has: '"voice":"marin"' },
    language: { set: { language: 'GER' }, has: '"language":"de"' },
    model: { set: { model: 'turbo' }, has: '"model":"m-mini"' },
    interruption_threshold: { set: { interruption_threshold: 50 }, has: '"silence_duration_ms":250' },
    pronunciation_guide: SPOKEN,
    tools: FUNCTION,
  },
  deepgram: {
    prompt: PROMPT,
    voice: { set: { voice: 'aura-2-julius-de' }, has: '"speak":{"provider":{"type":"deepgram","model":"aura-2-julius-de"}}' },
    language: { set: { language: 'GER' }, has: '"language":"de"' },
    model: { set: { model: 'turbo' }, has: '"model":"m-mini"' },
    first_sentence: { set: { first_sentence: 'Good day.' }, has: '"greeting":"Good day."' },
    pronunciation_guide: SPOKEN,
    tools: FUNCTION,
  },
  'gemini-live': {
    prompt: PROMPT,
    voice: { set: { voice: 'Kore' }, has: '"voiceName":"Kore"' },
    language: { set: { language: 'GER' }, has: '"languageCodes":["de"]' },
    model: { set: { model: 'turbo' }, has: '"model":"models/m-mini"' },
    first_sentence: { set: { first_sentence: 'Good day.' }, has: 'exactly these words: \\"Good day.\\"' },
    interruption_threshold: { set: { interruption_threshold: 50 }, has: '"silenceDurationMs":250' },
    pronunciation_guide: SPOKEN,
    tools: FUNCTION,
  },
  elevenlabs: {
    metadata: { set: { metadata: { room: 'Suite 7' } }, has: '"dynamic_variables":{"room":"Suite 7"}' },
    prompt: PROMPT,
    voice: { set: { voice: 'v-1' }, has: '"voice_id":"v-1"' },
    language: { set: { language: 'GER' }, has: '"language":"de"' },
    first_sentence: { set: { first_sentence: 'Good day.' }, has: '"first_message":"Good day."' },
    wait_for_greeting: { set: { wait_for_greeting: true }, has: '"first_message":""' },
    pronunciation_guide: { ...SPOKEN, set: { prompt: 'x', pronunciation_guide: GUIDE } },
  },
  'conversation-relay': {
    prompt: { set: { prompt: 'You sell boats.' }, has: '"prompt":"You sell boats."' },
    metadata: { set: { metadata: { order: '1047' } }, has: '"order":"1047"' },
    model: { set: { model: 'turbo' }, has: '"model":"turbo"' },
    pronunciation_guide: { set: { pronunciation_guide: GUIDE }, has: 'E T A' },
  },
};
/** Nothing is sent: these are set up at the provider, whose calls the gateway takes. */
const CALLED_THERE: readonly ProviderField[] = ['tools', 'transfer_list'];

describe.each(Object.entries(PROVIDER_FIELDS) as [AgentProviderName, (typeof PROVIDER_FIELDS)[AgentProviderName]][])(
  'the table of fields for %s',
  (provider, fields) => {
    const effective = (Object.entries(fields) as [ProviderField, { readonly by: string }][]).filter(([, { by }]) => by === 'provider');

    it('has a row for each setting that takes effect there', () => {
      const rows = [...Object.keys(ROWS[provider]), ...(provider === 'elevenlabs' ? CALLED_THERE : [])];
      expect(rows.sort()).toEqual(effective.map(([field]) => field).sort());
    });

    it.each(Object.entries(ROWS[provider]))('has %s as the provider gets it', (_field, { set, has }) => {
      expect(sent(provider, set).text).toContain(has);
      expect(sent(provider, {}).text).not.toContain(has);
    });
  },
);

it('ElevenLabs runs tools of the agent and transfers when they are called there', () => {
  const { adapter } = sent('elevenlabs', { tools: ['TL-1'] });
  for (const [name, input, speech] of [
    ['book a table', { day: '2026-01-01' }, 'One moment.'],
    ['transfer_call', { to: 'sales' }, ''],
  ] as const)
    expect(
      adapter!.receive(
        JSON.stringify({ type: 'client_tool_call', client_tool_call: { tool_call_id: '1', tool_name: name, parameters: input } }),
      ),
    ).toEqual([{ do: 'run-tool', callId: '1', name, input, speech }]);
});

it('the model turbo has no tools, transfers or digits at any provider', () => {
  const of = (provider: AgentProviderName) => sent(provider, { model: 'turbo', tools: ['TL-1'] }).text;
  for (const provider of ['openai-realtime', 'deepgram', 'gemini-live'] as const)
    for (const name of ['book_a_table', 'transfer_call', 'press_keys']) expect(of(provider), provider).not.toContain(`"${name}"`);
});

it.each(supportedLanguages())('the language %s reaches each provider as a code in its form', (language) => {
  const iso = /"language":"([a-z]{2})"/.exec(sent('openai-realtime', { language }).text)?.[1];
  expect(iso).toBeDefined();
  for (const provider of ['deepgram', 'elevenlabs'] as const) expect(sent(provider, { language }).text).toContain(`"language":"${iso!}"`);
  expect(sent('gemini-live', { language }).text).toContain(`Speak ${new Intl.DisplayNames(['en'], { type: 'language' }).of(iso!)!}`);
});
