import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { healthCommand } from '../../../src/cli/health.js';
import { loadConfig } from '../../../src/config/load.js';

let server: Server | undefined;

afterEach(() => server?.close());

async function asked(
  status: number,
  body: string,
  ...flags: readonly string[]
): Promise<{ printed: string[]; url: string; error: unknown }> {
  let url = '';
  server = createServer((request, response) => {
    url = request.url ?? '';
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const port = (server.address() as AddressInfo).port;
  return { ...(await run(port, ...flags)), url };
}

async function run(port: number, ...flags: readonly string[]): Promise<{ printed: string[]; error: unknown }> {
  const config = loadConfig({ file: undefined, set: [`http.port=${String(port)}`], environment: {} });
  const printed: string[] = [];
  const error: unknown = await healthCommand(
    () => config,
    (line) => printed.push(line),
  )
    .parseAsync([...flags], { from: 'user' })
    .then(
      () => null,
      (reason: unknown) => reason,
    );
  return { printed, error };
}

it('trunkline health reports that the gateway accepts calls when /readyz does', async () => {
  expect(await asked(200, '{}')).toEqual({ printed: ['the gateway accepts calls'], url: '/readyz', error: null });
});

it('trunkline health fails with the part that is not ready', async () => {
  const { error } = await asked(503, JSON.stringify({ status: 'error', message: 'Not ready: redis' }));
  expect(error).toMatchObject({ message: 'Not ready: redis' });
});

it('trunkline health fails when something else answers at the port, and when nothing does', async () => {
  const { error, url } = await asked(404, 'hello');
  expect([url, (error as Error).message]).toEqual(['/readyz', expect.stringMatching(/\/readyz answered 404$/)]);
  const port = (server!.address() as AddressInfo).port;
  await new Promise((resolve) => server!.close(resolve));
  expect((await run(port)).error).toMatchObject({ message: expect.stringContaining('no gateway answers at http://127.0.0.1:') as unknown });
});

it('trunkline health --json prints the answer of /readyz, also when the gateway accepts no calls', async () => {
  const parts = { status: 'error', message: 'Not ready: redis', parts: { redis: false } };
  const { printed, error } = await asked(503, JSON.stringify(parts), '--json');
  expect([printed.map((line) => JSON.parse(line) as unknown), (error as Error).message]).toEqual([[parts], 'Not ready: redis']);
});
