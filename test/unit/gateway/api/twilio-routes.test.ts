import { beforeEach, describe, expect, it } from 'vitest';
import type { LiveCall } from '../../../../src/gateway/model/live-calls.js';
import { accountSidOf, callIdOf, callSidOf } from '../../../../src/gateway/model/twilio-ids.js';
import { openApi, type Answer, type ApiFixture } from './api-fixture.js';

const CALL_ID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const FORM = 'application/x-www-form-urlencoded';

let api: ApiFixture;
let call: LiveCall | null;
let hungUp: string[];

beforeEach(async () => {
  hungUp = [];
  api = await openApi({
    liveCalls: {
      find: (callId) => (callId === call?.callId ? call : null),
      stop: (callId) => hungUp.push(callId) > 0,
      trace: () => null,
      quality: () => Promise.resolve(null),
    },
  });
  const startedAtMs = api.clock.wallMs() - 9_000;
  call = { callId: CALL_ID, orgId: api.orgId, from: '+15550100200', to: '+15550100100', startedAtMs, answeredAtMs: startedAtMs + 2_000 };
});

const url = (account = accountSidOf(api.orgId), sid = callSidOf(CALL_ID)): string => `/2010-04-01/Accounts/${account}/Calls/${sid}.json`;
const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

function post(payload = 'Status=completed', target = url(), authorization = basic(api.orgId, api.key), type = FORM): Promise<Answer> {
  return api.send({ method: 'POST', url: target, headers: { authorization, 'content-type': type }, payload });
}

function refusal({ status, text }: Answer): [number, number, boolean] {
  const body = JSON.parse(text) as { code: number; message: string; more_info: string; status: number };
  expect(body).toEqual({
    code: body.code,
    message: expect.any(String) as string,
    more_info: expect.stringContaining(String(body.code)) as string,
    status,
  });
  return [status, body.code, hungUp.length > 0];
}

describe('Twilio’s way to end a call', () => {
  it('hangs up and answers with the call', async () => {
    const answer = await post();
    expect([answer.status, hungUp]).toEqual([200, [CALL_ID]]);
    expect(await api.stores.audit.list(api.orgId, { take: 1 })).toMatchObject([{ action: 'call.stop', record: CALL_ID }]);
    expect(JSON.parse(answer.text)).toMatchObject({
      sid: 'CA0f8fad5bd9cb469fa16570867728950e',
      account_sid: accountSidOf(api.orgId),
      status: 'completed',
      direction: 'inbound',
      from: '+15550100200',
      to: '+15550100100',
      duration: '7',
      uri: url(),
    });
  });

  it('takes the account for a user, as Twilio’s libraries do', async () => {
    expect((await post(undefined, url(), basic(accountSidOf(api.orgId), api.key))).status).toBe(200);
  });

  it.each([
    ['another account', () => url('AC00000000000000000000000000000000')],
    ['an unknown call', () => url(undefined, 'CA00000000000000000000000000000000')],
    ['what is no call', () => url(undefined, 'CA1')],
  ])('does not find %s', async (_what, target) => {
    expect(refusal(await post(undefined, target()))).toEqual([404, 20_404, false]);
  });

  it('does not find another organization’s call, nor one that has ended', async () => {
    call = call === null ? null : { ...call, orgId: 'another' };
    expect(refusal(await post())).toEqual([404, 20_404, false]);
    call = null;
    expect(refusal(await post())).toEqual([404, 20_404, false]);
  });

  it.each([
    ['no credentials', () => ''],
    ['a wrong key', () => basic(api.orgId, `tl_${'x'.repeat(32)}`)],
    ['another organization for a user', () => basic('7c9e6679-7425-40de-944b-e07fc1f90ae7', api.key)],
    ['the key alone', () => api.key],
    ['no base64', () => 'Basic *'],
  ])('refuses %s', async (_what, authorization) => {
    const answer = await post(undefined, url(), authorization());
    expect(refusal(answer)).toEqual([401, 20_003, false]);
    expect(answer.headers['www-authenticate']).toMatch(/^Basic /);
  });

  it('refuses the key of a disabled organization, and a revoked one', async () => {
    await api.stores.orgs.change(api.orgId, { disabled: true });
    expect(refusal(await post())).toEqual([401, 20_003, false]);
    await api.stores.orgs.change(api.orgId, { disabled: false });
    await api.stores.keys.revoke((await api.stores.keys.list(api.orgId))[0]?.key_id ?? '');
    expect(refusal(await post())).toEqual([401, 20_003, false]);
  });

  it.each(['', 'Status=', 'Status=in-progress', 'Url=http://x', 'Status=canceled'])('refuses %j', async (payload) => {
    expect(refusal(await post(payload))).toEqual([400, 20_001, false]);
  });

  it('cancels a call that is not answered', async () => {
    call = call === null ? null : { ...call, answeredAtMs: null };
    const answer = await post('Status=canceled');
    expect([answer.status, hungUp, (JSON.parse(answer.text) as { duration: string }).duration]).toEqual([200, [CALL_ID], '0']);
  });

  it('takes forms here only, and nothing else here', async () => {
    expect(refusal(await post('{"Status":"completed"}', url(), undefined, 'application/json'))).toEqual([415, 20_001, false]);
    const attach = await api.send({
      method: 'POST',
      url: '/sip/attach',
      headers: { authorization: api.key, 'content-type': FORM },
      payload: 'a=b',
    });
    expect(attach.status).toBe(415);
  });

  it('counts for the limit of its key', async () => {
    const limited = await openApi({ rateLimits: { perKey: 1 } });
    const ask = (): Promise<Answer> =>
      limited.send({
        method: 'POST',
        url: `/2010-04-01/Accounts/${accountSidOf(limited.orgId)}/Calls/${callSidOf(CALL_ID)}.json`,
        headers: { authorization: basic(limited.orgId, limited.key), 'content-type': FORM },
        payload: 'Status=completed',
      });
    expect((await ask()).status).toBe(404);
    const second = await ask();
    expect([second.status, Number(second.headers['retry-after']) > 0]).toEqual([429, true]);
  });
});

it('the ids of calls are told both ways', () => {
  expect(callIdOf(callSidOf(CALL_ID))).toBe(CALL_ID);
  for (const text of ['', 'CA1', CALL_ID, `AC${'0'.repeat(32)}`, `CA${'g'.repeat(32)}`]) expect(callIdOf(text)).toBeUndefined();
});
