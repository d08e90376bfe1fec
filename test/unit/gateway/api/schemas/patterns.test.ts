import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { agentBodySchemas } from '../../../../../src/gateway/api/schemas/agents-api.js';
import { checkBodySchema } from '../../../../../src/gateway/api/schemas/sip-check.js';
import { sipRequestSchemas } from '../../../../../src/gateway/api/schemas/sip-api.js';
import { toolDefinition } from '../../../../../src/gateway/model/tool-definition.js';
import { agentUrl, providerUrl } from '../../../../../src/agent-protocol/agent-url.js';

const policy = {
  languages: ['ENG'],
  voices: [],
  maxDurationMinutes: 30,
  isWebhookHost: () => true,
  agentUrlRefusal: () => null,
};
const agent = agentBodySchemas(policy).create.shape;
const sip = sipRequestSchemas({ allowPlain: true, isWebhookHost: () => true });
const options = sip.attach.shape.options.unwrap().shape;

interface Shown {
  readonly pattern?: string;
  /** With null. */
  readonly anyOf?: readonly Shown[];
}

/** Whether a text is good, by the pattern that the document shows and by the validator. */
function verdicts(field: z.ZodType, text: string): { readonly document: boolean; readonly validator: boolean } {
  const shown = z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' }) as Shown;
  const [first] = shown.anyOf ?? [shown];
  if (first?.pattern === undefined) throw new Error('the document shows no pattern');
  return { document: new RegExp(first.pattern, 'u').test(text), validator: field.safeParse(text).success };
}

type Case = readonly [what: string, field: z.ZodType, good: readonly string[], bad: readonly string[]];

const HTTP_BAD = ['ftp://a.example/', 'http:a.example', 'https://', 'https://a.example/ x', 'a.example', 'https:///x'];
const CASES: readonly Case[] = [
  [
    'a phone number',
    sip.attach.shape.phone_number,
    ['+15550100100', ' 15550100100', '+1-(555).010.0100', '(+49)3012345678', '+-15550100100'],
    ['+49(0)3019988001', '15550100100.0', '-15550100100', '+1 5550100100', '+123456', '+05550100100', '++15550100100', ''],
  ],
  [
    'a SIP endpoint',
    sip.attach.shape.sip_endpoint,
    ['sips:pbx.example.com:5061', 'SIP:a%20b@pbx.example;transport=tls', 'pbx.example', '[2001:db8::1]:5061'],
    ['sip:a:secret@pbx.example', 'sip:pbx.example?x=1', 'a b', 'pbx.example:123456', 'sip:pbx.example;=x', 'tel:+15550100100', ''],
  ],
  ['a webhook', agent.webhook, ['https://a.example', 'HTTP://a.example/x?y@z', ''], [...HTTP_BAD, 'https://a:b@a.example/', ' ']],
  [
    'the address of a tool',
    toolDefinition.shape.url,
    ['https://a.example/{{input.id}}?day={{input.day}}', 'http://127.0.0.1:80'],
    [...HTTP_BAD, 'https://a:b@a.example/', 'https://{{input.host}}/', 'https://a.example{{input.x}}/', ''],
  ],
  [
    'a voice webhook',
    options.voice_url,
    ['https://a:b@a.example/x', 'http://a.example'],
    ['ftp://a.example/', 'http:a.example', 'a b', ''],
  ],
  [
    'the address of an agent',
    agentUrl,
    ['wss://bot.example', 'WS://10.0.0.1:80/x?y=1'],
    ['https://bot.example', 'wss://a:b@bot.example', 'wss://bot.example/#x', 'wss:bot.example', ''],
  ],
  [
    'the address of a provider',
    providerUrl(),
    ['wss://bot.example/x'],
    ['wss://bot.example/x?y=1', 'wss://bot.example?y', 'ws://a@b.example'],
  ],
  ['a name', agent.name, ['Desk', ' Desk ü 😀', 'a'], ['', ' ', '\u00a0', 'a\nb', '\tDesk', 'Desk\u0085']],
  ['the name of a tool', toolDefinition.shape.name, ['Book a_table-1.'], ['Bück', 'a\n', '']],
  [
    'a source',
    checkBodySchema.shape.source_ip,
    ['203.0.113.7', '2001:db8::1', '::ffff:10.0.0.1'],
    ['localhost', 'fe80::1%eth0', '10.0.0.0/8'],
  ],
  [
    'a source or a block',
    options.allowed_sources.unwrap().element,
    ['203.0.113.7', '203.0.113.0/24', '2001:db8::/32', '::/0'],
    ['x', '10.0.0.1/', '10.0.0.0/08', '10.0.0.0/255.0.0.0', '/8'],
  ],
  ['a listed header', options.headers_to_agent.unwrap().element, ['Subject', 'X-*', 'x-ticket'], ['*', 'X-A*', 'X A', 'l', '']],
  ['a result', toolDefinition.shape.response.unwrap().valueType, ['$', '$.data[0].id'], ['data.id', '']],
];

describe('the pattern that the document shows', () => {
  it.each(CASES)('says of %s what the validator says', (_what, field, good, bad) => {
    for (const text of good) expect([text, verdicts(field, text)]).toEqual([text, { document: true, validator: true }]);
    for (const text of bad) expect([text, verdicts(field, text)]).toEqual([text, { document: false, validator: false }]);
  });

  it.each(CASES)('has nothing for %s that other languages read in another way, or cannot read', (_what, field) => {
    expect(JSON.stringify(z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' }))).not.toMatch(/\\\\[dwpP]|\(\?[!<=]/);
  });
});
