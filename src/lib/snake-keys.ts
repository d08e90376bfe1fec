/** What commands print with `--json`: names in snake_case, as the API has them. Keys that are data (codes, names) stay as they are. */
export function snakeKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [snakeCase(name), snakeKeys(inner)]));
}

function snakeCase(name: string): string {
  return /^[a-z][A-Za-z0-9]*$/.test(name) ? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : name;
}
