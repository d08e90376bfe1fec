/**
 * Without the spaces and tabs around it. Not `String.trim`: that takes the byte A0 for a no-break space, and it is the last byte
 * of `à` in UTF-8.
 */
export function trimLws(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isLws(text.charCodeAt(start))) start += 1;
  while (end > start && isLws(text.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

export function isLws(code: number): boolean {
  return code === 32 || code === 9;
}
