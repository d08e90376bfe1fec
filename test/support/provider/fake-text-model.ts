import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

const propertySchema = z.strictObject({
  type: z.tuple([z.enum(['string', 'number', 'integer', 'boolean']), z.literal('null')]),
  description: z.string().optional(),
});

/** As strict as structured outputs: every property is required, and no other is allowed. */
const requestSchema = z
  .strictObject({
    model: z.string().min(1),
    messages: z.array(z.strictObject({ role: z.enum(['system', 'user']), content: z.string().min(1) })).min(1),
    response_format: z.strictObject({
      type: z.literal('json_schema'),
      json_schema: z.strictObject({
        name: z.string().regex(/^[\w-]{1,64}$/),
        strict: z.literal(true),
        schema: z.strictObject({
          type: z.literal('object'),
          properties: z.record(z.string(), propertySchema),
          required: z.array(z.string()),
          additionalProperties: z.literal(false),
        }),
      }),
    }),
  })
  .refine(
    ({
      response_format: {
        json_schema: { schema },
      },
    }) => Object.keys(schema.properties).join() === schema.required.join(),
  );

export type TextModelRequest = z.output<typeof requestSchema>;

/** What it answers: an HTTP status, or the content of the model's message. */
export type TextModelAnswer = number | string | { readonly refusal: string };

/** OpenAI's Chat Completions with structured outputs, at a port of this machine; one answer a request, the last one again and again. */
export class FakeTextModel {
  readonly requests: { readonly key: string | undefined; readonly body: TextModelRequest }[] = [];
  /** What was wrong with requests that got 400. */
  readonly problems: string[] = [];
  answers: TextModelAnswer[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<FakeTextModel> {
    const server = createServer();
    const fake = new FakeTextModel(server);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void fake.#answer(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return fake;
  }

  /** Where a client of OpenAI's begins its paths. */
  get baseUrl(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}/v1`;
  }

  get url(): string {
    return `${this.baseUrl}/chat/completions`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { status, body } = this.#reply(request, Buffer.concat(chunks).toString());
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  #reply({ method, url, headers }: IncomingMessage, text: string): { readonly status: number; readonly body: object } {
    if (method !== 'POST' || url !== '/v1/chat/completions') return { status: 404, body: { error: { message: 'not found' } } };
    const parsed = requestSchema.safeParse(JSON.parse(text));
    if (!parsed.success) {
      this.problems.push(parsed.error.message);
      return { status: 400, body: { error: { message: parsed.error.message } } };
    }
    this.requests.push({ key: headers.authorization, body: parsed.data });
    const answer = (this.answers.length > 1 ? this.answers.shift() : this.answers[0]) ?? 500;
    if (typeof answer === 'number') return { status: answer, body: { error: { message: 'it was told to fail' } } };
    const message = typeof answer === 'string' ? { content: answer, refusal: null } : { content: null, refusal: answer.refusal };
    const body = {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_767_225_600,
      model: parsed.data.model,
      choices: [{ index: 0, message: { role: 'assistant', ...message }, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    };
    return { status: 200, body };
  }
}
