import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly events?: readonly { readonly name: string }[];
  readonly status?: { readonly code?: number };
}

interface OtlpRequest {
  readonly resourceSpans: readonly { readonly resource: object; readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[] }[];
}

/** A collector of OTLP over HTTP (JSON) that keeps the spans it gets. */
export class OtlpCollector {
  readonly spans: OtlpSpan[] = [];
  readonly bodies: string[] = [];
  /** What requests get. */
  status = 200;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async open(): Promise<OtlpCollector> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const collector = new OtlpCollector(server, `http://127.0.0.1:${String(port)}/v1/traces`);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        collector.bodies.push(body);
        const { resourceSpans } = JSON.parse(body) as OtlpRequest;
        if (collector.status === 200)
          collector.spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
        response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
      });
    });
    return collector;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
