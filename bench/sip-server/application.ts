import Srf from 'drachtio-srf';

// The least that an application can do: every INVITE is answered with a fixed SDP.
const LOCAL_SDP =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n';

const srf = new Srf();
srf.invite((request, response) => {
  if (request.uri.startsWith('sip:busy@')) return response.send(486);
  // Its caller cancels.
  if (request.uri.startsWith('sip:ringing@')) return;
  // The callback form: listeners are there before the next frame is looked at.
  srf.createUAS(request, response, { localSdp: LOCAL_SDP }, (error, dialog) => {
    if (error !== null) return;
    dialog.on('destroy', () => undefined);
  });
});
srf.on('connect', () => process.send?.({ type: 'ready' }));
const [, , port, secret = '', ...tags] = process.argv;
// The package's own types know no tags.
const settings = { host: '127.0.0.1', port: Number(port), secret, tags };
void srf.connect(settings);
