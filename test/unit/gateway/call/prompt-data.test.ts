import { expect, it } from 'vitest';
import type { AgentSettings } from '../../../../src/gateway/model/agent-record.js';
import { dynamicRequests, shownDynamicData } from '../../../../src/gateway/model/dynamic-data.js';
import type { OrgRecord } from '../../../../src/gateway/model/records.js';
import type { ToolDefinition } from '../../../../src/gateway/model/tool-definition.js';
import { AgentUnavailableError, type ToolOutcome } from '../../../../src/gateway/ports/ports.js';
import { withPromptData } from '../../../../src/gateway/call/prompt-data.js';
import { err, ok } from '../../../../src/lib/result.js';
import { ROUTE } from '../../../support/route.js';
import { turns } from '../../../support/runner-bench.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { agentOf } from '../store/store-contract.js';

const FACTS = { from: '+15550100999', to: '+15550100100', call_id: 'c' };
const request = (name: string) => ({ url: `https://x.example/${name}`, response_data: { [name]: `$.${name}` } });

/** Requests under way; each is answered when the test says so, or when its time is up. */
function open(settings: Partial<AgentSettings>, org: Partial<OrgRecord> = {}) {
  const clock = new VirtualClock();
  const asked: { readonly tool: ToolDefinition; readonly input: unknown; readonly answer: (outcome: ToolOutcome) => void }[] = [];
  const runner = {
    run: (_orgId: string, tool: ToolDefinition, input: unknown, ended: AbortSignal): Promise<ToolOutcome> =>
      new Promise((answer) => {
        asked.push({ tool, input, answer });
        ended.addEventListener('abort', () => answer(err({ code: 'TOOL_FAILED', message: 'aborted' })));
      }),
  };
  const agent = agentOf('o', settings);
  const route = { ...ROUTE, org: { ...ROUTE.org, ...org }, agent };
  return { clock, asked, data: withPromptData(route, agent, FACTS, runner, clock) };
}

it('dynamic data is requested all at once, and awaited for two seconds at most', async () => {
  const { clock, asked, data } = open({
    prompt: 'Guest {{guest}}, room {{ room }}, {{unknown}}.',
    first_sentence: 'Hello {{guest}}!',
    dynamic_data: [request('guest'), request('room')],
  });
  expect(asked.map(({ tool, input }) => [tool.url, tool.method, input])).toEqual([
    ['https://x.example/guest', 'GET', FACTS],
    ['https://x.example/room', 'GET', FACTS],
  ]);
  asked[0]!.answer(ok({ result: { guest: 'Kim' }, httpStatus: 200 }));
  clock.advance(1_999);
  await turns();
  clock.advance(1);
  const { route, warnings } = await data;
  expect(route.agent?.prompt).toBe('Guest Kim, room , {{unknown}}.');
  expect(route.agent?.first_sentence).toBe('Hello Kim!');
  expect(warnings).toEqual(['dynamic_data without a value: room']);
});

it('dynamic data takes no value from a refusal, and inserts values that are not strings as JSON', async () => {
  const { asked, data } = open({ prompt: '{{guest}} {{room}}', dynamic_data: [request('guest'), request('room')] });
  asked[0]!.answer(ok({ result: { guest: 'a secret' }, httpStatus: 500 }));
  asked[1]!.answer(ok({ result: { room: { floor: 2 } }, httpStatus: 200 }));
  expect((await data).route.agent?.prompt).toBe(' {"floor":2}');
});

it('the text of the pathway is the prompt, and a call continues when it is missing', async () => {
  const org = { pathway_url: 'https://x.example/{pathway_id}', pathway_token: 'token' };
  const first = open({ prompt: null, pathway_id: 'p1' }, org);
  expect(first.asked.map(({ tool, input }) => [tool.url, tool.headers, input])).toEqual([
    ['https://x.example/{{input.pathway_id}}', { authorization: 'Bearer token' }, { pathway_id: 'p1' }],
  ]);
  first.asked[0]!.answer(ok({ result: 'You are a porter.', httpStatus: 200 }));
  expect((await first.data).route.agent?.prompt).toBe('You are a porter.');
  const second = open({ prompt: null, pathway_id: 'p1' }, org);
  second.asked[0]!.answer(ok({ result: 'Not found', httpStatus: 404 }));
  await expect(second.data).rejects.toBeInstanceOf(AgentUnavailableError);
  const third = open({ prompt: null, pathway_id: 'p1' });
  expect(third.asked).toEqual([]);
  expect((await third.data).warnings).toEqual([]);
});

it.each([
  [{ url: 'https://x.example/', response_data: { a: '$.a' } }, 1],
  [[{ url: 'https://x.example/', response_data: { a: '$.a' } }], 1],
  [{ url: 'https://x.example/', response_data: {} }, null],
  [{ url: 'ftp://x.example/', response_data: { a: '$.a' } }, null],
  [{ url: 'https://x.example/', response_data: { a: '$..*..*' } }, null],
  [{ url: 'https://x.example/', response_data: { a: '$.a' }, timeout: 2_001 }, null],
  [{ anything: 1 }, null],
  [[], null],
])('dynamic data in the form %j is read', (dynamicData, requests) => {
  expect(dynamicRequests(dynamicData)?.length ?? null).toBe(requests);
});

it('dynamic data is shown without headers', () => {
  const withHeaders = { ...request('guest'), headers: { authorization: 'secret' } };
  expect(shownDynamicData(withHeaders)).toEqual(request('guest'));
  expect(shownDynamicData([withHeaders])).toEqual([request('guest')]);
  expect(shownDynamicData({ Headers: 1, other: [1] })).toEqual({ other: [1] });
});
