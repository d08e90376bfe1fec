import { afterAll, beforeAll, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';
import { TestCa } from '../../support/openssl.js';

// A public CA signs names and no addresses, while the commands of the machine connect to its address.

let ca: TestCa;
let gateway: RunningGateway;

beforeAll(async () => {
  ca = await TestCa.create();
  const { certFile, keyFile } = await ca.issue('sip', 'DNS:sip.example.com');
  gateway = await RunningGateway.start({
    TRUNKLINE_SIP_HOST: 'sip.example.com',
    TRUNKLINE_SIP_CERT_FILE: certFile,
    TRUNKLINE_SIP_KEY_FILE: keyFile,
    TRUNKLINE_CA_FILE: ca.caFile,
  });
});

afterAll(async () => {
  await gateway.destroy();
  await ca.remove();
});

it('trunkline call reaches a gateway whose certificate has its name alone', async () => {
  const { code, stdout, stderr } = await gateway.cli('call', '--digits', '1#');
  expect(code, stdout + stderr).toBe(0);
});

it('trunkline call refuses that certificate at an address that it was given', async () => {
  const { code, stdout } = await gateway.cli('call', gateway.ready.phone_number, '--target', gateway.ready.sip.tls, '--ca', ca.caFile);
  expect(code).toBe(1);
  expect(stdout).toContain("FAILED: Hostname/IP does not match certificate's altnames");
});
