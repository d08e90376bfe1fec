import { expect, it } from 'vitest';
import { callExampleSipServer } from '../../support/example-sip-server.js';

it('docs/examples/sip-server.mjs answers a call', async () => {
  expect(await callExampleSipServer('docs/examples/sip-server.mjs')).toEqual([expect.stringMatching(/^Call sip:/), 'The caller hung up']);
});
