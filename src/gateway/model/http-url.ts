import { z } from 'zod';

// Addresses of HTTP servers as owners of agents, tools and numbers give them. Each pattern stands in the OpenAPI document, so it is one that
// every language reads; which hosts there can be is not in it.

const SCHEME = '[Hh][Tt][Tt][Pp][Ss]?://';
const REST = String.raw`(?:[/?#]\S*)?$`;

/** No user and password: they would be stored, and shown. */
export const HTTP_URL = String.raw`^${SCHEME}[^\s/?#@\\]+${REST}`;
/** Placeholders may stand in the path and the query, never in what decides where the request goes. */
export const HTTP_URL_TEMPLATE = String.raw`^${SCHEME}[^\s/?#@\\{}]+${REST}`;
/** A user and password are for the server, as in Twilio's webhooks. */
export const HTTP_URL_WITH_USER = String.raw`^${SCHEME}\S+$`;

/** A text with the pattern that is a URL too. @param most characters */
export const httpUrl = (pattern: string, most: number, message: string) =>
  z
    .string()
    .max(most)
    .regex(new RegExp(pattern), message)
    .refine((text) => text === '' || URL.canParse(text), message);
