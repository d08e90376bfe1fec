// An unchanged drachtio-srf application on Trunkline's SIP server, in one process: it takes every call with the caller's own SDP.
import Srf from 'drachtio-srf';
import { startSipServer } from 'trunkline/sip-server';

const server = await startSipServer({ ports: { udp: Number(process.argv[2] ?? 5060) }, control: { port: 0, secret: 'cymru' } });
const srf = new Srf();
srf.connect({ host: '127.0.0.1', port: server.controlPort, secret: 'cymru' });
srf.invite(async (req, res) => {
  const dialog = await srf.createUAS(req, res, { localSdp: req.body });
  dialog.on('destroy', () => console.log('The caller hung up'));
});
srf.on('connect', () => console.log(`Call sip:anyone@127.0.0.1:${server.portOf('UDP')}`));
