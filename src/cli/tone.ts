const CODES = { plain: null, dim: '2', bold: '1', good: '32', bad: '31;1' };

export type Tone = keyof typeof CODES;

/** The text in the terminal's colours (ECMA-48). */
export function toned(text: string, tone: Tone, isColoured: boolean): string {
  const code = CODES[tone];
  return isColoured && code !== null && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
}
