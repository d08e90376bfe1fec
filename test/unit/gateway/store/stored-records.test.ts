import { expect, it } from 'vitest';
import { DEFAULT_AGENT_SETTINGS } from '../../../../src/gateway/model/agent-record.js';
import { NO_TUNING } from '../../../../src/gateway/model/provider.js';
import { decodeRecord } from '../../../../src/gateway/store/redis/redis.js';
import { ROUTE } from '../../../support/route.js';

it('an organization that an earlier version stored has no limits', () => {
  const { max_calls_per_second: _rate, allowed_sources: _sources, ...stored } = { ...ROUTE.org, max_concurrent_calls: 7 };
  expect(decodeRecord('org', JSON.stringify(stored))).toEqual({ ...stored, max_calls_per_second: null, allowed_sources: [] });
  const limited = { ...ROUTE.org, max_calls_per_second: 3, allowed_sources: ['10.0.0.0/8'] };
  expect(decodeRecord('org', JSON.stringify(limited))).toEqual(limited);
});

it('an agent that an earlier version stored has the defaults of what came later', () => {
  const stored = {
    agent_id: 'a',
    org_id: 'o',
    name: '',
    first_sentence: 'Hello.',
    language: 'GER',
    pronunciation_guide: [],
    max_duration: 5,
  };
  expect(decodeRecord('agent', JSON.stringify(stored))).toEqual({ ...DEFAULT_AGENT_SETTINGS, ...stored });
  const provider = { name: 'openai-realtime', model: null, url: null, audio: 'g711', api_key: 'k' };
  expect(decodeRecord('agent', JSON.stringify({ ...stored, provider }))?.provider).toEqual({ ...provider, ...NO_TUNING });
});

it('a stored text that is not JSON makes an error that does not show it', () => {
  expect(() => decodeRecord('number', '+15550100100')).toThrow('a stored number record is not JSON');
});
