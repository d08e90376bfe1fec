import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isFromTrunkline } from '../../../docs/examples/signature.js';
import { ROOT } from '../../../scripts/docs/generate.js';
import { twilioSignature } from '../../../src/gateway/twilio/signature.js';
import { mediaFormatOf, readMessage } from '../../../src/gateway/agents/stream/messages.js';
import { STREAM_FORMATS } from '../../../src/agent-protocol/stream-format.js';
import { fromAgentMessage, toAgentMessage } from '../../../src/agent-protocol/agent-messages.js';
import { faultsFromAgent, faultsToAgent } from '../../support/agent/message-schema.js';

const page = readFileSync(`${ROOT}docs/agents.md`, 'utf8');

/** Blocks of JSON: one message over several lines, or one in each line. */
const examples = [...page.matchAll(/^```json ?(.*)\n([\s\S]*?)^```/gm)].flatMap(([, direction = '', block = '']) => {
  const texts = block.startsWith('{\n') ? [block] : block.trim().split('\n');
  return texts.map((text) => ({ direction, text, event: (JSON.parse(text) as { event: string }).event }));
});

const eventsOf = (schema: typeof toAgentMessage | typeof fromAgentMessage): string[] =>
  schema.options.flatMap(({ shape }) => [...shape.event.values]).sort();
const shown = (direction: string): string[] =>
  [...new Set(examples.filter((one) => one.direction === direction).map(({ event }) => event))].sort();

describe('docs/agents.md', () => {
  it.each(examples)('has an example of $event ($direction) that matches the schema', ({ direction, text }) => {
    const message: unknown = JSON.parse(text);
    if (direction === 'to-agent') return expect(faultsToAgent(message)).toBe('');
    expect([direction, faultsFromAgent(message), readMessage(text)]).toMatchObject(['from-agent', '', { ok: true }]);
  });

  it('shows every message of both directions', () => {
    expect(shown('to-agent')).toEqual(eventsOf(toAgentMessage));
    expect(shown('from-agent')).toEqual(eventsOf(fromAgentMessage));
  });

  it('has every raw format with its encoding and rate', () => {
    for (const format of STREAM_FORMATS) {
      const { encoding, sampleRate } = mediaFormatOf(format);
      expect(page).toMatch(new RegExp(`^\\| \`${format}\` \\|.*\\| \`${encoding}\`, ${String(sampleRate)} \\|$`, 'm'));
    }
  });

  it('shows how to check the signature that the gateway makes', () => {
    const url = 'wss://bot.example.com/stream?line=1';
    const signature = twilioSignature('whsec_1', url);
    expect(isFromTrunkline(url, signature, 'whsec_1')).toBe(true);
    expect(isFromTrunkline(`${url}2`, signature, 'whsec_1')).toBe(false);
    expect(isFromTrunkline(url, signature, 'whsec_2')).toBe(false);
    expect(isFromTrunkline(url, undefined, 'whsec_1')).toBe(false);
  });
});
