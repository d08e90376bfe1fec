/**
 * A value of JSON without the members that are null: many libraries write a field that is left out so.
 * @param kept members whose values stay as they are: their null is the sender's own
 */
export function withoutNulls(value: unknown, kept: ReadonlySet<string> = new Set()): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, kept));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, kept.has(name) ? member : withoutNulls(member, kept)]));
}
