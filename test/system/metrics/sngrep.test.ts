import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ownedChild, whenGone } from '../../../src/loadtest/run/owned-child.js';
import { until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { freePorts } from '../../support/ports.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';

const udpPort = (port: number): string => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} `;

it('sngrep, which listens for HEP, gets the messages of a call, without its keys', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-sngrep-'));
  const file = join(directory, 'calls.pcap');
  const captured = (): string => readFileSync(file, 'latin1');
  const [port = 0] = await freePorts(1);
  const sngrep = ownedChild('sngrep', ['-F', '-N', '-q', '-c', '-L', `udp:127.0.0.1:${String(port)}`, '-O', file], { stdio: 'ignore' });
  const gateway = await RunningGateway.start({ TRUNKLINE_HEP_ADDRESS: `127.0.0.1:${String(port)}` });
  try {
    await until(() => Promise.resolve(readFileSync('/proc/net/udp', 'latin1').includes(udpPort(port))), 'sngrep does not listen');
    const call = new HandMadeCall(await SipPeer.connect(gateway.sipPort, gateway.ca), gateway.ready.phone_number);
    const ok = await call.answered(offerSdp());
    await call.hangUp(ok);
    const messages = ['INVITE sip:', 'SIP/2.0 200 OK', 'ACK sip:', 'BYE sip:', `Call-ID: ${call.callId}`];
    await until(() => Promise.resolve(messages.every((text) => captured().includes(text))), 'sngrep has not all messages');
    expect(captured()).toContain('a=crypto:');
    expect(captured()).not.toContain('inline:');
  } finally {
    sngrep.kill('SIGINT');
    await whenGone(sngrep);
    await gateway.destroy();
    rmSync(directory, { recursive: true, force: true });
  }
});
