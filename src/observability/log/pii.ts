/** Field names whose values never reach a log: redacted by the logger wherever they stand at these depths. */
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
