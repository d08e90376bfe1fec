/** RFC 3261 §25.1 `token`: methods, header names, tags. */
export const SIP_TOKEN = /^[\w.!%*+`'~-]+$/;
