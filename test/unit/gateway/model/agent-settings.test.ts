import { describe, expect, it } from 'vitest';
import { DEFAULT_AGENT_SETTINGS, type AgentSettings } from '../../../../src/gateway/model/agent-record.js';
import { fillTexts } from '../../../../src/gateway/model/dynamic-data.js';
import { isNote, type LegEvent } from '../../../../src/gateway/model/media.js';
import { NO_TUNING } from '../../../../src/gateway/model/provider.js';
import { fieldsWithoutEffect } from '../../../../src/gateway/model/provider-fields.js';
import { flatTool, newToolOf, toolDefinition } from '../../../../src/gateway/model/tool-definition.js';
import { TOOL } from '../../../support/tool.js';

describe('settings without effect', () => {
  const by = (name: 'elevenlabs' | 'openai-realtime') => ({
    name,
    model: null,
    url: null,
    audio: 'g711' as const,
    api_key: null,
    ...NO_TUNING,
  });
  const without = (settings: Partial<AgentSettings>, hasPathways = true) =>
    fieldsWithoutEffect({ ...DEFAULT_AGENT_SETTINGS, provider: by('elevenlabs'), ...settings }, hasPathways);

  it('are those that are set although the provider decides them itself', () => {
    expect(without({ prompt: 'Hello', model: 'turbo', interruption_threshold: 50 })).toEqual([
      { field: 'model', how: '`provider.model` is the id of the agent, which has its model' },
      { field: 'interruption_threshold', how: 'the agent has its own' },
    ]);
    expect(without({ model: 'turbo', provider: by('openai-realtime') })).toEqual([]);
    expect(without({})).toEqual([]);
  });

  it('do not exist without a provider', () => {
    expect(without({ provider: null, model: 'turbo', pathway_id: 'p', dynamic_data: { any: 1 } }, false)).toEqual([]);
  });

  it('include dynamic data in another form, and pathways without a URL', () => {
    expect(without({ dynamic_data: { any: 1 } })).toEqual([{ field: 'dynamic_data', how: 'it is not in the form of requests' }]);
    expect(without({ dynamic_data: { url: 'https://x.example', response_data: { a: '$.a' } } })).toEqual([]);
    expect(without({ pathway_id: 'p' }, false)).toEqual([{ field: 'pathway_id', how: 'the organization has no pathway-url' }]);
    expect(without({ pathway_id: 'p' })).toEqual([]);
    expect(without({}, false)).toEqual([]);
  });
});

describe('the texts of an agent', () => {
  const filled = (prompt: string | null, value: unknown) => fillTexts({ prompt, first_sentence: null }, new Map([['a', value]])).prompt;

  it.each([
    ['{{a}} and {{ a }}', 'x', 'x and x'],
    ['{{a}}', { b: [1] }, '{"b":[1]}'],
    ['<{{a}}>', null, '<>'],
    ['<{{a}}>', undefined, '<>'],
    ['{{b}} {a} {{a b}}', 'x', '{{b}} {a} {{a b}}'],
    [null, 'x', null],
  ])('fill %j with %j', (prompt, value, text) => {
    expect(filled(prompt, value)).toBe(text);
  });

  it('take 10,000 characters of a value', () => {
    expect(filled('{{a}}', 'x'.repeat(10_001))).toHaveLength(10_000);
  });
});

describe('a tool definition', () => {
  const isTool = (fields: object) => toolDefinition.safeParse({ ...TOOL, ...fields }).success;
  const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x${String(n)}`, 'y']));

  it.each([
    ['http://a.example', true],
    ['HTTPS://a.example:8443/x/{{input.a}}?b={{input.b}}#c', true],
    ['https://a.example?x', true],
    ['ftp://a.example', false],
    ['x https://a.example', false],
    ['xhttps://a.example', false],
    ['https://{{input.host}}/', false],
    ['https://a.{{input.b}}', false],
    ['https:///a', false],
    ['https://user@a.example/', false],
    ['https://:secret@a.example/', false],
    ['https://a.example/ b', false],
  ])('may be at %s: %s', (url, isValid) => {
    expect(isTool({ url })).toBe(isValid);
  });

  it('may have 50 headers, and 65,536 bytes of template', () => {
    expect([isTool({ headers: named(50) }), isTool({ headers: named(51) })]).toEqual([true, false]);
    const ofBytes = (bytes: number) => ({ body: { a: 'y'.repeat(bytes - '{"a":""}'.length) } });
    expect([isTool(ofBytes(65_536)), isTool(ofBytes(65_537)), isTool({ body: { a: 'é'.repeat(32_768) } })]).toEqual([true, false, false]);
  });

  it('is the same with its fields beside its label', () => {
    const flat = flatTool.parse({ ...TOOL, label: 'Table', public: true });
    expect(newToolOf(flat)).toEqual({ label: 'Table', public: true, tool: TOOL });
    expect(newToolOf({ label: null, public: false, tool: TOOL })).toEqual({ label: null, public: false, tool: TOOL });
  });
});

it('the transcript, analysis and tokens of an agent still count after its release', () => {
  const asks = (type: string) => isNote({ type: 'agent-request', request: { type } } as LegEvent);
  expect([asks('transcript'), asks('analysis'), asks('transfer')]).toEqual([true, true, false]);
  expect([isNote({ type: 'provider-tokens', tokens: 1 }), isNote({ type: 'agent-lost' })]).toEqual([true, false]);
});
