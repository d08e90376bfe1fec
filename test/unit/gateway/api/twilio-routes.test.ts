import { beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../../src/gateway/model/call-record.js';
import type { CallTarget, LiveCall } from '../../../../src/gateway/model/live-calls.js';
import { accountSidOf, callIdOf, callSidOf } from '../../../../src/gateway/model/twilio-ids.js';
import { callOf, endedCall } from '../store/store-contract.js';
import { openApi, type Answer, type ApiFixture } from './api-fixture.js';

const CALL_ID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const FORM = 'application/x-www-form-urlencoded';

let api: ApiFixture;
let token: string;
let call: LiveCall | null;
let hungUp: string[];
let redirected: [string, CallTarget][];

beforeEach(async () => {
  hungUp = [];
  redirected = [];
  api = await openApi({
    liveCalls: {
      find: (callId) => (callId === call?.callId ? call : null),
      stop: (callId) => hungUp.push(callId) > 0,
      redirect: (callId, to) => redirected.push([callId, to]) > 0,
      trace: () => null,
      transcript: () => null,
      quality: () => Promise.resolve(null),
    },
  });
  token = (await api.stores.orgs.get(api.orgId))?.twilio_token ?? '';
  const startedAtMs = api.clock.wallMs() - 9_000;
  call = {
    callId: CALL_ID,
    orgId: api.orgId,
    direction: 'inbound',
    from: '+15550100200',
    to: '+15550100100',
    startedAtMs,
    answeredAtMs: startedAtMs + 2_000,
  };
});

const url = (account = accountSidOf(api.orgId), sid = callSidOf(CALL_ID)): string => `/2010-04-01/Accounts/${account}/Calls/${sid}.json`;
const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

function post(
  payload = 'Status=completed',
  target = url(),
  authorization = basic(accountSidOf(api.orgId), token),
  type = FORM,
): Promise<Answer> {
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

describe('a request of Twilio’s libraries without a route', () => {
  it.each([
    ['GET', '/2010-04-01/Accounts/AC0/Messages.json', 404, 20_404],
    ['DELETE', '/2010-04-01/Accounts/AC0/Calls.json', 405, 20_004],
    ['GET', '/2010-04-01/Accounts/%zz/Calls.json', 400, 20_001],
  ] as const)('by %s %s gets an error of Twilio’s form', async (method, target, status, code) => {
    const answer = await api.send({ method, url: target, headers: { authorization: basic(accountSidOf(api.orgId), token) } });
    expect(refusal(answer)).toEqual([status, code, false]);
  });
});

describe('Twilio’s request to change a call', () => {
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

  it.each([
    ['another account', () => url('AC00000000000000000000000000000000')],
    ['an unknown call', () => url(undefined, 'CA00000000000000000000000000000000')],
    ['an id in a wrong form', () => url(undefined, 'CA1')],
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
    ['a wrong token', () => basic(accountSidOf(api.orgId), 'x'.repeat(43))],
    ['an API key', () => basic(accountSidOf(api.orgId), api.key)],
    ['another organization for a user', () => basic('AC7c9e6679742540de944be07fc1f90ae7', token)],
    ['the token alone', () => token],
    ['no base64', () => 'Basic *'],
  ])('refuses %s', async (_what, authorization) => {
    const answer = await post(undefined, url(), authorization());
    expect(refusal(answer)).toEqual([401, 20_003, false]);
    expect(answer.headers['www-authenticate']).toMatch(/^Basic /);
  });

  it('refuses a disabled organization', async () => {
    await api.stores.orgs.change(api.orgId, { disabled: true });
    expect(refusal(await post())).toEqual([401, 20_003, false]);
  });

  it.each([
    '',
    'Status=',
    'Status=in-progress',
    'Status=canceled',
    'Url=ftp://x',
    'Url=http://10.0.0.1/',
    'Url=http://x&Twiml=%3CResponse/%3E',
    'Url=http://x&Method=PUT',
  ])('refuses %j', async (payload) => {
    expect(refusal(await post(payload))).toEqual([400, 20_001, false]);
  });

  it.each(['<Response><Say>Hello</Response>', '{"a":1}', ''])(
    'refuses a document that cannot be read, and the call continues: %j',
    async (twiml) => {
      const answer = await post(`Twiml=${encodeURIComponent(twiml)}`);
      expect([...refusal(answer), redirected]).toEqual([400, 12_100, false, []]);
    },
  );

  it('cancels a call that is not answered', async () => {
    call = call === null ? null : { ...call, answeredAtMs: null };
    const answer = await post('Status=canceled');
    expect([answer.status, hungUp, (JSON.parse(answer.text) as { duration: string }).duration]).toEqual([200, [CALL_ID], '0']);
  });

  it.each([
    ['Url=https://x.example/voice&Method=GET', { url: 'https://x.example/voice', method: 'GET' }],
    ['Url=https://x.example/voice', { url: 'https://x.example/voice', method: 'POST' }],
    ['Twiml=%3CResponse/%3E', { twiml: '<Response/>' }],
  ])('redirects the call: %s', async (payload, to) => {
    const answer = await post(payload);
    expect([answer.status, redirected, hungUp]).toEqual([200, [[CALL_ID, to]], []]);
    expect(await api.stores.audit.list(api.orgId, { take: 1 })).toMatchObject([{ action: 'call.redirect', record: CALL_ID }]);
  });

  it('accepts forms, which no other route does, and nothing else', async () => {
    expect(refusal(await post('{"Status":"completed"}', url(), undefined, 'application/json'))).toEqual([415, 20_001, false]);
    const attach = await api.send({
      method: 'POST',
      url: '/sip/attach',
      headers: { authorization: api.key, 'content-type': FORM },
      payload: 'a=b',
    });
    expect(attach.status).toBe(415);
  });

  it('counts for the limit of its organization', async () => {
    const limited = await openApi({ rateLimits: { perKey: 1 } });
    const own = (await limited.stores.orgs.get(limited.orgId))?.twilio_token ?? '';
    const ask = (): Promise<Answer> =>
      limited.send({
        method: 'POST',
        url: `/2010-04-01/Accounts/${accountSidOf(limited.orgId)}/Calls/${callSidOf(CALL_ID)}.json`,
        headers: { authorization: basic(accountSidOf(limited.orgId), own), 'content-type': FORM },
        payload: 'Status=completed',
      });
    expect((await ask()).status).toBe(404);
    const second = await ask();
    expect([second.status, Number(second.headers['retry-after']) > 0]).toEqual([429, true]);
  });
});

describe('Twilio’s requests to read calls', () => {
  const get = async (path: string): Promise<Answer> =>
    api.send({
      method: 'GET',
      url: `/2010-04-01/Accounts/${accountSidOf(api.orgId)}${path}`,
      headers: { authorization: basic(accountSidOf(api.orgId), token) },
    });
  const store = (callId: string, startedAt: string, fields: Partial<CallRecord> = {}): Promise<void> =>
    api.stores.calls.write(endedCall(callOf(api.orgId, Date.parse(startedAt), { call_id: callId, ...fields })));

  it('show an ended call in the form that its libraries read', async () => {
    const ended = '153ee546-05b9-4d95-bd6d-f899f082d48b';
    await store(ended, '2026-01-01T00:00:00.000Z', { answered_at: '2026-01-01T00:00:01.000Z', ended_at: '2026-01-01T00:00:09.000Z' });
    const answer = await get(`/Calls/${callSidOf(ended)}.json`);
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
      200,
      { status: 'completed', duration: '8', start_time: 'Thu, 01 Jan 2026 00:00:01 +0000', end_time: 'Thu, 01 Jan 2026 00:00:09 +0000' },
    ]);
  });

  it('name the parent of a call in progress, too', async () => {
    const parent = '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11';
    call = { ...call!, direction: 'outbound', parentCallId: parent };
    expect(JSON.parse((await get(`/Calls/${callSidOf(CALL_ID)}.json`)).text)).toMatchObject({ parent_call_sid: callSidOf(parent) });
  });

  it('list page by page, each call once', async () => {
    const ids = Array.from({ length: 5 }, (_, at) => `153ee546-05b9-4d95-bd6d-f899f082d48${String(at)}`);
    for (const [at, id] of ids.entries()) {
      await store(id, `2026-01-0${String(at + 1)}T00:00:00.000Z`);
    }
    const seen: string[] = [];
    let path: string | null = '/Calls.json?PageSize=2';
    while (path !== null) {
      const answer: Answer = await get(path);
      const page = JSON.parse(answer.text) as { calls: { sid: string }[]; next_page_uri: string | null };
      expect(page.calls.length).toBeLessThanOrEqual(2);
      seen.push(...page.calls.map(({ sid }) => sid));
      path = page.next_page_uri?.replace(/^.*(?=\/Calls\.json)/, '') ?? null;
    }
    expect(seen).toEqual(ids.toReversed().map(callSidOf));
    const some = JSON.parse((await get('/Calls.json?StartTime%3E=2026-01-02&StartTime%3C=2026-01-03')).text) as { calls: object[] };
    expect(some.calls.length).toBe(2);
  });

  describe('with filters', () => {
    const idOf = (at: number): string => `153ee546-05b9-4d95-bd6d-f899f082d4${String(at)}0`;
    const [PARENT, CHILD, BUSY, LATE] = [idOf(1), idOf(2), idOf(3), idOf(4)] as const;

    beforeEach(async () => {
      const day = '2026-01-02T';
      await store(PARENT, `${day}10:00:00.000Z`, { to: '+15550100100', from: '+15550100200', ended_at: `${day}11:00:00.000Z` });
      await store(CHILD, `${day}10:30:00.000Z`, { parent_call_id: PARENT, to: '+15550100300', ended_at: `${day}10:59:00.000Z` });
      await store(BUSY, '2026-01-03T00:00:00.000Z', {
        answered_at: null,
        sip_status: 486,
        reason: 'BUSY',
        ended_at: '2026-01-03T00:00:01.000Z',
      });
      await store(LATE, '2026-01-03T23:59:00.000Z', { ended_at: '2026-01-04T00:00:30.000Z' });
    });

    it.each([
      ['none', {}, [LATE, BUSY, CHILD, PARENT]],
      ['ParentCallSid', { ParentCallSid: callSidOf(PARENT) }, [CHILD]],
      ['the parent of no call', { ParentCallSid: callSidOf(CHILD) }, []],
      ['StartTime', { StartTime: '2026-01-03' }, [LATE, BUSY]],
      ['StartTime as Twilio’s libraries send a day', { StartTime: '2026-01-02T00:00:00Z' }, [CHILD, PARENT]],
      ['StartTime>=', { 'StartTime>': '2026-01-03' }, [LATE, BUSY]],
      ['StartTime>= a time', { 'StartTime>': '2026-01-02T10:15:00Z' }, [LATE, BUSY, CHILD]],
      ['StartTime<= a day, until its midnight', { 'StartTime<': '2026-01-03' }, [BUSY, CHILD, PARENT]],
      ['StartTime<= a time', { 'StartTime<': '2026-01-02T12:15:00+02:00' }, [PARENT]],
      ['EndTime', { EndTime: '2026-01-03' }, [BUSY]],
      ['EndTime>=', { 'EndTime>': '2026-01-04' }, [LATE]],
      ['EndTime<=', { 'EndTime<': '2026-01-02T10:59:30Z' }, [CHILD]],
      ['EndTime>= and EndTime<=', { 'EndTime>': '2026-01-02T10:59:30Z', 'EndTime<': '2026-01-04' }, [BUSY, PARENT]],
      ['Status', { Status: 'busy' }, [BUSY]],
      ['To', { To: '+15550100300' }, [CHILD]],
      ['From', { From: '+15550100200', StartTime: '2026-01-02', To: '+15550100100' }, [PARENT]],
    ])('list by %s what Twilio lists', async (_what, filters, expected) => {
      const { status, text } = await get(`/Calls.json?${new URLSearchParams(filters as Record<string, string>).toString()}`);
      expect(status).toBe(200);
      expect((JSON.parse(text) as { calls: { sid: string }[] }).calls.map(({ sid }) => sid)).toEqual(expected.map(callSidOf));
    });

    it('keep them from page to page, and have the parent of each call', async () => {
      const first = JSON.parse((await get(`/Calls.json?PageSize=1&EndTime%3E=2026-01-02&EndTime%3C=2026-01-03`)).text) as {
        calls: { sid: string; parent_call_sid: string | null }[];
        next_page_uri: string;
      };
      expect(first.calls).toMatchObject([{ sid: callSidOf(CHILD), parent_call_sid: callSidOf(PARENT) }]);
      const next = JSON.parse((await get(first.next_page_uri.replace(/^.*(?=\/Calls\.json)/, ''))).text) as typeof first;
      expect(next.calls).toMatchObject([{ sid: callSidOf(PARENT), parent_call_sid: null }]);
    });

    it.each(['Nonsense=1', 'ParentCallSid=x', 'EndTime=never', 'EndTime%3C=2026-13-01', 'StartTime=01/02/2026', 'parentCallSid=CA1'])(
      'refuse %s',
      async (query) => {
        expect(refusal(await get(`/Calls.json?${query}`))).toEqual([400, 20_001, false]);
      },
    );
  });

  it.each(['/Calls.json?PageToken=x', '/Calls.json?PageSize=0', '/Calls.json?StartTime%3E=never'])('refuse %s', async (path) => {
    expect(refusal(await get(path))).toEqual([400, 20_001, false]);
  });
});

it('the ids of calls convert both ways', () => {
  expect(callIdOf(callSidOf(CALL_ID))).toBe(CALL_ID);
  for (const text of ['', 'CA1', CALL_ID, `AC${'0'.repeat(32)}`, `CA${'g'.repeat(32)}`]) expect(callIdOf(text)).toBeUndefined();
});
