import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callsCommand } from '../../../src/cli/calls.js';
import { numberCommand } from '../../../src/cli/number.js';
import { environmentLayer } from '../../../src/config/layers.js';
import { parseE164 } from '../../../src/gateway/model/e164.js';
import { callOf, endedCall } from '../gateway/store/store-contract.js';
import { runCommand } from '../../support/run-command.js';
import type { NumberRecord } from '../../../src/gateway/model/records.js';
import { testCertificates } from '../../support/certificates.js';
import { EVERY_OPTION, everySetting, OPTION_NAMES, TRUNK_NAMES } from '../../support/whole-number.js';
import { openApi, type ApiFixture } from '../gateway/api/api-fixture.js';

const NUMBER = '+15551234567';
const HTTP = 'http://127.0.0.1:8080';
let api: ApiFixture;
let directory: string;
let printed: string[];
let notes: string[];
let errors: string;
let sent: Request[];
let environment: Record<string, string>;

beforeEach(async () => {
  api = await openApi();
  directory = await mkdtemp(join(tmpdir(), 'trunkline-cli-'));
  await writeFile(join(directory, 'ready.json'), JSON.stringify({ http: HTTP, api_key: api.key, org_id: api.orgId }));
  [printed, notes, errors, sent, environment] = [[], [], '', [], {}];
});
afterEach(() => rm(directory, { recursive: true }));

/** Runs one command against the API without a socket; resolves with its exit code. */
async function run(...args: string[]): Promise<number> {
  const fetch: ApiFixture['fetch'] = (request) => {
    if (!(request as Request).url.endsWith('/v1/organizations')) sent.push(request as Request);
    return api.fetch(request);
  };
  const print = (line: string): void => void printed.push(line);
  const note = (line: string): void => void notes.push(line);
  const io = { config: () => ({ data_dir: directory }), environment, print, note, fetch, organizations: () => api.stores.orgs.list() };
  const command = args[0] === 'number' ? numberCommand(io) : callsCommand(io);
  return runCommand(command, args.slice(1), { print: (text) => void printed.push(text), error: (text) => (errors += text) });
}

const stored = () => api.stores.numbers.get(api.orgId, parseE164(NUMBER)!);

describe('trunkline number', () => {
  it('attaches inbound, with the given options', async () => {
    expect(await run('number', 'attach', NUMBER, '--allow-from', '203.0.113.0/24', '--allow-from', '::1', '--max-calls', '5')).toBe(0);
    const options = {
      allowed_sources: ['203.0.113.0/24', '::1'],
      max_concurrent_calls: 5,
      max_calls_per_second: null,
      media_encryption: 'required',
    };
    expect(await stored()).toMatchObject({ inbound: { agent_id: null, options }, outbound: null });
    expect(printed.join()).toMatch(/^Attached \+15551234567 \(IN-/);
  });

  it('gives a trunk credentials, with the password from a file', async () => {
    const file = join(directory, 'password');
    await writeFile(file, 's3 cret\n');
    await run('number', 'attach', NUMBER, '--outbound', 'a.example', '--username', 'u', '--password-file', file, '--realm', 'r');
    expect(await stored()).toMatchObject({ outbound: { sip_endpoint: 'a.example', username: 'u', password: 's3 cret', realm: 'r' } });
    expect(await run('number', 'update', NUMBER, '--outbound', 'b.example')).toBe(0);
    expect(await stored()).toMatchObject({ outbound: { sip_endpoint: 'b.example', username: 'u', password: 's3 cret', realm: 'r' } });
    expect(printed.join()).not.toContain('s3 cret');
  });

  it('attaches outbound alone, and both', async () => {
    await run('number', 'attach', NUMBER, '--outbound', 'pbx.example.com');
    expect(await stored()).toMatchObject({ inbound: null, outbound: { sip_endpoint: 'pbx.example.com' } });
    await run('number', 'attach', NUMBER, '--outbound', 'other.example.com', '--inbound');
    expect(await stored()).toMatchObject({ inbound: { agent_id: null }, outbound: { sip_endpoint: 'other.example.com' } });
  });

  it('sets and removes the voice webhook', async () => {
    await run('number', 'attach', NUMBER, '--voice-url', 'https://app.example/voice', '--status-callback', 'https://app.example/status');
    const { voice_url: voiceUrl, status_callback: callback } = (await stored())!.inbound!.options;
    expect([voiceUrl, callback]).toEqual(['https://app.example/voice', 'https://app.example/status']);
    await run('number', 'update', NUMBER, '--voice-url', 'none');
    const { options } = (await stored())!.inbound!;
    expect([Object.keys(options).includes('voice_url'), options.status_callback]).toEqual([false, 'https://app.example/status']);
  });

  it('keeps at update the options that are not given, of the record that it read', async () => {
    await run('number', 'attach', NUMBER, '--allow-from', '203.0.113.0/24', '--max-calls', '5');
    const { updated_at: version } = (await stored())!;
    expect(await run('number', 'update', NUMBER, '--max-calls', 'none', '--outbound', 'pbx.example.com')).toBe(0);
    expect(await stored()).toMatchObject({
      inbound: { options: { allowed_sources: ['203.0.113.0/24'], max_concurrent_calls: null } },
      outbound: { sip_endpoint: 'pbx.example.com' },
    });
    const updates = sent.filter(({ url }) => url.endsWith('/sip/update'));
    expect(updates[0]?.headers.get('if-match')).toBe(`"${version}"`);
    expect(updates).toHaveLength(2);
  });

  describe('for a number with every option', () => {
    let before: NumberRecord;
    beforeEach(async () => {
      api = await openApi({ allowPlain: true });
      await writeFile(join(directory, 'ready.json'), JSON.stringify({ http: HTTP, api_key: api.key, org_id: api.orgId }));
      const inbound = { agent_id: null, options: EVERY_OPTION };
      await api.stores.numbers.attach(api.orgId, parseE164(NUMBER)!, { inbound, outbound: await everySetting() });
      before = (await stored())!;
    });

    const OPTIONS: Readonly<Record<string, readonly [flag: string, text: string, value: unknown]>> = {
      allowed_sources: ['--allow-from', '198.51.100.7', ['198.51.100.7']],
      max_concurrent_calls: ['--max-calls', '6', 6],
      max_calls_per_second: ['--max-calls-per-second', 'none', null],
      media_encryption: ['--media-encryption', 'required', 'required'],
      refer: ['--refer', 'yes', true],
      no_reinvite: ['--reinvite', 'yes', false],
      headers_to_agent: ['--header-to-agent', 'Call-Info', ['Call-Info']],
      headers_from_agent: ['--header-from-agent', 'none', []],
      challenge: ['--challenge-username', 'other', { username: 'other', password: 's3 cret' }],
      voice_url: ['--voice-url', 'https://other.example/', 'https://other.example/'],
      voice_fallback_url: ['--voice-fallback-url', 'none', undefined],
      status_callback: ['--status-callback', 'https://other.example/', 'https://other.example/'],
      status_callback_events: ['--status-callback-event', 'answered', ['answered']],
    };
    it.each(OPTION_NAMES)('changes %s, and keeps every other option', async (name) => {
      const [flag, text, value] = OPTIONS[name] ?? ['', '', ''];
      expect([await run('number', 'update', NUMBER, flag, text), errors]).toEqual([0, '']);
      const { [name as keyof typeof EVERY_OPTION]: _old, ...others } = EVERY_OPTION;
      expect((await stored())?.inbound?.options).toEqual(value === undefined ? others : { ...others, [name]: value });
      expect((await stored())?.outbound).toEqual(before.outbound);
    });

    it('changes the password of the challenge, which it never shows, and takes the challenge away', async () => {
      await writeFile(join(directory, 'password'), 'n3w\n');
      expect(await run('number', 'update', NUMBER, '--challenge-password-file', join(directory, 'password'))).toBe(0);
      expect((await stored())?.inbound?.options).toEqual({ ...EVERY_OPTION, challenge: { username: 'acme', password: 'n3w' } });
      expect(printed.join('\n')).not.toContain('n3w');
      expect(await run('number', 'update', NUMBER, '--challenge-username', 'none')).toBe(0);
      const { challenge: _old, ...others } = EVERY_OPTION;
      expect((await stored())?.inbound?.options).toEqual(others);
    });

    it.each(TRUNK_NAMES)('changes %s of the trunk, and keeps every other setting', async (name) => {
      const { ca, cert, key } = await testCertificates();
      const fileOf = async (file: string, text: string): Promise<string> => {
        await writeFile(join(directory, file), text);
        return join(directory, file);
      };
      const settings: Readonly<Record<string, readonly [flags: readonly string[], value: unknown]>> = {
        sip_endpoint: [['--outbound', 'other.example'], 'other.example'],
        username: [['--username', 'other'], 'other'],
        password: [['--password-file', await fileOf('password', 'n3w')], 'n3w'],
        realm: [['--realm', 'other.example'], 'other.example'],
        ca: [['--ca-file', await fileOf('ca', `${ca}${ca}`)], `${ca}${ca}`],
        tls_names: [['--tls-name', 'other.example'], ['other.example']],
        client_certificate: [
          ['--certificate-file', await fileOf('cert', `${cert}${ca}`), '--key-file', await fileOf('key', key)],
          { certificate: `${cert}${ca}`, key },
        ],
        caller_id_header: [['--caller-id-header', 'From'], 'From'],
        registrar: [['--registrar', 'other.example'], 'other.example'],
        options_interval_s: [['--options-interval', '30'], 30],
        no_reinvite: [['--outbound-reinvite', 'yes'], false],
        headers_from_agent: [
          ['--outbound-header-from-agent', 'X-*', '--outbound-header-from-agent', 'Subject'],
          ['X-*', 'Subject'],
        ],
      };
      const [flags, value] = settings[name] ?? [[], ''];
      expect([await run('number', 'update', NUMBER, ...flags), errors]).toEqual([0, '']);
      expect((await stored())?.outbound).toEqual({ ...before.outbound, [name]: value });
      expect((await stored())?.inbound).toEqual(before.inbound);
    });

    it('shows each option and each setting of the trunk, but no secret', async () => {
      await run('number', 'show', NUMBER);
      const text = printed.join('\n');
      for (const name of OPTION_NAMES) expect(text).toContain(name === 'allowed_sources' ? 'allowed from' : name.replaceAll('_', ' '));
      for (const name of TRUNK_NAMES.filter((one) => !['sip_endpoint', 'password'].includes(one)))
        expect(text).toContain(`trunk's ${name.replaceAll('_', ' ')}`);
      expect(text).not.toMatch(/s3 cret|PRIVATE KEY/);
    });
  });

  it('refuses settings of a trunk that the number does not have', async () => {
    await run('number', 'attach', NUMBER);
    expect([await run('number', 'update', NUMBER, '--username', 'u'), errors]).toEqual([
      1,
      'error: +15551234567 has no trunk yet: give --outbound too\n',
    ]);
  });

  it('detaches what is attached, or one direction', async () => {
    await run('number', 'attach', NUMBER, '--outbound', 'pbx.example.com', '--inbound');
    expect(await run('number', 'detach', NUMBER, '--outbound')).toBe(0);
    expect(await stored()).toMatchObject({ outbound: null });
    expect(await run('number', 'detach', NUMBER)).toBe(0);
    expect([await stored(), printed.at(-1)]).toEqual([null, 'Detached +15551234567: inbound.']);
    expect([await run('number', 'detach', NUMBER), errors]).toEqual([
      1,
      'error: +15551234567 is not attached (trunkline number list shows attached numbers)\n',
    ]);
  });

  it('lists, shows and checks, as text and as JSON', async () => {
    await run('number', 'attach', NUMBER);
    printed = [];
    await run('number', 'list');
    expect(printed[0]).toMatch(/^NUMBER +ID +INBOUND +OUTBOUND +CHANGED$/);
    expect(printed[1]).toMatch(/^\+15551234567 +IN-\S+ +default agent +- +\S+Z$/);
    await run('number', 'attach', '+15551234568', '--voice-url', 'https://app.example.com/voice');
    printed = [];
    await run('number', 'list');
    expect(printed.at(-1)).toContain('https://app.example.com/voice');
    await run('number', 'detach', '+15551234568');
    printed = [];
    await run('number', 'list', '--json', '--skip', '1');
    expect(printed.at(-1)).toBe('[]');
    await run('number', 'show', '15551234567', '--json');
    expect(JSON.parse(printed.at(-1) ?? '')).toEqual(await stored());
    await run('number', 'show', NUMBER);
    expect(printed.join('\n')).toContain('max concurrent calls  no limit');
    await run('number', 'check', NUMBER, '--source', '203.0.113.7');
    expect(printed.at(-1)).toBe('accept (200): Accepted.');
  });

  it.each([
    [['attach', '12'], /^error: The request is not valid: phone_number must be a phone number in E\.164 form.* \[VALIDATION\]\n$/],
    [['attach', NUMBER, '--agent', 'nobody'], /^error: .*agent_id must be the id of an agent of yours, or null/],
    [['attach', NUMBER, '--media-encryption', 'optional'], /^error: .*must be "required"/],
    [['attach', NUMBER, '--max-calls', '-1'], /must be a number, or "none"/],
    [['update', NUMBER], /^error: nothing to change: set at least one option/],
    [['check', NUMBER, '--sdp', '/nowhere'], /^error: cannot read \/nowhere: ENOENT.*\n$/],
    [['list', '--take', '0'], /^error: .*take must be an integer from 1 to 1000/],
    [
      ['list', '--key', 'tl_wrong'],
      /^error: The authorization header must hold a valid API key \(--key, or TRUNKLINE_API_KEY\) \[UNAUTHENTICATED\]\n$/,
    ],
    [['list', '--api-url', 'ftp://a.example', '--key', 'x'], /^error: the URL must be http:\/\/ or https:\/\/, without a user\n$/],
    [['list', '--api-url', 'http://api.example'], /^error: no API key: set --key or TRUNKLINE_API_KEY\n$/],
  ])('fails for number %j with an error', async (args, message) => {
    expect(await run('number', ...args)).toBe(1);
    expect(errors).toMatch(message);
  });

  it('calls the running gateway, with its key, unless it is given another one', async () => {
    await run('number', 'list');
    environment = { TRUNKLINE_API_URL: 'https://api.example/', TRUNKLINE_API_KEY: api.key };
    await run('number', 'list');
    await run('number', 'list', '--api-url', 'http://other.example', '--key', `tl_${'x'.repeat(32)}`);
    expect(sent.map(({ url }) => url)).toEqual([
      `${HTTP}/sip?take=100&skip=0`,
      'https://api.example/sip?take=100&skip=0',
      'http://other.example/sip?take=100&skip=0',
    ]);
    expect(sent[2]?.headers.get('authorization')).toBe(`Bearer tl_${'x'.repeat(32)}`);
    await rm(join(directory, 'ready.json'));
    environment = {};
    expect([await run('number', 'list'), errors]).toEqual([1, expect.stringMatching(/no running gateway: .*ready\.json not found/)]);
  });

  it('names in each answer, and in a refusal, the organization that it acted for, except with an operator key', async () => {
    await run('number', 'attach', NUMBER);
    await run('number', 'list', '--json');
    await run('calls', 'list');
    await run('number', 'attach', '12');
    expect(notes).toEqual(Array.from({ length: 4 }, () => `Organization: acme (${api.orgId})`));
    const { key } = await api.stores.keys.create(null, 'operator');
    await run('number', 'list', '--key', key);
    expect(notes.at(-1)).toBe('Organization: all (an operator key)');
  });

  it('does not use the demo key once another organization exists', async () => {
    const { org_id: other } = await api.stores.orgs.create({ name: 'My company', sip_enabled: true });
    expect(await run('number', 'attach', NUMBER)).toBe(1);
    expect(errors).toMatch(/^error: whose numbers and calls\? There is "My company" .*TRUNKLINE_API_KEY.*key create "My company"/);
    expect(await stored()).toBeNull();
    environment = { TRUNKLINE_API_KEY: (await api.stores.keys.create(other, 'cli')).key };
    expect(await run('number', 'attach', NUMBER)).toBe(0);
    expect(notes.at(-1)).toBe(`Organization: My company (${other})`);
    expect(await api.stores.numbers.get(other, parseE164(NUMBER)!)).not.toBeNull();
    environment = {};
    expect(await run('number', 'list', '--key', api.key)).toBe(0);
  });

  it('does not read its variables as settings', () => {
    expect(environmentLayer({ TRUNKLINE_API_URL: 'http://a', TRUNKLINE_API_KEY: 'tl_x' }, {}).settings).toEqual({});
  });
});

describe('trunkline calls place', () => {
  it('places a call with the given settings, and prints its id', async () => {
    const places: unknown[] = [];
    api = await openApi({
      placeCall: {
        kept: () => Promise.resolve(),
        fromRefusal: () => null,
        priceOf: () => ({ ok: true, value: 0.01 }),
        refusal: () => null,
        place: (call) => {
          places.push(call);
          // As the call's reservation does.
          void api.stores.placements.keep(api.orgId, { key: 'k', callId: call.callId });
          return { ok: true, value: call.callId };
        },
      },
    });
    await writeFile(join(directory, 'ready.json'), JSON.stringify({ http: HTTP, api_key: api.key, org_id: api.orgId }));
    await api.stores.numbers.attach(api.orgId, parseE164(NUMBER)!, { outbound: { sip_endpoint: 'a.example' } });
    const flags = ['--from', NUMBER, '--max-duration', '3', '--ring-timeout', '20', '--metadata', '{"a":1}', '--idempotency-key', 'k'];
    flags.push('--sip-header', 'X-Ticket: 4711', '--sip-header', 'User-to-User: 00c8;encoding=hex');
    expect(await run('calls', 'place', '+4930123456', ...flags)).toBe(0);
    const sipHeaders = { 'X-Ticket': '4711', 'User-to-User': '00c8;encoding=hex' };
    expect(places).toMatchObject([
      { to: '+4930123456', from: NUMBER, ringTimeoutMs: 20_000, agent: { max_duration: 3, metadata: { a: 1 } }, sipHeaders },
    ]);
    expect(printed.join()).toMatch(/^Calling \+4930123456: [0-9a-f-]{36}/);
    expect(await run('calls', 'place', '+4930123456', ...flags)).toBe(0);
    expect(places).toHaveLength(1);
  });

  it('ends with code 1 when the operator does not allow it', async () => {
    api = await openApi({
      placeCall: {
        kept: () => Promise.resolve(),
        fromRefusal: () => null,
        priceOf: () => ({ ok: true, value: 0.01 }),
        refusal: () => ({ code: 'DIAL_NOT_ALLOWED', message: 'Not dialled: no prefix' }),
        place: () => ({ ok: false, error: 'DRAINING' }),
      },
    });
    await writeFile(join(directory, 'ready.json'), JSON.stringify({ http: HTTP, api_key: api.key, org_id: api.orgId }));
    await api.stores.numbers.attach(api.orgId, parseE164(NUMBER)!, { outbound: { sip_endpoint: 'a.example' } });
    expect(await run('calls', 'place', '+4930123456', '--from', NUMBER)).toBe(1);
    expect(errors).toContain('Not dialled: no prefix');
  });
});

describe('trunkline calls', () => {
  it('lists and shows calls; nothing that a caller sent reaches the terminal as a command', async () => {
    const record = callOf(api.orgId, api.clock.wallMs(), {
      from: '\u001b[2Jkim',
      transcript: [{ speaker: 'caller', text: 'A room\u0007.', at_ms: 1500 }],
    });
    await api.stores.calls.write(endedCall(record));
    await run('calls', 'list');
    expect(printed[0]).toMatch(/^BEGAN +ID +FROM +TO +WHAT +SECONDS$/);
    expect(printed[1]).toContain(`${record.call_id}  \ufffd[2Jkim`);
    await run('calls', 'show', record.call_id);
    expect(printed.at(-1)).toBe('     1.5 s  caller  A room\ufffd.');
    await run('calls', 'show', record.call_id, '--json');
    expect(JSON.parse(printed.at(-1) ?? '')).toMatchObject({ call_id: record.call_id, from: record.from });
    await run('calls', 'list', '--reason', 'CALLER_HANGUP', '--limit', '1', '--json');
    expect(JSON.parse(printed.at(-1) ?? '')).toMatchObject({ calls: [{ call_id: record.call_id }] });
  });

  it('shows what to do about a call that went wrong, and every value at a distance from its label', async () => {
    const record = callOf(api.orgId, api.clock.wallMs(), {
      reason: 'SRTP_REQUIRED',
      reason_detail: 'RTP/AVP',
      signalling_error: 'no route',
    });
    await api.stores.calls.write(endedCall(record));
    await run('calls', 'show', record.call_id);
    expect(printed).toContainEqual(expect.stringMatching(/^what to do +Turn on SRTP with SDES on the carrier's trunk/));
    expect(printed).toContainEqual(expect.stringMatching(/^reason, in detail +RTP\/AVP$/));
    expect(printed).toContainEqual(expect.stringMatching(/^signalling error +no route$/));
  });

  it('traces a call, one line an event, and with the messages', async () => {
    const record = callOf(api.orgId, api.clock.wallMs());
    const trace = [
      {
        at: '2026-01-01T00:00:00.000Z',
        source: 'sip' as const,
        direction: 'in' as const,
        summary: 'INVITE sip:a@b',
        text: 'INVITE sip:a@b SIP/2.0\r\nVia: x\r\n\r\n',
      },
      { at: '2026-01-01T00:00:00.004Z', source: 'gateway' as const, direction: null, summary: 'accepted', text: null },
    ];
    await api.stores.calls.write({ ...endedCall(record), trace });
    await run('calls', 'trace', record.call_id);
    expect(printed).toEqual(['00:00:00.000  sip       → INVITE sip:a@b', '00:00:00.004  gateway     accepted']);
    printed = [];
    await run('calls', 'trace', record.call_id, '--full');
    expect(printed.slice(1, 3)).toEqual(['    INVITE sip:a@b SIP/2.0', '    Via: x']);
  });

  it.each([
    [['show', 'nobody'], /^error: There is no such call \[NOT_FOUND\]\n$/],
    [['trace', '153ee546-05b9-4d95-bd6d-f899f082d48b'], /^error: There is no such call \[NOT_FOUND\]\n$/],
    [['stop', '153ee546-05b9-4d95-bd6d-f899f082d48b'], /^error: There is no such call in progress \[NOT_FOUND\]\n$/],
    [['list', '--reason', 'NONE'], /^error: .*reason must be a code of the table of reasons/],
    [['list', '--since', 'yesterday'], /^error: .*since must be a time in ISO 8601/],
  ])('fails for calls %j with an error', async (args, message) => {
    expect(await run('calls', ...args)).toBe(1);
    expect(errors).toMatch(message);
  });
});
