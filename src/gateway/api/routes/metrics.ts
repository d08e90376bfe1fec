import type { ZodApp } from '../context.js';

/** What Prometheus reads, and who may. */
export interface MetricsSource {
  readonly contentType: string;
  render(): Promise<string>;
  /** `null`: anybody may read them. */
  refusal(address: string, authorization: string | undefined): { readonly status: 401 | 403; readonly message: string } | null;
}

/** GET /metrics. Not a part of the control API: no API key opens it, and OpenAPI does not list it. */
export function metricsRoutes(app: ZodApp, { metrics }: { readonly metrics: MetricsSource }): void {
  app.get('/metrics', {
    config: { unlimited: true },
    schema: { hide: true },
    handler: async (request, reply) => {
      const refusal = metrics.refusal(request.ip, request.headers.authorization);
      if (refusal === null) return reply.type(metrics.contentType).send(await metrics.render());
      if (refusal.status === 401) reply.header('www-authenticate', 'Bearer');
      return reply.code(refusal.status).type('text/plain; charset=utf-8').send(`${refusal.message}\n`);
    },
  });
}
