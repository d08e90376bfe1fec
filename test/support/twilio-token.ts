/** The Twilio token of an organization, as the command prints it. */
export async function twilioTokenOf(
  gateway: { cli(...words: string[]): Promise<{ readonly stdout: string }> },
  orgId: string,
): Promise<string> {
  return /^TWILIO_AUTH_TOKEN=(\S+)$/m.exec((await gateway.cli('org', 'twilio-token', orgId)).stdout)?.[1] ?? '';
}
