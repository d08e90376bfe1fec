import { describe, expect, it } from 'vitest';
import { ToolNames } from '../../../../../src/gateway/agents/provider/tools.js';
import type { SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';

function tool(name: string, schema: Partial<SpokenTool['input_schema']> = {}): SpokenTool {
  return {
    name,
    description: 'Looks something up.',
    input_schema: { example: null, properties: {}, required: [], ...schema },
  } as SpokenTool;
}

const namesOf = (tools: readonly SpokenTool[], mayTransfer = false): string[] =>
  new ToolNames(tools, mayTransfer).functions.map(({ name }) => name);

describe('the functions of a call', () => {
  it('are the agent’s tools, then our own; those of a transfer only where the agent may transfer', () => {
    expect(namesOf([tool('look_up')])).toEqual(['look_up', 'hang_up', 'do_not_call']);
    expect(namesOf([tool('look_up')], true)).toEqual(['look_up', 'hang_up', 'do_not_call', 'transfer_call', 'press_keys']);
  });

  it('describe themselves and their input', () => {
    const { functions } = new ToolNames([], true);
    for (const { description, parameters } of functions) {
      expect(description).not.toBe('');
      expect(parameters.required.every((name) => Object.hasOwn(parameters.properties, name))).toBe(true);
    }
    expect(functions.map(({ parameters }) => Object.keys(parameters.properties))).toEqual([
      ['sip_headers'],
      [],
      ['to', 'briefing', 'step', 'sip_headers'],
      ['digits'],
    ]);
  });

  it('map to their tools; our own and unknown ones to none', () => {
    const lookUp = tool('look up');
    const names = new ToolNames([lookUp], true);
    expect([names.toolOf('look_up'), names.toolOf('look up'), names.toolOf('hang_up')]).toEqual([lookUp, undefined, undefined]);
  });
});

describe('the name of a tool', () => {
  it('keeps letters, digits, _ and -, and at most 64 of them', () => {
    expect(namesOf([tool('a b/c.d-e_9Ä')])[0]).toBe('a_b_c_d-e_9_');
    expect(namesOf([tool('x'.repeat(70))])[0]).toBe('x'.repeat(64));
  });

  it('gets a number when it is taken, and functions of ours keep their names', () => {
    const names = new ToolNames([tool('a b'), tool('a_b'), tool('a.b'), tool('hang_up')], false);
    expect(names.functions.map(({ name }) => name)).toEqual(['a_b', 'a_b_2', 'a_b_3', 'hang_up_2', 'hang_up', 'do_not_call']);
    expect(names.toolOf('a_b_3')?.name).toBe('a.b');
    const long = 'x'.repeat(64);
    expect(namesOf([tool(long), tool(long)]).slice(0, 2)).toEqual([long, `${'x'.repeat(60)}_2`]);
  });
});

describe('the input of a tool', () => {
  const functionOf = (one: SpokenTool): unknown => new ToolNames([one], false).functions[0];

  it('is an object of strings: the described ones, and those that are only required', () => {
    expect(functionOf(tool('t', { properties: { city: 'Where' }, required: ['city', 'day'] }))).toEqual({
      name: 't',
      description: 'Looks something up.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string', description: 'Where' }, day: { type: 'string' } },
        required: ['city', 'day'],
      },
    });
  });

  it('has its example in the description', () => {
    expect(functionOf(tool('t', { example: { city: 'Bonn' } }))).toMatchObject({
      description: 'Looks something up.\nExample of the input: {"city":"Bonn"}',
    });
  });
});
