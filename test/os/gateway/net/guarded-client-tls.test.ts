import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { beforeAll, describe, expect, it } from 'vitest';
import { HttpToolRunner } from '../../../../src/gateway/agents/tool-runner.js';
import { HttpAudioServer, HttpVoiceServer } from '../../../../src/gateway/twilio/voice-client.js';
import { Poster } from '../../../../src/gateway/webhooks/post.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { systemClock as clock } from '../../../../src/lib/system-clock.js';
import { TestCa } from '../../../support/openssl.js';

let ca: TestCa;
let server: Server;
let url: string;

beforeAll(async () => {
  ca = await TestCa.create();
  const { certFile, keyFile } = await ca.issue('server', 'IP:127.0.0.1');
  server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (_request, response) => response.end('{}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
  return async () => {
    server.closeAllConnections();
    server.close();
    await ca.remove();
  };
});

const never = new AbortController().signal;
const TOOL = {
  name: 'book',
  description: '',
  speech: null,
  method: 'POST',
  headers: {},
  body: null,
  input_schema: { type: 'object', required: [], properties: {} },
  response: {},
};
const REQUEST = { method: 'GET', parameters: {}, token: 'secret' } as const;

/** What is reached over https, by its purpose. */
const DOORS = {
  'a webhook or callback': async (caPem: string | null) => {
    const poster = new Poster({ allowPrivate: true, caPem, timeoutMs: 60_000, clock });
    const answer = await poster.post(url, '{}', {}, never);
    await poster.close();
    return answer;
  },
  'a voice_url': async (caPem: string | null) => {
    const voice = new HttpVoiceServer({ allowPrivate: true, caPem, timeoutMs: 60_000, clock });
    const answer = await voice.document({ ...REQUEST, url }, never);
    await voice.close();
    return answer;
  },
  'an audio file': async (caPem: string | null) =>
    new HttpAudioServer({ allowPrivate: true, caPem, timeoutMs: 60_000, clock }).audio(url, never),
  'a tool': async (caPem: string | null) => {
    const resultPaths = { pick: () => Promise.resolve({}), close: () => Promise.resolve() };
    const runner = new HttpToolRunner({ allowPrivate: true, caPem, clock, resultPaths: resultPaths as never });
    const answer = await runner.run(newUuid(), { ...TOOL, url, timeout: 60_000 } as never, {}, never);
    await runner.close();
    return answer;
  },
};

describe.each(Object.entries(DOORS))('%s behind a CA of the operator', (_what, reach) => {
  it('is reached with that CA, and not without it', async () => {
    expect(JSON.stringify(await reach(null))).toMatch(/could not be reached \((UNABLE|SELF_SIGNED|DEPTH)/);
    expect(JSON.stringify(await reach(ca.ca))).not.toMatch(/could not be reached/);
  });
});
