/** The cookies of one call: names and values by origin. Plain data. */
export type Cookies = Readonly<Record<string, Readonly<Record<string, string>>>>;

const MAX_ORIGINS = 8;
const MAX_COOKIES = 20;
const MAX_CHARACTERS = 4_096;

/** With those of an answer (RFC 6265 §5.2): all last as long as the call, and hold for every path of the origin. */
export function withCookies(cookies: Cookies, url: string, setCookies: readonly string[]): Cookies {
  const { origin } = new URL(url);
  const own = new Map(Object.entries(cookies[origin] ?? {}));
  for (const [name, value, isRemoved] of setCookies.flatMap(readCookie)) {
    if (isRemoved) own.delete(name);
    else if (own.has(name) || own.size < MAX_COOKIES) own.set(name, value);
  }
  if (own.size === 0 || (!(origin in cookies) && Object.keys(cookies).length >= MAX_ORIGINS)) {
    const { [origin]: _, ...others } = cookies;
    return others;
  }
  return { ...cookies, [origin]: Object.fromEntries(own) };
}

/** The value of the header `Cookie` for a request; `null`: there are none. */
export function cookieHeader(cookies: Cookies, url: string): string | null {
  const own = Object.entries(cookies[new URL(url).origin] ?? {});
  return own.length === 0 ? null : own.map(([name, value]) => `${name}=${value}`).join('; ');
}

/** Name, value, and whether the server removes it; none: it cannot be read. */
function readCookie(text: string): [string, string, boolean][] {
  if (text.length > MAX_CHARACTERS) return [];
  const [pair = '', ...attributes] = text.split(';');
  const [, name = '', value = ''] = /^\s*([^=\s]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(pair) ?? [];
  if (name === '') return [];
  return [[name, value, value === '' || attributes.some((attribute) => /^\s*max-age\s*=\s*(?:0|-\d+)\s*$/i.test(attribute))]];
}
