import Fastify from 'fastify';
import { takeOrders } from '../support/orders.js';
import type { Fields, Served } from './messages.js';

// The baseline: the same server, routes that look nothing up, no key, no validation, no schema.

const app = Fastify();
let record: object = {};
app.get('/sip', () => ({ status: 'success', data: record, errors: null }));
app.post('/sip/attach', (request) => ({ status: 'success', data: { ...record, ...(request.body as object) }, errors: null }));

takeOrders(async ({ record: given }: Fields): Promise<Served> => {
  record = given;
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, key: 'none', numbers: [] };
});
