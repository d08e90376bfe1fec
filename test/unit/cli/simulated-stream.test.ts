import { expect, it } from 'vitest';
import { simulatedStream } from '../../../src/cli/simulated-stream.js';

it('a simulated call sends its bot what a real one does', () => {
  const one = simulatedStream('ws://127.0.0.1:1/', { format: 'twilio', bearerToken: null, from: '+15550100900' });
  const { customParameters: parameters } = one;
  expect(parameters).toMatchObject({
    from: '+15550100900',
    from_number: '+15550100900',
    to: '+15550100100',
    to_number: '+15550100100',
    org_id: '00000000-0000-0000-0000-000000000000',
    agent_id: '',
    language: 'ENG',
    model: 'base',
    sip_headers: expect.stringContaining('"headers":{}') as string,
  });
  expect(one.accountSid).toBe(`AC${'0'.repeat(32)}`);
  expect(one.callSid).toBe(`CA${String(parameters['call_id']).replaceAll('-', '')}`);
  const other = simulatedStream('ws://127.0.0.1:1/', { format: 'twilio', bearerToken: null, from: '+15550100901' });
  expect(other.customParameters['call_id']).not.toBe(parameters['call_id']);
});
