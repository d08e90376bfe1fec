import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { sipServer } from '../../../src/supervisor/doctor.js';

it('trunkline doctor checks a separate SIP server at drachtio.url, and names the remedy when it is not there', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  expect(await sipServer(url)).toMatchObject({ isFine: true, detail: `accepts connections at ${url}` });
  await new Promise((resolve) => server.close(resolve));
  expect(await sipServer(url)).toEqual({
    name: 'SIP server (drachtio.url)',
    isFine: false,
    detail: `cannot be reached at ${url}: connect ECONNREFUSED ${url}`,
    remedy: 'start drachtio-server there, or correct drachtio.url',
  });
});
