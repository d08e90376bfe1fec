import { describe, expect, it } from 'vitest';
import { callerIdentity, claimedCallers } from '../../../../src/gateway/admission/parties.js';

function identity(headers: Readonly<Record<string, string>>) {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return callerIdentity({ get: (name) => byName.get(name.toLowerCase()), names: Object.keys(headers) });
}

const FROM = '"Alice \\"A\\" Ärger" <sip:+1-555-0100-999@carrier;user=phone>;tag=1';

describe('the identity of the caller', () => {
  it('[3261 §20.20] has the number of From in E.164, or its name', () => {
    expect(identity({ From: FROM })).toMatchObject({ number: '+15550100999', display_name: 'Alice "A" Ärger' });
    expect(identity({ From: 'sip:bob@carrier;tag=1' })).toMatchObject({ number: 'bob', display_name: null });
    expect(identity({ From: 'Smith, Ann <sip:ann@carrier>;tag=1' })).toMatchObject({ number: 'ann', display_name: 'Smith, Ann' });
    expect(identity({ From: '<sip:first@carrier>, <sip:second@carrier>' }).number).toBe('first');
    expect(identity({ From: 'nonsense' }).number).toBe('anonymous');
    expect(identity({ From: '"Anonymous" <sip:anonymous@anonymous.invalid>;tag=1' })).toMatchObject({
      number: 'anonymous',
      display_name: null,
    });
  });

  it.each([
    ['sip:2125551234@carrier', '2125551234'],
    ['sip:02125551234@carrier;user=phone', '02125551234'],
    ['sip:15550100999@carrier', '15550100999'],
    ['sip:212-555-1234@carrier', '2125551234'],
    ['tel:15550100999', '15550100999'],
    ['tel:(030)123456', '030123456'],
    ['sip:2125551234;phone-context=example.com@carrier', '2125551234'],
    ['sip:2125551234;phone-context=+1@carrier;user=phone', '+12125551234'],
    ['tel:555-1234;phone-context=+1-212', '+12125551234'],
    ['sip:%2B12125551234@carrier', '+12125551234'],
    ['tel:+1-212-555-1234', '+12125551234'],
    ['sip:+0123@carrier', '+0123'],
  ])('[3966 §5.1.4] [3966 §5.1.5] of %s is %s: it has a plus only where one was sent or stated', (uri, number) => {
    expect(identity({ From: `<${uri}>;tag=1` }).number).toBe(number);
  });

  it.each([
    ['Alice "Al" <sip:+15550100999@carrier>;tag=1', 'Alice Al'],
    ['"Al"ice <sip:+15550100999@carrier>;tag=1', 'Alice'],
    ['"bro"ken" <sip:+15550100999@carrier>;tag=1', 'broken'],
    ['"open <sip:+15550100999@carrier>;tag=1', 'open'],
  ])('comes from a From whose quotes are misplaced: %s', (from, name) => {
    expect(identity({ From: from })).toMatchObject({ number: '+15550100999', display_name: name });
    expect(claimedCallers({ get: (header) => (header === 'From' ? from : undefined) })).toEqual(['sip:+15550100999@carrier']);
  });

  it('does not come from a From with misplaced quotes and two addresses', () => {
    const from = 'a "<sip:+15550100998@carrier> <sip:+15550100999@carrier>;tag=1';
    expect(identity({ From: from }).number).toBe('anonymous');
  });

  it('[3325 §9.1] has both values of P-Asserted-Identity', () => {
    const asserted = '"A, B" <sip:+15550100999@carrier>, <tel:+15550100999>';
    expect(identity({ From: FROM, 'P-Asserted-Identity': asserted }).asserted).toEqual(['sip:+15550100999@carrier', 'tel:+15550100999']);
  });

  it.each(['id', 'user', 'header', 'critical;id'])('[3323 §4.2] hides the asserted identity from the agent with Privacy: %s', (privacy) => {
    const told = identity({ From: FROM, Privacy: privacy, 'P-Asserted-Identity': '<sip:1@c>', 'Remote-Party-ID': '<sip:2@c>' });
    expect([told.asserted, told.remote_party]).toEqual([[], null]);
    expect(told.privacy).toContain(privacy.split(';').at(-1));
  });

  it('[3323 §5.3] hides From too with Privacy: user', () => {
    expect(identity({ From: FROM, Privacy: 'user' })).toMatchObject({ number: 'anonymous', display_name: null });
  });

  it('has Remote-Party-ID, unless that is private by its own parameter', () => {
    expect(identity({ 'Remote-Party-ID': '"X" <sip:5@c>;party=calling;privacy=off;screen=yes' }).remote_party).toBe('sip:5@c');
    expect(identity({ 'Remote-Party-ID': '<sip:5@c>;privacy=full' }).remote_party).toBeNull();
  });

  it('[5806] [7044 §5] has Diversion and History-Info in order, with reason and index', () => {
    const told = identity({
      Diversion: '<sip:+15550100100@pbx>;reason="unconditional";counter=1, <tel:+15550100200>',
      'History-Info': '<sip:+15550100100@pbx?Reason=SIP%3Bcause%3D302>;index=1, <sip:b@pbx>;index=1.1',
    });
    expect(told.diversions).toEqual([
      { uri: 'sip:+15550100100@pbx', reason: 'unconditional' },
      { uri: 'tel:+15550100200', reason: null },
    ]);
    expect(told.history.map(({ index }) => index)).toEqual(['1', '1.1']);
    expect(identity({ Privacy: 'history', 'History-Info': '<sip:a@b>;index=1' }).history).toEqual([]);
  });

  it('[7433] has User-to-User as it came, and X- headers by name in lower case', () => {
    const told = identity({ 'User-to-User': '56a3;encoding=hex', 'X-Account': '42', 'X-Trunkline-Tls': 'TLSv1.3 x', Subject: 's' });
    expect([told.user_to_user, told.headers]).toEqual(['56a3;encoding=hex', { 'x-account': '42' }]);
  });

  it('has at most 32 X- headers, none longer than 512 characters, no URI over 256, and 16 of a kind', () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`X-H${String(index)}`, 'v']));
    expect(Object.keys(identity(many).headers)).toHaveLength(32);
    expect(identity({ 'X-Long': 'v'.repeat(513), 'X-Fits': 'v'.repeat(512) }).headers).toEqual({ 'x-fits': 'v'.repeat(512) });
    expect(identity({ [`X-${'n'.repeat(70)}`]: 'v' }).headers).toEqual({});
    expect(identity({ 'User-to-User': 'a'.repeat(1_025) }).user_to_user).toBeNull();
    expect(identity({ 'P-Asserted-Identity': `<sip:${'a'.repeat(300)}@c>` }).asserted).toEqual([]);
    expect(identity({ Diversion: Array.from({ length: 50 }, () => '<sip:a@b>').join(',') }).diversions).toHaveLength(16);
  });

  it('survives headers that are nonsense', () => {
    for (const value of ['', '"', '<', '<sip:', '"unended <sip:a@b>', ',,,,', ';;;', '\\"\\', '<'.repeat(5_000)])
      expect(() =>
        identity({ From: value, Diversion: value, 'P-Asserted-Identity': value, 'History-Info': value, Privacy: value }),
      ).not.toThrow();
  });
});
