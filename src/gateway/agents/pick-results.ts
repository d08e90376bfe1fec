import { parseJson } from '../../lib/bounded-json.js';
import { err, ok, type Result } from '../../lib/result.js';
import { parseResultPath } from '../model/result-path.js';

/** What a tool's owner wants of an answer: names, and a JSONPath (RFC 9535) for each. */
export type ResultPathsByName = Readonly<Record<string, string>>;

export interface PickOrder {
  readonly paths: ResultPathsByName;
  /** JSON. */
  readonly text: string;
}

/** JSON of an object with a field for each name, or a sentence for a person. */
export type Picked = Result<string, string>;

/** Characters of JSON that an agent gets: the main thread writes them again, which takes some 5 ms of all calls' time. */
export const MAX_RESULT_CHARACTERS = 131_072;

/** Applies result paths to an answer. It takes as long as the answer makes it take: it has a thread of its own. */
export function pickResults({ paths, text }: PickOrder): Picked {
  const answer = parseJson(text);
  if (!answer.ok) return err(answer.error === 'not-json' ? 'it is not JSON' : 'its arrays and objects are nested too deep');
  const fields: string[] = [];
  let characters = 0;
  for (const [name, path] of Object.entries(paths)) {
    const query = parseResultPath(path);
    if (query === undefined) return err(`${path} is no result path`);
    const found: string[] = [];
    for (const { value } of query.lazyQuery(answer.value as never)) {
      const written = JSON.stringify(value);
      characters += written.length;
      if (characters > MAX_RESULT_CHARACTERS) return err(`its result paths select more than ${String(MAX_RESULT_CHARACTERS)} characters`);
      found.push(written);
    }
    fields.push(`${JSON.stringify(name)}:${found.length > 1 ? `[${found.join()}]` : (found[0] ?? 'null')}`);
  }
  return ok(`{${fields.join()}}`);
}
