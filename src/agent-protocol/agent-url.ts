import { z } from 'zod';

const MAX_URL = 2_048;

/** Where an agent's WebSocket is. A user and password in it would be stored, and shown; a fragment means nothing to a server. */
export const agentUrl = webSocketUrl(String.raw`(?:[/?][^\s#]*)?`, 'without a user and without a fragment (#)');

/** Where a provider is: the gateway writes the query. @param missing the message for a value that is no text */
export const providerUrl = (missing?: string) =>
  webSocketUrl(String.raw`(?:/[^\s?#]*)?`, 'without a user, a query and a fragment (#)', missing);

function webSocketUrl(rest: string, without: string, missing?: string) {
  const message = `must be a wss:// (or ws://) URL ${without}`;
  return z
    .string(missing)
    .max(MAX_URL)
    .regex(new RegExp(String.raw`^[Ww][Ss][Ss]?://[^\s/?#@\\]+${rest}$`), message)
    .refine((text) => URL.canParse(text), message);
}
