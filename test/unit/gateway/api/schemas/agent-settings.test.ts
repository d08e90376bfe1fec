import { describe, expect, it } from 'vitest';
import { supportedLanguages } from '../../../../../src/gateway/model/espeak-voices.js';
import { DEFAULT_AGENT_SETTINGS } from '../../../../../src/gateway/model/agent-record.js';
import { agentSettingsOf, agentSettingsSchema } from '../../../../../src/gateway/api/schemas/agent-settings.js';
import { newTool, toolDefinition } from '../../../../../src/gateway/model/tool-definition.js';

const schema = agentSettingsSchema(supportedLanguages());
const changed = (body: object, before = DEFAULT_AGENT_SETTINGS) => agentSettingsOf(before, schema.parse(body));
const TOOL_ID = 'TL-7c9e6679-7425-40de-944b-e07fc1f90ae7';
const TOOL = { name: 'book', description: '', url: 'https://customer.example/book' };

describe('the settings of an agent', () => {
  it.each([
    [{ prompt: 'Be kind.' }, { prompt: 'Be kind.' }],
    [{ voice: 'anna' }, { voice: 'anna' }],
    [{ language: 'ger' }, { language: 'GER' }],
    [{ model: 'turbo' }, { model: 'turbo' }],
    [{ first_sentence: '😀'.repeat(199) }, { first_sentence: '😀'.repeat(199) }],
    [
      { max_duration: 1_440, interruption_threshold: 50 },
      { max_duration: 1_440, interruption_threshold: 50 },
    ],
    [{ transfer_list: { sales: '+15550100300' } }, { transfer_list: { sales: '+15550100300' } }],
    [{ stream: 'test-line' }, { stream: 'test-line' }],
    [{ stream: { url: 'wss://bot.example/x' } }, { stream: { url: 'wss://bot.example/x', format: 'twilio', bearer_token: null } }],
    [
      { pronunciation_guide: [{ word: 'AI', pronunciation: 'A I', case_sensitive: 'true' }] },
      { pronunciation_guide: [{ word: 'AI', pronunciation: 'A I', case_sensitive: true, spaced: true }] },
    ],
    [
      { pronunciation_guide: [{ word: 'AI', pronunciation: 'A I', spaced: 'false' }] },
      { pronunciation_guide: [{ word: 'AI', pronunciation: 'A I', case_sensitive: false, spaced: false }] },
    ],
    [{}, {}],
  ])('accept %j', (body, settings) => {
    expect(changed(body)).toEqual({ ...DEFAULT_AGENT_SETTINGS, ...settings });
  });

  it('are reset by null, and strings by an empty one too', () => {
    const set = { prompt: 'x', voice: 'anna', webhook: 'https://x.example/', first_sentence: 'x', dynamic_data: { x: 1 }, pathway_id: 'p' };
    const before = { ...DEFAULT_AGENT_SETTINGS, ...set, max_duration: 5, language: 'GER', model: 'turbo' } as const;
    const nulls = Object.fromEntries(Object.keys(before).map((name) => [name, null]));
    expect(changed(nulls, before)).toEqual(DEFAULT_AGENT_SETTINGS);
    const empty = Object.fromEntries(Object.keys(set).map((name) => [name, '']));
    expect(changed({ ...empty, max_duration: null, language: null, model: null }, before)).toEqual(DEFAULT_AGENT_SETTINGS);
  });

  it('are reset when a pathway replaces them', () => {
    const before = {
      ...DEFAULT_AGENT_SETTINGS,
      prompt: 'x',
      first_sentence: 'x',
      tools: [TOOL_ID],
      transfer_list: ['+15550100300'],
      voice: 'anna',
    };
    expect(changed({ pathway_id: 'p', model: 'turbo' }, before)).toEqual({ ...DEFAULT_AGENT_SETTINGS, pathway_id: 'p', voice: 'anna' });
  });

  it.each([
    ['an unknown field', { promt: 'x' }],
    ['a long prompt', { prompt: 'x'.repeat(32_769) }],
    ['an unknown language', { language: 'XXX' }],
    ['an unknown model', { model: 'best' }],
    ['a first sentence of 200 characters', { first_sentence: 'x'.repeat(200) }],
    ['a webhook that is not an address', { webhook: 'ftp://x.example/' }],
    ['a webhook with a password', { webhook: 'https://a:b@x.example/' }],
    ['no minute', { max_duration: 0 }],
    ['more than a day', { max_duration: 1_441 }],
    ['half a minute', { max_duration: 0.5 }],
    ['a negative threshold', { interruption_threshold: -1 }],
    ['a tool that is not an id', { tools: ['TL-1'] }],
    ['too many tools', { tools: Array.from({ length: 51 }, () => TOOL_ID) }],
    ['an analysis of numbers', { analysis_schema: { name: 1 } }],
    ['large metadata', { metadata: { x: 'x'.repeat(65_536) } }],
    ['metadata that is a list', { metadata: [] }],
    ['an agent over https', { stream: { url: 'https://bot.example' } }],
    ['an agent with a user', { stream: { url: 'wss://a:b@bot.example' } }],
    ['an unknown format', { stream: { url: 'wss://bot.example', format: 'opus' } }],
    ['a token with a space', { stream: { url: 'wss://bot.example', bearer_token: 'a b' } }],
    ['a guide without a word', { pronunciation_guide: [{ word: '', pronunciation: 'x' }] }],
    ['a guide with a misspelt name', { pronunciation_guide: [{ word: 'a', pronunciation: 'x', spaces: true }] }],
  ])('refuse %s', (_what, body) => {
    expect(schema.safeParse(body).success).toBe(false);
  });
});

describe('a custom tool', () => {
  it('has defaults for all but its name, description and address', () => {
    expect(newTool.parse({ tool: TOOL })).toEqual({
      label: null,
      public: false,
      tool: {
        ...TOOL,
        speech: null,
        method: 'POST',
        headers: {},
        body: null,
        input_schema: { type: 'object', example: null, required: [], properties: {} },
        response: {},
        timeout: 10_000,
      },
    });
  });

  it.each([
    ['an address with placeholders', { url: 'https://customer.example/{{input.id}}?day={{input.day}}' }],
    ['its own headers', { headers: { authorization: 'Bearer x' } }],
    ['results', { response: { id: '$.data[0].id' } }],
    [
      'an input',
      { input_schema: { type: 'object', example: { day: '2026-01-01' }, required: ['day'], properties: { day: 'YYYY-MM-DD' } } },
    ],
  ])('may have %s', (_what, fields) => {
    expect(toolDefinition.parse({ ...TOOL, ...fields })).toMatchObject(fields);
  });

  it.each([
    ['a placeholder for the host', { url: 'https://{{input.host}}/' }],
    ['a placeholder behind the host', { url: 'https://customer.example{{input.x}}/' }],
    ['a password in the address', { url: 'https://a:b@customer.example/' }],
    ['another scheme', { url: 'file:///etc/passwd' }],
    ['a header of the connection', { headers: { Host: 'x' } }],
    ['a header with a line end', { headers: { x: 'a\r\nb' } }],
    ['a broken path', { response: { id: '$.[' } }],
    ['a long wait', { timeout: 60_001 }],
    ['an unknown field', { adress: 'x' }],
    ['an input that is a list', { input_schema: { type: 'array' } }],
  ])('may not have %s', (_what, fields) => {
    expect(toolDefinition.safeParse({ ...TOOL, ...fields }).success).toBe(false);
  });
});
