import { describe, expect, it } from 'vitest';
import { mayLeave } from '../../../../src/gateway/admission/dial-guard.js';
import type { E164 } from '../../../../src/gateway/model/e164.js';
import { accountSidOf } from '../../../../src/gateway/model/twilio-ids.js';
import { batch, DIALLING, LISTED, placer, TRANSFERS, TRANSFERS_OF_PLACED_CALLS, type Door } from '../../../support/doors.js';
import { NUMBER, ROUTE } from '../../../support/route.js';
import { openApi, type ApiFixture } from '../api/api-fixture.js';

// Every way by which a number can leave the product, and what leaves by none of them.

const ALLOWED = '+4930123456';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** Whether a request of the API places a call. */
const overApi =
  (ask: (api: ApiFixture, to: string) => Promise<unknown>): Door =>
  async (to) => {
    const placed: string[] = [];
    const api = await openApi({ placeCall: placer(placed) });
    await api.stores.orgs.change(api.orgId, { dialling: DIALLING });
    await api.stores.numbers.attach(api.orgId, NUMBER, { outbound: { sip_endpoint: 'trunk.example' } });
    await api.stores.doNotCall.add(api.orgId, [LISTED]);
    await ask(api, to);
    await api.api.close();
    return placed.length > 0;
  };

const PLACED_CALLS: Readonly<Record<string, Door>> = {
  'POST /v1/calls': overApi((api, to) => api.post('/v1/calls', { phone_number: to, from: NUMBER })),
  'Twilio’s POST Calls.json': overApi(async (api, to) => {
    const org = await api.stores.orgs.get(api.orgId);
    const sid = accountSidOf(api.orgId);
    const authorization = `Basic ${Buffer.from(`${sid}:${org?.twilio_token ?? ''}`).toString('base64')}`;
    const payload = new URLSearchParams({ To: to, From: NUMBER, Twiml: '<Response><Hangup/></Response>' }).toString();
    await api.send({ method: 'POST', url: `/2010-04-01/Accounts/${sid}/Calls.json`, headers: { ...FORM, authorization }, payload });
  }),
  'a batch': batch,
  ...TRANSFERS_OF_PLACED_CALLS,
};

const NEVER = {
  'a forbidden prefix': '+19005550000',
  'a number on the do-not-call list': LISTED,
  'an emergency number': '112',
  'an emergency number behind a country code': '+49112112',
  'a service code': '+19115550100',
  'a URI at a host that is not listed': `sip:${ALLOWED}@elsewhere.example`,
  'a trunk zero in parentheses': '+49(0)3019988001',
  'a trunk zero': '+4903019988001',
  'digits of another script': '+\uff14\uff19\uff13\uff10\uff11\uff12\uff13\uff14\uff15\uff16',
};

describe.each(Object.entries({ ...PLACED_CALLS, ...TRANSFERS }))('a call through %s', (_name, door) => {
  it('may go to a number that the organization may dial', async () => {
    expect(await door(ALLOWED)).toBe(true);
  });

  it.each(Object.entries(NEVER))('may never go to %s', async (_what, to) => {
    expect(await door(to)).toBe(false);
  });

  it('may not go to a number without a price', async () => {
    expect(await door('+33123456789')).toBe(false);
  });
});

describe.each(Object.entries(TRANSFERS))('an inbound call that is transferred by %s', (_name, door) => {
  it.each([
    ['the transfer_list names', { transferList: ['+33123456789'] }],
    ['begins as calls.transfer_prefixes allow', { prefixes: ['+33'] }],
  ])('may go to what %s, whatever the organization may dial', async (_what, allowed) => {
    expect(await door('+33123456789', { dialling: false, ...allowed })).toBe(true);
    expect(await door('+33123456789', { dialling: false })).toBe(false);
    expect(await door('+34912345678', { dialling: false, ...allowed })).toBe(false);
  });

  it.each(Object.entries(NEVER).filter(([what]) => !what.startsWith('a URI')))(
    'may never go to %s, whoever names it',
    async (_what, to) => {
      expect(await door(to, { transferList: [to] })).toBe(false);
      expect(await door(to, { prefixes: ['+1', '+49', '+4'] })).toBe(false);
    },
  );

  it('may go to a SIP URI at a listed host, but to no forbidden, emergency or ambiguous number there', async () => {
    const hosts = ['pbx.example'];
    expect(await door('sip:sales@pbx.example', { hosts })).toBe(true);
    expect(await door(`sip:+49-30-123456@pbx.example`, { hosts })).toBe(true);
    for (const to of Object.values(NEVER)) {
      const user = to.startsWith('sip:') ? '112' : to;
      expect([user, await door(`sip:${user}@pbx.example`, { hosts })]).toEqual([user, false]);
    }
  });
});

it('an agent’s transfer_list binds transfers of placed calls, too', () => {
  const from = { org: { ...ROUTE.org, dialling: DIALLING }, number: { ...ROUTE.number, outbound: { sip_endpoint: 'a.example' } } };
  const judge = (to: string) => mayLeave({ kind: 'number', number: to as E164 }, { door: 'placed-call', from, transferList: [ALLOWED] }).ok;
  expect([judge(ALLOWED), judge('+4930123457')]).toEqual([true, false]);
});
