import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Arrivals } from './arrivals.js';

export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An owner's server for webhooks on loopback. */
export class WebhookReceiver {
  readonly received = new Arrivals<ReceivedWebhook>();
  /** What the next requests to a path are answered with; 204 when there is nothing left. */
  readonly answers = new Map<string, number[]>();

  private constructor(private readonly server: Server) {}

  static async start(): Promise<WebhookReceiver> {
    const server = createServer();
    const receiver = new WebhookReceiver(server);
    server.on('request', (request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.on('end', () => {
        const path = request.url ?? '';
        response.writeHead(receiver.answers.get(path)?.shift() ?? 204).end();
        receiver.received.add({ path, headers: request.headers, text, body: JSON.parse(text) as ReceivedWebhook['body'] });
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  url(path: string): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}${path}`;
  }

  at(path: string): readonly ReceivedWebhook[] {
    return this.received.all.filter((one) => one.path === path);
  }

  /** The first `count` requests to a path. */
  async first(path: string, count: number): Promise<readonly ReceivedWebhook[]> {
    return this.received.until(() => (this.at(path).length >= count ? this.at(path).slice(0, count) : undefined));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
