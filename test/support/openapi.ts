import { Ajv2020 } from 'ajv/dist/2020.js';

/** What tests read of /openapi.json and /openapi-twilio.json. */
export interface ApiDocument {
  readonly openapi: string;
  readonly servers?: readonly object[];
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>>;
  readonly components: Components;
}
interface Components {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly headers: Readonly<Record<string, Header>>;
  readonly responses: Readonly<Record<string, ApiResponse>>;
  readonly securitySchemes: object;
}
interface Header {
  readonly description?: string;
}
export interface Operation {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly object[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, MediaType>> };
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<Record<string, ApiResponse>>;
}
export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly schema?: { readonly pattern?: string };
  readonly example?: unknown;
}
export interface ApiResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}
interface MediaType {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Schema {
  readonly $ref?: string;
  readonly examples?: readonly unknown[];
}

/** One request that the document shows. */
export interface ExampleRequest {
  readonly operation: Operation;
  /** With its question mark; empty: none. */
  readonly query: string;
  readonly body: unknown;
}

const FORMATS = {
  uuid: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/,
  int64: true as const,
};
const JSON_TYPE = 'application/json';

/** The operations, with the answers and headers that they share, and with the schemas of their bodies and successes. */
export function operationsOf({ paths, components }: ApiDocument): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({
      ...one,
      ...(one.requestBody === undefined
        ? {}
        : { requestBody: { ...one.requestBody, content: mediaOf(components, one.requestBody.content) } }),
      responses: mapValues(one.responses, (response, status) => answerOf(components, response, status)),
      path,
      method: method.toUpperCase() as Operation['method'],
    })),
  );
}

function answerOf(components: Components, response: ApiResponse, status: string): ApiResponse {
  const { headers = {}, content = {}, ...rest } = partOf(components, 'responses', response);
  return {
    ...rest,
    headers: mapValues(headers, (header) => partOf(components, 'headers', header)),
    content: status.startsWith('2') ? mediaOf(components, content) : content,
  };
}

function mediaOf(components: Components, content: Readonly<Record<string, MediaType>>): Readonly<Record<string, MediaType>> {
  return mapValues(content, (media) => ({
    ...media,
    ...(media.schema === undefined ? {} : { schema: partOf(components, 'schemas', media.schema) }),
  }));
}

/** The part, or the one that it refers to. */
function partOf<T extends object>(components: Components, kind: 'schemas' | 'headers' | 'responses', part: T): T {
  const name = '$ref' in part ? /^#\/components\/(\w+)\/(.+)$/.exec(String(part.$ref)) : null;
  return name === null ? part : ((components[kind][name[2] ?? ''] ?? part) as T);
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}

/** One document with the paths of both. */
export function withTwilios(own: ApiDocument, twilios: ApiDocument): ApiDocument {
  const both = <T extends 'schemas' | 'headers' | 'responses' | 'securitySchemes'>(kind: T) => ({
    ...twilios.components[kind],
    ...own.components[kind],
  });
  const components = {
    schemas: both('schemas'),
    headers: both('headers'),
    responses: own.components.responses,
    securitySchemes: both('securitySchemes'),
  };
  return { ...own, paths: { ...own.paths, ...twilios.paths }, components };
}

/** The status of an answer that is no failure. */
export function successOf({ responses }: Pick<Operation, 'responses'>): number {
  return Number(Object.keys(responses).find((status) => status.startsWith('2')));
}

/** Those in Twilio's form: HTTP Basic in place of the key, a form in place of JSON, Twilio's failures. */
export function isTwilios({ path }: Pick<Operation, 'path'>): boolean {
  return path.startsWith('/2010-04-01/');
}

export function nameOf({ method, path }: Pick<Operation, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

export function bodyExamples({ requestBody }: Operation): unknown[] {
  const { example, examples = {}, schema } = Object.values(requestBody?.content ?? {})[0] ?? {};
  return [...(example === undefined ? [] : [example]), ...Object.values(examples).map(({ value }) => value), ...(schema?.examples ?? [])];
}

/** Each example of the body, each of a parameter of the query by itself, and all of those together; or one request that has neither. */
export function exampleRequests(operation: Operation): ExampleRequest[] {
  const shown = (operation.parameters ?? []).filter(({ in: where, example }) => where === 'query' && example !== undefined);
  const pairs = shown.map(({ name, example }): [string, string] => [name, String(example)]);
  const some = [...pairs.map((pair) => [pair]), ...(pairs.length > 1 ? [pairs] : [])];
  const queries = some.map((query) => `?${new URLSearchParams(query).toString()}`);
  const bodies = bodyExamples(operation);
  return [
    { operation, query: '', body: bodies[0] },
    ...bodies.slice(1).map((body) => ({ operation, query: '', body })),
    ...queries.map((query) => ({ operation, query, body: bodies[0] })),
  ];
}

/** The path with its parameters filled in; one that `values` lacks has the document's example. */
export function pathOf({ path, parameters = [] }: Operation, values: Readonly<Record<string, string>> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = values[name] ?? parameters.find((one) => one.in === 'path' && one.name === name)?.example;
    if (typeof value !== 'string') throw new Error(`no example of ${name} in ${path}`);
    return encodeURIComponent(value);
  });
}

/** Checks answers against the schemas of the document. */
export class AnswerSchemas {
  readonly #ajv = new Ajv2020({ allErrors: true, strictTypes: false, formats: FORMATS });

  constructor(private readonly document: ApiDocument) {
    this.#ajv.addVocabulary(['components']);
  }

  /** What is wrong with it; empty: nothing. */
  faults({ responses }: Operation, status: number, body: unknown): readonly string[] {
    const schema = responses[String(status)]?.content?.[JSON_TYPE]?.schema;
    return schema === undefined ? [`${String(status)} is not described`] : this.#faultsOf(schema, body);
  }

  /** The same for a named schema. */
  namedFaults(name: string, value: unknown): readonly string[] {
    return this.#faultsOf({ $ref: `#/components/schemas/${name}` }, value);
  }

  #faultsOf(schema: object, value: unknown): string[] {
    const { components } = this.document;
    const validate = this.#ajv.compile({ ...schema, components });
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message = '', params }) => `${instancePath} ${message} ${JSON.stringify(params)}`);
  }
}
