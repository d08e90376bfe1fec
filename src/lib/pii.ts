/** A phone number with all but its last four digits hidden: what a person may see in a log line. */
export function maskNumber(number: string): string {
  return number.length <= 4 ? '****' : `${'*'.repeat(number.length - 4)}${number.slice(-4)}`;
}

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
