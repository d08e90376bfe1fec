import { describe, expect, it } from 'vitest';
import { hasTag, parseHostPort, parseNameAddr, parseParams, parseSipUri, tagOf, uriScheme } from '../../../../src/sip/message/uri.js';

describe('a SIP URI', () => {
  const PLAIN = { scheme: 'sip', user: null, password: null, host: 'h', port: null, params: new Map(), headers: '' };

  it.each([
    ['sip:h', PLAIN],
    ['SIPS:H.Example', { ...PLAIN, scheme: 'sips', host: 'h.example' }],
    ['sip:Ann:pass:word@h', { ...PLAIN, user: 'Ann', password: 'pass:word' }],
    ['sip:ann:@h', { ...PLAIN, user: 'ann', password: '' }],
    ['sip:a@b@h', { ...PLAIN, user: 'a@b' }],
    ['sip:a@b@h?d=e', { ...PLAIN, user: 'a@b', headers: 'd=e' }],
    ['sip:a?b;c@h?d=e@f?g', { ...PLAIN, user: 'a?b;c', headers: 'd=e@f?g' }],
    ['sip:a@h?d=e@f', { ...PLAIN, user: 'a', headers: 'd=e@f' }],
    ['sip:h?d=e', { ...PLAIN, headers: 'd=e' }],
    ['sip:h;LR;Transport=TLS?d=;e', { ...PLAIN, params: new Map(Object.entries({ lr: '', transport: 'TLS' })), headers: 'd=;e' }],
    [`sip:${'a'.repeat(4_090)}@h`, { ...PLAIN, user: 'a'.repeat(4_090) }],
  ])('is read from %s', (text, uri) => {
    expect(parseSipUri(text)).toEqual(uri);
  });

  it.each(['', 'h', 'xsip:h', 'sipx:h', 'sip:@h', 'sip:a@', 'sip:?d=e', 'sip:a\nb@h', 'sip:<h', `sip:${'a'.repeat(4_091)}@h`])(
    'is not read from %j',
    (text) => {
      expect(parseSipUri(text)).toBeUndefined();
    },
  );

  it.each([
    ['TEL:+1', 'tel'],
    ['a1+.-:x', 'a1+.-'],
    ['1a:x', ''],
    [' sip:x', ''],
    ['sip', ''],
  ])('of any other kind has the scheme, for %j: %j', (text, scheme) => {
    expect(uriScheme(text)).toBe(scheme);
  });
});

describe('host and port', () => {
  it.each([
    ['H', 'h', null],
    ['h:1', 'h', 1],
    ['h \t: \t65535', 'h', 65_535],
    ['192.0.2.1:5061', '192.0.2.1', 5_061],
    ['[2001:DB8::1]', '2001:db8::1', null],
    ['[::]:5061', '::', 5_061],
    ['a-b_c.d.', 'a-b_c.d.', null],
  ])('are read from %j', (text, host, port) => {
    expect(parseHostPort(text)).toEqual({ host, port });
  });

  it.each([
    '',
    ':1',
    'h:',
    'h:0',
    'h:65536',
    'h:123456',
    'h:1x',
    'x[::1]',
    '[::1]x',
    '[h]',
    '[1234]',
    '[]',
    '::1',
    'h h',
    '-h',
    'h-',
    'a..b',
    '[::g]',
  ])('are not read from %j', (text) => {
    expect(parseHostPort(text)).toBeUndefined();
  });
});

it.each([
  ['', {}],
  [';a=b;c', { a: 'b', c: '' }],
  [' ; A = B ; c = ', { a: 'B', c: '' }],
  [';a="x;y=\\";";b=z', { a: '"x;y=\\";"', b: 'z' }],
  [';a=1;A=2', { a: '1' }],
  [';;=x;a', { a: '' }],
  [';a=b=c', { a: 'b=c' }],
])('the parameters of %j are %j', (text, params) => {
  expect(parseParams(text)).toEqual(new Map(Object.entries(params)));
});

describe('a name and address', () => {
  it.each([
    ['sip:a@b', '', 'sip:a@b', {}],
    [' sip:a@b ;x=y', '', 'sip:a@b', { x: 'y' }],
    [' Ann < sip:a@b;c > ;x=y ', 'Ann', 'sip:a@b;c', { x: 'y' }],
    ['<sip:a@b>', '', 'sip:a@b', {}],
    ['"A \\" <x>" <sip:a@b>;x=">"', '"A \\" <x>"', 'sip:a@b', { x: '">"' }],
  ])('are read from %j', (text, displayName, uri, params) => {
    expect(parseNameAddr(text)).toEqual({ displayName, uri, params: new Map(Object.entries(params)) });
  });

  it.each([
    '',
    ';x=y',
    '<>',
    '< >',
    'sip:a b',
    'sip:a,b',
    'sip:a"b"',
    'sip:a\tb',
    '<sip:a',
    '<sip:a>x',
    '<sip:a> x;y',
    '"A <sip:a>',
    '"A\\"<sip:a>',
  ])('are not read from %j', (text) => {
    expect(parseNameAddr(text)).toBeUndefined();
  });
});

describe('the tag', () => {
  it.each([
    ['<sip:a@b>;tag=1', '1'],
    ['Ann <sip:a@b>;tag=1;x=y', '1'],
    ['<sip:a@b> ; Tag = 1', '1'],
    ['<sip:a@b>;x=y;tag=1', '1'],
    ['sip:a@b;tag=1', '1'],
    ['"A" <sip:a@b>;tag=1;x=">"', '1'],
    ['">;tag=2" <sip:a@b>;tag=1', '1'],
    ['">;tag=2" <sip:a@b>', undefined],
    ['">;tag=2" <sip:a@b>;x=y', undefined],
    ['<sip:a@b;tag=2>', undefined],
    ['<sip:a@b>;tag=', undefined],
    ['<sip:a@b>;tag=;x', undefined],
    ['<sip:a@b>;tag= ', undefined],
    ['"A>" <sip:a@b>', undefined],
    ['<sip:a@b>;tag', undefined],
    ['<sip:a@b>;xtag=1', undefined],
    ['<sip:a@b>', undefined],
    ['sip:a@b', undefined],
    ['<sip:a@b;tag=2', undefined],
    ['', undefined],
  ])('of %j is %j', (value, tag) => {
    expect([tagOf(value), hasTag(value)]).toEqual([tag, tag !== undefined]);
  });
});
