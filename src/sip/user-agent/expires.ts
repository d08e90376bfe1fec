/** What a registration or a subscription lasts when nobody says (RFC 3261 §10.2, RFC 6665 §3.1.1 leave it open). */
export const DEFAULT_EXPIRES_SECONDS = 3_600;
/** What is asked for beyond that is not kept for longer. */
export const MAX_EXPIRES_SECONDS = 604_800;
