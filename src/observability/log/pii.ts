/** Field names whose values the logger redacts, at every depth that it inspects. */
export const REDACTED_FIELDS: readonly string[] = [
  'authorization',
  'apiKey',
  'api_key',
  'secret',
  'password',
  'masterKey',
  'sdp',
  'from',
  'to',
  'caller',
  'called',
  'phoneNumber',
  'phone_number',
  'digit',
  'digits',
];
