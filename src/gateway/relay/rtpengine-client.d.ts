// The package has no types: these are the used parts of rtpengine-client 0.4.12 (lib/BaseClient.js).
declare module 'rtpengine-client/lib/BaseClient.js' {
  /** Of any transport; a subclass opens the socket. */
  export default class BaseClient {
    constructor(options: { type: 'udp' });
    protected readonly socket: { close(): void };
    /** By cookie. */
    protected messages: {
      get(cookie: string): ((error: unknown, data?: Record<string, unknown>) => void) | undefined;
      set(cookie: string, callback: (error: unknown, data?: Record<string, unknown>) => void): void;
      delete(cookie: string): boolean;
    };
    close(): void;
    /** Throws when it is no `<36 characters of cookie> <bencode>`. */
    static decodeMessage(message: Buffer): { readonly id: string; readonly data: Record<string, unknown> };
  }
}
