import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { validateRequest } from 'twilio';
import { Arrivals } from '../arrivals.js';

/** A request as it came. */
export interface VoiceWebhookRequest {
  readonly path: string;
  readonly method: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** As Twilio's own library sees it. */
  readonly isSigned: boolean;
  readonly cookie: string | null;
}

type Page = string | Buffer | ((request: VoiceWebhookRequest) => string);

/** An application's server, as it would be written for Twilio: documents by path. Others are 404. */
export class VoiceWebhook {
  readonly requests = new Arrivals<VoiceWebhookRequest>();
  readonly pages = new Map<string, Page>();
  /** `Set-Cookie` of the answer, by path. */
  readonly cookies = new Map<string, string[]>();
  /** Headers of the answer beside or in place of those that it has, by path. */
  readonly headers = new Map<string, Readonly<Record<string, string>>>();
  /** Paths that are not answered. */
  readonly silent = new Set<string>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private readonly token: string,
  ) {}

  static async start(token: string): Promise<VoiceWebhook> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const webhook = new VoiceWebhook(server, `http://127.0.0.1:${String(port)}`, token);
    server.on('request', (request, response) => {
      void webhook.#seen(request).then((seen) => {
        webhook.requests.add(seen);
        if (webhook.silent.has(seen.path)) return;
        const page = webhook.pages.get(seen.path);
        if (page === undefined) {
          response.writeHead(404).end();
          return;
        }
        const body = typeof page === 'function' ? page(seen) : page;
        const cookies = webhook.cookies.get(seen.path) ?? [];
        const type = { 'content-type': typeof body === 'string' ? 'text/xml' : 'audio/wav' };
        response.writeHead(200, { ...type, 'set-cookie': cookies, ...webhook.headers.get(seen.path) }).end(body);
      });
    });
    return webhook;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** The request for this path in this place, once it has come. */
  at(path: string, index = 0): Promise<VoiceWebhookRequest> {
    return this.requests.until((all) => all.filter(({ path: asked }) => asked === path)[index]);
  }

  async #seen(request: IncomingMessage): Promise<VoiceWebhookRequest> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', this.url);
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
    const parameters = request.method === 'GET' ? Object.fromEntries(url.searchParams) : form;
    const signature = String(request.headers['x-twilio-signature'] ?? '');
    return {
      path: url.pathname,
      method: request.method ?? '',
      parameters,
      cookie: request.headers.cookie ?? null,
      isSigned: validateRequest(this.token, signature, url.href, form),
    };
  }
}
