import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';

// The baseline of an idle connection: Node's own TLS server, which reads and forgets. Arguments: port, certificate, key.

const [port = '0', certFile = '', keyFile = ''] = process.argv.slice(2);
const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile), minVersion: 'TLSv1.2' }, (socket) => {
  socket.resume();
  socket.on('error', () => socket.destroy());
});
server.listen(Number(port), '127.0.0.1', () => process.send?.({ type: 'ready' }));
