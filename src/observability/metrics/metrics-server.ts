import { createServer } from 'node:http';
import { metricsRefusal, type MetricsAccess } from './access.js';
import { exposition, METRICS_CONTENT_TYPE, upSnapshot, type Metrics } from './registry.js';

/** GET /metrics for a process without a control API: a separate SIP server. Rejects with the system's error. */
export async function openMetricsServer(
  metrics: Metrics,
  at: { readonly host: string; readonly port: number },
  access: MetricsAccess,
): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((request, response) => {
    const answer = (status: number, type: string, text: string): void =>
      void response.writeHead(status, { 'content-type': type }).end(text);
    if (request.url?.split('?')[0] !== '/metrics') return answer(404, 'text/plain', 'Use GET /metrics\n');
    if (request.method !== 'GET') return answer(405, 'text/plain', 'Use GET /metrics\n');
    const refusal = metricsRefusal(access, request.socket.remoteAddress ?? '', request.headers.authorization);
    if (refusal !== null) return answer(refusal.status, 'text/plain', `${refusal.message}\n`);
    metrics
      .snapshot()
      .then((snapshot) => exposition([snapshot, upSnapshot(new Map([[metrics.process, true]]))]))
      .then(
        (text) => answer(200, METRICS_CONTENT_TYPE, text),
        () => answer(500, 'text/plain', 'The metrics could not be collected\n'),
      );
  });
  server.maxConnections = 64;
  server.requestTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, resolve);
  });
  const bound = server.address();
  return {
    port: bound !== null && typeof bound === 'object' ? bound.port : at.port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
