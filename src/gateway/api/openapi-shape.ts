// The OpenAPI document in the form that generators of clients can read: each body, each answer and each schema with a `title` has a name.

/** Any object of the document. */
export type Json = Readonly<Record<string, unknown>>;
/** The media type of a body whose schema is a text. */
export const CSV_TYPE = 'text/csv';
type Content = Readonly<Record<string, { readonly schema: Json }>>;
type Headers = Readonly<Record<string, Json>>;

interface Answer extends Json {
  readonly content?: Content;
  readonly headers?: Headers;
}

interface Operation extends Json {
  readonly operationId: string;
  readonly requestBody?: Json & { readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
}

export interface OpenapiDocument extends Json {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Json & { readonly schemas: Readonly<Record<string, Json>> };
}

export interface Shape {
  /** Ids of the operations whose body may be left out. */
  readonly optionalBodies: ReadonlySet<string>;
  /** Answers that any operation may give, by the name of their component. */
  readonly everywhere: Readonly<Record<string, Answer & { readonly status: number }>>;
}

/**
 * Moves what has a name to `components`: bodies (`AttachNumberBody`, or `CreateBatchCsv`), answers (`AttachNumberAnswer`), schemas with a `title`, headers, and
 * the answers that any operation may give. Answers allow further fields, which a later version may add.
 * Throws when two different schemas have the same name.
 */
export function shapeDocument(document: OpenapiDocument, { optionalBodies, everywhere }: Shape): OpenapiDocument {
  const schemas = new NamedParts('schemas');
  const headers = new NamedParts('headers');
  // A header that means something else in one answer stands there.
  const headerOf = (header: Json, name: string): Json => (headers.takes(name, header) ? headers.add(name, header) : header);
  for (const [name, schema] of Object.entries(document.components.schemas))
    schemas.add(name, nameTitled(openAnswer(plainSchema(schema)), schemas));

  const answerOf = (answer: Answer, title: string | null): Answer => ({
    ...withSchemas(answer, (schema) => {
      const opened = openAnswer(plainSchema(schema));
      return nameTitled(title === null || '$ref' in opened ? opened : { ...opened, title }, schemas);
    }),
    ...(answer.headers === undefined ? {} : { headers: mapValues(answer.headers, headerOf) }),
  });
  const operationOf = (operation: Operation): Operation => {
    const { operationId, requestBody, responses } = operation;
    const title = operationId.charAt(0).toUpperCase() + operationId.slice(1);
    const answers = mapValues(responses, (answer, status) => answerOf(answer, status.startsWith('2') ? `${title}Answer` : null));
    const shared = Object.entries(everywhere).map(([name, { status }]) => [status, { $ref: `#/components/responses/${name}` }] as const);
    const shaped = { ...operation, responses: { ...answers, ...Object.fromEntries(shared) } };
    if (requestBody === undefined) return shaped;
    const nameOf = (type: string): string => `${title}${type === CSV_TYPE ? 'Csv' : 'Body'}`;
    const body = withSchemas(requestBody, (schema, type) => nameTitled({ ...plainSchema(schema), title: nameOf(type) }, schemas));
    return { ...shaped, requestBody: { ...body, required: !optionalBodies.has(operationId) } };
  };

  const paths = mapValues(document.paths, (methods) => mapValues(methods, operationOf));
  const responses = mapValues(everywhere, ({ status: _status, ...answer }) => answerOf(answer, null));
  const components = { ...document.components, schemas: schemas.parts(), headers: headers.parts(), responses };
  return { ...document, paths, components };
}

/** The parts of one kind under `components`. */
class NamedParts {
  readonly #parts = new Map<string, Json>();

  constructor(private readonly kind: 'schemas' | 'headers') {}

  /** False when another part has the name. */
  takes(name: string, part: Json): boolean {
    return JSON.stringify(this.#parts.get(name) ?? part) === JSON.stringify(part);
  }

  /** Adds the part, unless it is there already, and returns the reference to it. */
  add(name: string, part: Json): Json {
    if (!this.takes(name, part))
      throw new Error(`two ${this.kind} of the OpenAPI document are named ${name}: give one of them another title`);
    this.#parts.set(name, part);
    return { $ref: `#/components/${this.kind}/${name}` };
  }

  parts(): Readonly<Record<string, Json>> {
    return Object.fromEntries([...this.#parts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Moves each schema with a title out. A default and a description of the place stay where they are. */
function nameTitled(schema: Json, schemas: NamedParts): Json {
  const inner = mapSchemas(schema, (one) => nameTitled(one, schemas));
  const { title, default: byDefault, ...named } = inner;
  if (typeof title !== 'string') return inner;
  return { ...schemas.add(title, named), ...(byDefault === undefined ? {} : { default: byDefault }) };
}

/** Without the mark of zod that a record has no further fields. */
function openAnswer(schema: Json): Json {
  const { additionalProperties, ...open } = mapSchemas(schema, openAnswer);
  return additionalProperties === undefined || additionalProperties === false ? open : { ...open, additionalProperties };
}

/** Bounds of a JavaScript number, which zod gives to every integer. */
const NO_BOUNDS: readonly unknown[] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

/**
 * The same schema in the words that every generator knows: one value of `enum` in place of `const`, a list of types in place of a union with
 * null. Without `readOnly`, by which zod means arrays that TypeScript must not change, and without bounds that say nothing.
 */
function plainSchema(schema: Json): Json {
  const { readOnly: _never, const: only, minimum, maximum, ...rest } = mapSchemas(schema, plainSchema);
  return withNull({
    ...withPlainDefault(rest),
    ...(only === undefined ? {} : { enum: [only] }),
    ...(minimum === undefined || NO_BOUNDS.includes(minimum) ? {} : { minimum }),
    ...(maximum === undefined || NO_BOUNDS.includes(maximum) ? {} : { maximum }),
  });
}

/** A default that generators of clients cannot write in their language stands in the description. */
function withPlainDefault(schema: Json): Json {
  const { default: byDefault, ...rest } = schema;
  const isPlain = (typeof byDefault !== 'object' && !('anyOf' in schema)) || byDefault === undefined;
  if (isPlain) return schema;
  const said = [rest['description'], byDefault === null ? null : `Default: \`${JSON.stringify(byDefault)}\``];
  const description = said.filter((part) => typeof part === 'string').join('. ');
  return { ...rest, ...(description === '' ? {} : { description }) };
}

/** A union of a union and null is one union; one of a schema without a name and null is a schema with two types. */
function withNull(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const members = (anyOf as readonly Json[]).flatMap((member) => (isUnion(member) ? member.anyOf : [member]));
  const [other, ...more] = members.filter(({ type }) => type !== 'null');
  const isNullable = members.length === more.length + 2;
  if (!isNullable || more.length > 0 || typeof other?.['type'] !== 'string' || 'title' in other) return { ...rest, anyOf: members };
  const values = Array.isArray(other['enum']) ? { enum: [...(other['enum'] as readonly unknown[]), null] } : {};
  return { ...other, ...values, type: [other['type'], 'null'], ...rest };
}

function isUnion(schema: Json): schema is { readonly anyOf: readonly Json[] } {
  return Array.isArray(schema['anyOf']) && Object.keys(schema).length === 1;
}

/** Applies a change to the schemas directly within a schema. */
function mapSchemas(schema: Json, change: (schema: Json) => Json): Json {
  return mapValues(schema, (value, key) => {
    if (key === 'properties') return mapValues(value as Readonly<Record<string, Json>>, change);
    if (key === 'anyOf' || key === 'oneOf' || key === 'allOf') return (value as readonly Json[]).map(change);
    const isSchema = (key === 'items' || key === 'additionalProperties' || key === 'not') && typeof value === 'object' && value !== null;
    return isSchema ? change(value as Json) : value;
  });
}

function withSchemas<T extends { readonly content?: Content }>(part: T, change: (schema: Json, type: string) => Json): T {
  if (part.content === undefined) return part;
  return { ...part, content: mapValues(part.content, (media, type) => ({ ...media, schema: change(media.schema, type) })) };
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
