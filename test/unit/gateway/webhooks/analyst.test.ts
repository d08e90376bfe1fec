import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OrgRecord } from '../../../../src/gateway/model/records.js';
import { GuardedClient } from '../../../../src/gateway/net/guarded-client.js';
import { analysisRequest } from '../../../../src/gateway/webhooks/analysis-request.js';
import { Analyst, type Findings } from '../../../../src/gateway/webhooks/analyst.js';
import { FakeTextModel, type TextModelAnswer } from '../../../support/provider/fake-text-model.js';
import { ROUTE } from '../../../support/route.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const SCHEMA = { name: 'string', guests: 'integer', day: 'YYYY-MM-DD', mood: 'how the caller felt' };
const TRANSCRIPT = [
  { speaker: 'agent' as const, text: 'Good day.', at_ms: 0 },
  { speaker: 'caller' as const, text: 'Ann here, a table for two on Christmas Eve.', at_ms: 900 },
];

let model: FakeTextModel;
let client: GuardedClient;
beforeEach(async () => {
  model = await FakeTextModel.start();
  client = new GuardedClient({ allowPrivate: true, caPem: null, clock: new VirtualClock(), maxResponseBytes: 65_536 });
});
afterEach(async () => {
  await client.close();
  await model.stop();
});

interface Keys {
  readonly operator?: string | null;
  readonly org?: Partial<OrgRecord>;
  readonly takesOpenAiKeys?: boolean;
}

function find(
  answers: TextModelAnswer[],
  { operator = 'sk-operator', org = { operator_keys: true }, takesOpenAiKeys = false }: Keys = {},
): Promise<Findings> {
  model.answers = answers;
  const analyst = new Analyst(client, { url: model.url, model: 'small', apiKey: operator, takesOpenAiKeys });
  const question = { org: { ...ROUTE.org, ...org }, transcript: TRANSCRIPT, schema: SCHEMA, timeoutMs: 5_000 };
  return analyst.find(question, new AbortController().signal);
}

describe('the analyst', () => {
  it('requests the points of the schema, each of its type or null', async () => {
    const found = { name: 'Ann', guests: 2, day: '2026-12-24', mood: 'cheerful' };
    expect(await find([JSON.stringify(found)])).toEqual({ kind: 'found', kept: found, wrong: {} });
    const [{ key, body } = { key: '', body: null }] = model.requests;
    expect([key, body?.model, body?.messages[1]?.content]).toEqual([
      'Bearer sk-operator',
      'small',
      'agent: Good day.\ncaller: Ann here, a table for two on Christmas Eve.',
    ]);
    expect(body?.response_format.json_schema.schema.properties).toEqual({
      name: { type: ['string', 'null'] },
      guests: { type: ['integer', 'null'] },
      day: { type: ['string', 'null'], description: 'YYYY-MM-DD' },
      mood: { type: ['string', 'null'], description: 'how the caller felt' },
    });
  });

  it('separates what the schema does not have', async () => {
    const found = { name: null, guests: 'two', day: '2026-12-24', mood: null, more: 1 };
    expect(await find([JSON.stringify(found)])).toEqual({
      kind: 'found',
      kept: { name: null, day: '2026-12-24', mood: null },
      wrong: { guests: 'two', more: 1 },
    });
  });

  it.each([
    [429, 'The text model answered 429.', true],
    [503, 'The text model answered 503.', true],
    [401, 'The text model answered 401.', false],
    ['no JSON', 'The text model answered no analysis.', false],
    ['[1]', 'The text model answered no analysis.', false],
    [{ refusal: 'I cannot' }, 'The text model refused.', false],
  ])('returns the cause when there is no analysis: %j', async (answer, error, mayRetry) => {
    expect(await find([answer])).toEqual({ kind: 'failed', error, mayRetry });
  });

  it('may be asked again when there is no answer', async () => {
    const { url } = model;
    await model.stop();
    const analyst = new Analyst(client, { url, model: 'small', apiKey: 'k', takesOpenAiKeys: false });
    const org = { ...ROUTE.org, operator_keys: true };
    const findings = await analyst.find({ org, transcript: TRANSCRIPT, schema: SCHEMA, timeoutMs: 5_000 }, new AbortController().signal);
    expect(findings).toMatchObject({ kind: 'failed', mayRetry: true });
    model = await FakeTextModel.start();
  });

  const own = { provider_keys: { 'openai-realtime': 'sk-own' } };
  it.each<[string, Keys, string | undefined]>([
    ['the operator’s, for an organization that may use it', {}, 'Bearer sk-operator'],
    ['none of the operator’s, for others', { org: { operator_keys: false } }, undefined],
    ['the organization’s, at OpenAI', { org: own, takesOpenAiKeys: true }, 'Bearer sk-own'],
    ['not the organization’s elsewhere', { org: { ...own, operator_keys: true } }, 'Bearer sk-operator'],
    ['none', { operator: null }, undefined],
  ])('sends the right key: %s', async (_what, keys, key) => {
    const findings = await find(['{}'], keys);
    expect(model.requests.map((request) => request.key)).toEqual(key === undefined ? [] : [key]);
    if (key === undefined) expect(findings).toEqual({ kind: 'failed', error: 'No key for the text model is set.', mayRetry: false });
  });

  it('sends the request of the unmodified OpenAI package to the same fake', async () => {
    model.answers = ['{"guests":2}'];
    const openai = new OpenAI({ apiKey: 'sk-1', baseURL: model.baseUrl, maxRetries: 0 });
    const request = analysisRequest('small', SCHEMA, TRANSCRIPT) as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const { choices } = await openai.chat.completions.create(request);
    expect([choices[0]?.message.content, model.problems]).toEqual(['{"guests":2}', []]);
  });
});
