import { describe, expect, it } from 'vitest';
import { agentSettingsSchema } from '../../../../../src/gateway/api/schemas/agent-settings.js';
import { entriesOf, pathText } from '../../../../../src/gateway/api/validation.js';
import { sipRequestSchemas } from '../../../../../src/gateway/api/schemas/sip-api.js';

const schemas = sipRequestSchemas({ allowPlain: false, isWebhookHost: (host) => host !== '10.0.0.1' });
const phone_number = '+15551234567';
const attach = { phone_number, directions: ['inbound'], service: 'sip' };
const update = (updates: unknown) => ({ phone_number, updates });
const detach = (directions: unknown) => ({ phone_number, directions, service: 'sip' });

function pathsOf(schema: keyof typeof schemas, body: unknown): (string | undefined)[] {
  const result = schemas[schema].safeParse(body);
  return result.success ? [] : entriesOf(result.error.issues).map((entry) => entry.path);
}

const ATTACH: [string, unknown, (string | undefined)[]][] = [
  ['nothing', {}, ['phone_number', 'directions', 'service']],
  ['null', null, [undefined]],
  ['text', 'sip', [undefined]],
  ['a number that is a number', { ...attach, phone_number: 15551234567 }, ['phone_number']],
  ['a number with letters', { ...attach, phone_number: '+1555CALLNOW' }, ['phone_number']],
  ['a number that begins with 0', { ...attach, phone_number: '05551234567' }, ['phone_number']],
  ['6 digits', { ...attach, phone_number: '123456' }, ['phone_number']],
  ['16 digits', { ...attach, phone_number: '1234567890123456' }, ['phone_number']],
  ['directions as text', { ...attach, directions: 'inbound' }, ['directions']],
  ['no direction', { ...attach, directions: [] }, ['directions']],
  ['three directions', { ...attach, directions: ['inbound', 'outbound', 'inbound'], sip_endpoint: 'a.b' }, ['directions']],
  ['an unknown direction', { ...attach, directions: ['sideways'] }, ['directions[0]']],
  ['an unknown direction second', { ...attach, directions: ['inbound', null] }, ['directions[1]']],
  ['an unknown type', { ...attach, directions: [{ type: 'sideways' }] }, ['directions[0].type']],
  ['no type', { ...attach, directions: [{}] }, ['directions[0].type']],
  ['an unknown field of a direction', { ...attach, directions: [{ type: 'inbound', port: 1 }] }, ['directions[0].port']],
  ['a direction twice', { ...attach, directions: ['inbound', 'inbound'] }, ['directions[1]']],
  ['a direction twice, in both forms', { ...attach, directions: ['inbound', { type: 'inbound' }] }, ['directions[1]']],
  ['outbound without endpoint', { ...attach, directions: ['outbound'] }, ['sip_endpoint']],
  ['outbound object without endpoint', { ...attach, directions: ['inbound', { type: 'outbound' }] }, ['sip_endpoint']],
  ['an endpoint at inbound only', { ...attach, directions: [{ type: 'inbound', sip_endpoint: 'a.b' }, 'outbound'] }, ['sip_endpoint']],
  ['a bad endpoint', { ...attach, sip_endpoint: 'a b' }, ['sip_endpoint']],
  ['an endpoint of null', { ...attach, sip_endpoint: null }, ['sip_endpoint']],
  [
    'a bad endpoint in its object',
    { ...attach, directions: [{ type: 'outbound', sip_endpoint: 'a\r\nb' }] },
    ['directions[0].sip_endpoint'],
  ],
  ['another service', { ...attach, service: 'fax' }, ['service']],
  ['service in capitals', { ...attach, service: 'SIP' }, ['service']],
  ['an agent that is no id', { ...attach, agent_id: 'front desk' }, ['agent_id']],
  ['options of null', { ...attach, options: null }, ['options']],
  ['an unknown option', { ...attach, options: { codec: 'PCMU' } }, ['options.codec']],
  [
    'bad sources',
    { ...attach, options: { allowed_sources: ['10.0.0.1', 'x', 5] } },
    ['options.allowed_sources[1]', 'options.allowed_sources[2]'],
  ],
  ['too many sources', { ...attach, options: { allowed_sources: Array(257).fill('10.0.0.1') } }, ['options.allowed_sources']],
  ['a negative limit', { ...attach, options: { max_concurrent_calls: -1 } }, ['options.max_concurrent_calls']],
  ['a broken limit', { ...attach, options: { max_calls_per_second: 1.5 } }, ['options.max_calls_per_second']],
  ['a limit in text', { ...attach, options: { max_calls_per_second: '5' } }, ['options.max_calls_per_second']],
  ['a limit over the bound', { ...attach, options: { max_concurrent_calls: 100_001 } }, ['options.max_concurrent_calls']],
  ['plain media', { ...attach, options: { media_encryption: 'optional' } }, ['options.media_encryption']],
  ['made up encryption', { ...attach, options: { media_encryption: 'none' } }, ['options.media_encryption']],
  ['an unknown field', { ...attach, phoneNumber: phone_number }, ['phoneNumber']],
  [
    'everything at once',
    { phone_number: 'x', directions: ['outbound'], service: 1, agent_id: 1, options: { q: 1, media_encryption: 'optional' }, zz: 1 },
    ['phone_number', 'service', 'agent_id', 'options.media_encryption', 'options.q', 'zz', 'sip_endpoint'],
  ],
];

const UPDATE: [string, unknown, (string | undefined)[]][] = [
  ['nothing', {}, ['phone_number', 'updates']],
  ['updates in a list', update([{ type: 'inbound' }]), ['updates']],
  ['no type', update({}), ['updates.type']],
  ['an unknown type', update({ type: 'both' }), ['updates.type']],
  ['outbound without endpoint', update({ type: 'outbound' }), ['updates.sip_endpoint']],
  ['outbound with an agent', update({ type: 'outbound', sip_endpoint: 'a.b', agent_id: null }), ['updates.agent_id']],
  ['inbound with an endpoint', update({ type: 'inbound', sip_endpoint: 'a.b' }), ['updates.sip_endpoint']],
  ['inbound with bad options', update({ type: 'inbound', options: { allowed_sources: ['x'] } }), ['updates.options.allowed_sources[0]']],
  ['an unknown field', { ...update({ type: 'inbound' }), service: 'sip' }, ['service']],
];

const DETACH: [string, unknown, (string | undefined)[]][] = [
  ['nothing', {}, ['phone_number', 'directions', 'service']],
  ['an unknown direction', detach('x'), ['directions']],
  ['an unknown direction in a list', detach(['x']), ['directions[0]']],
  ['an unknown type', detach([{ type: 'x' }]), ['directions[0].type']],
  ['an object alone', detach({ type: 'inbound' }), ['directions']],
  ['an endpoint', detach([{ type: 'outbound', sip_endpoint: 'a.b' }]), ['directions[0].sip_endpoint']],
  ['no direction', detach([]), ['directions']],
  ['a direction twice', detach(['inbound', 'inbound']), ['directions[1]']],
];

describe('the errors of a body', () => {
  it.each(ATTACH)('name each bad field of attach: %s', (_what, body, paths) => expect(pathsOf('attach', body)).toEqual(paths));
  it.each(UPDATE)('name each bad field of update: %s', (_what, body, paths) => expect(pathsOf('update', body)).toEqual(paths));
  it.each(DETACH)('name each bad field of detach: %s', (_what, body, paths) => expect(pathsOf('detach', body)).toEqual(paths));
});

describe('the entries of an error', () => {
  it('have a path of dots and brackets, and a long key is cut', () => {
    expect(pathText(['options', 'allowed_sources', 1])).toBe('options.allowed_sources[1]');
    expect(pathText(['x'.repeat(1000)])).toHaveLength(64);
  });

  it('call a record an object', () => {
    const { error } = agentSettingsSchema(['ENG']).safeParse({ metadata: 1, transfer_list: '' });
    expect(entriesOf(error?.issues ?? []).map(({ path, message }) => [path, message])).toEqual([
      ['metadata', 'must be an object'],
      ['transfer_list', 'must be an object'],
    ]);
  });

  it('are 100 at most', () => {
    const body = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, 1]));
    expect(pathsOf('attach', body)).toHaveLength(100);
  });
});
