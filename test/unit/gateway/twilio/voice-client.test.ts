import { beforeEach, describe, expect, it } from 'vitest';
import type {
  GuardedAnswer,
  GuardedClient,
  GuardedClientOptions,
  GuardedFailure,
  GuardedRequest,
} from '../../../../src/gateway/net/guarded-client.js';
import type { VoiceRequest } from '../../../../src/gateway/ports/ports.js';
import { twilioSignature } from '../../../../src/gateway/twilio/signature.js';
import { HttpAudioServer, HttpVoiceServer } from '../../../../src/gateway/twilio/voice-client.js';
import { MAX_XML_BYTES } from '../../../../src/gateway/twilio/xml.js';
import { err, ok, type Result } from '../../../../src/lib/result.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const URL_OF_BOT = 'https://bot.example/voice?shop=7';
const MAX_AUDIO_BYTES = 8_388_608;
const ENDED = new AbortController().signal;
const OPTIONS = { allowPrivate: false, caPem: null, timeoutMs: 15_000, clock: new VirtualClock() };
const POST: VoiceRequest = { url: URL_OF_BOT, method: 'POST', parameters: { To: '+1 555', From: 'ann&bob' }, token: 'secret' };
const GET: VoiceRequest = { ...POST, method: 'GET' };

const answering = (status: number, headers: GuardedAnswer['headers'] = {}, text = '<Response/>'): Result<GuardedAnswer, GuardedFailure> =>
  ok({ status, headers, bytes: Buffer.from(text), text });
const LATE: Result<GuardedAnswer, GuardedFailure> = err({ kind: 'timeout', text: 'did not answer within 15000 ms' });

let sent: { readonly client: GuardedClientOptions; readonly url: string; readonly request: GuardedRequest }[];
let closed: number[];
let answer: Result<GuardedAnswer, GuardedFailure>;
let server: HttpVoiceServer;
let files: HttpAudioServer;

beforeEach(() => {
  [sent, closed, answer] = [[], [], answering(200)];
  const open = (client: GuardedClientOptions): Pick<GuardedClient, 'send' | 'close'> => ({
    send: (url, request) => {
      sent.push({ client, url: url.href, request });
      return Promise.resolve(answer);
    },
    close: () => Promise.resolve(void closed.push(client.maxResponseBytes)),
  });
  [server, files] = [new HttpVoiceServer(OPTIONS, open), new HttpAudioServer(OPTIONS, open)];
});

describe('a voice webhook', () => {
  it('by POST has its parameters in a signed form', async () => {
    expect(await server.document(POST, ENDED)).toEqual(ok({ text: '<Response/>', contentType: null, setCookies: [] }));
    expect(sent).toEqual([
      {
        client: { allowPrivate: false, caPem: null, clock: OPTIONS.clock, maxResponseBytes: MAX_XML_BYTES },
        url: URL_OF_BOT,
        request: {
          method: 'POST',
          headers: {
            'x-twilio-signature': twilioSignature('secret', URL_OF_BOT, POST.parameters),
            accept: 'text/xml, application/xml',
            'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
          },
          body: 'To=%2B1+555&From=ann%26bob',
          signal: ENDED,
          timeoutMs: 15_000,
        },
      },
    ]);
  });

  it('by GET has them in the URL, which is signed', async () => {
    await server.document({ ...GET, cookie: 'a=1' }, ENDED);
    const url = `${URL_OF_BOT}&To=%2B1+555&From=ann%26bob`;
    const headers = { 'x-twilio-signature': twilioSignature('secret', url), accept: 'text/xml, application/xml', cookie: 'a=1' };
    expect(sent).toMatchObject([{ url, request: { method: 'GET', body: null } }]);
    expect(sent[0]?.request.headers).toEqual(headers);
  });

  it.each([
    ['#rc=2&rp=all', ''],
    ['#', ''],
    ['#a#b', ''],
    ['?x=1#rc=2', '?x=1'],
  ])('is signed without the fragment of its URL (%s), which no server gets', async (suffix, seen) => {
    const base = 'https://bot.example/voice';
    await server.document({ ...POST, url: base + suffix }, ENDED);
    expect(sent[0]?.request.headers['x-twilio-signature']).toBe(twilioSignature('secret', base + seen, POST.parameters));
    await server.document({ ...GET, url: base + suffix }, ENDED);
    const query = `${seen === '' ? '?' : `${seen}&`}To=%2B1+555&From=ann%26bob`;
    expect(sent[1]?.request.headers['x-twilio-signature']).toBe(twilioSignature('secret', base + query));
    await server.notify({ ...POST, url: base + suffix });
    expect(sent[2]?.request.headers['x-twilio-signature']).toBe(twilioSignature('secret', base + seen, POST.parameters));
  });

  it('returns the type of its answer', async () => {
    answer = answering(200, { 'content-type': 'application/json; charset=utf-8' }, '{}');
    expect(await server.document(GET, ENDED)).toMatchObject({ value: { text: '{}', contentType: 'application/json; charset=utf-8' } });
  });

  it.each([
    ['one', 'a=1', ['a=1']],
    ['several', ['a=1', 'b=2'], ['a=1', 'b=2']],
  ])('may set %s cookies', async (_what, header, setCookies) => {
    answer = answering(200, { 'set-cookie': header });
    expect(await server.document(GET, ENDED)).toMatchObject({ value: { setCookies } });
  });

  it.each([
    [answering(199), 'The voice webhook answered 199.'],
    [answering(302), 'The voice webhook answered 302.'],
    [answering(300), 'The voice webhook answered 300.'],
    [answering(500), 'The voice webhook answered 500.'],
    [LATE, 'The voice webhook did not answer within 15000 ms.'],
  ])('that fails returns the cause', async (failed, error) => {
    answer = failed;
    expect(await server.document(POST, ENDED)).toEqual(err(error));
    expect(await server.notify(POST)).toEqual(err(error));
  });

  it('for the status of a call outlives the call, and its answer is not read', async () => {
    answer = answering(204);
    expect(await server.notify(POST)).toEqual(ok(true));
    expect(sent[0]?.request.signal).toBeUndefined();
    expect(sent[0]?.request.isRead?.(200)).toBe(false);
  });
});

describe('the user in a URL', () => {
  it.each([
    ['ann:s3cret@', 'ann:s3cret'],
    ['ann@', 'ann:'],
    ['a%20n:p%40ss%C3%BC@', 'a n:p@ssü'],
    // `%` escapes nothing here.
    ['100%:50%zz@', '100%:50%zz'],
  ])('(%s) goes into a header, and is not signed', async (user, credentials) => {
    const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    await server.document({ ...POST, url: URL_OF_BOT.replace('//', `//${user}`) }, ENDED);
    await files.audio(`https://${user}cdn.example/a.wav`, ENDED);
    expect(sent).toMatchObject([
      { url: URL_OF_BOT, request: { headers: { authorization } } },
      { url: 'https://cdn.example/a.wav', request: { headers: { authorization } } },
    ]);
    expect(sent[0]?.request.headers['x-twilio-signature']).toBe(twilioSignature('secret', URL_OF_BOT, POST.parameters));
  });
});

describe('an audio file', () => {
  it('may have 8 MiB', async () => {
    answer = answering(200, {}, 'RIFF');
    expect(await files.audio('https://cdn.example/a.wav', ENDED)).toEqual(ok(Buffer.from('RIFF')));
    expect(sent).toEqual([
      {
        client: { allowPrivate: false, caPem: null, clock: OPTIONS.clock, maxResponseBytes: MAX_AUDIO_BYTES },
        url: 'https://cdn.example/a.wav',
        request: { method: 'GET', headers: { accept: 'audio/*' }, body: null, signal: ENDED, timeoutMs: 15_000 },
      },
    ]);
  });

  it.each([
    [answering(204), 'The server of the audio answered 204.'],
    [LATE, 'The server of the audio did not answer within 15000 ms.'],
  ])('that cannot be fetched returns the cause', async (failed, error) => {
    answer = failed;
    expect(await files.audio('https://cdn.example/a.wav', ENDED)).toEqual(err(error));
  });
});

it('a voice client closes its connections to both servers', async () => {
  await server.close();
  await files.close();
  expect(closed).toEqual([MAX_XML_BYTES, MAX_AUDIO_BYTES]);
});
