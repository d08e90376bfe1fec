/** A copy that stands by itself: a part of a longer text keeps all of that in memory for as long as it lives. */
export function flatten(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
