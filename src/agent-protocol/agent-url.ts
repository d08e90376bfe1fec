import { z } from 'zod';

const MAX_URL = 2_048;

/** Where an agent's WebSocket is. A user and password in it would be stored, and shown; a fragment means nothing to a server. */
export const agentUrl = z
  .string()
  .max(MAX_URL)
  .refine((text) => {
    if (!URL.canParse(text) || /[\s#]/.test(text)) return false;
    const { protocol, username, password } = new URL(text);
    return (protocol === 'wss:' || protocol === 'ws:') && username === '' && password === '';
  }, 'must be a wss:// (or ws://) URL without a user and without a fragment (#)');
