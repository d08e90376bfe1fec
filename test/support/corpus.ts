import { readdirSync, readFileSync } from 'node:fs';

/**
 * The inputs in `test/fixtures/corpus/<target>` that once broke something, one byte a character (latin1), in the order of their names.
 * For the `examples` of fast-check, which it runs before anything random.
 * @throws when there is no such folder, or nothing in it
 */
export function corpus(target: string): readonly string[] {
  const folder = new URL(`../fixtures/corpus/${target}/`, import.meta.url);
  const names = readdirSync(folder).sort();
  if (names.length === 0) throw new Error(`no inputs in ${folder.pathname}`);
  return names.map((name) => readFileSync(new URL(name, folder), 'latin1'));
}
