import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, isIP, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect, createSecureContext, rootCertificates, type ConnectionOptions, type TLSSocket } from 'node:tls';

export interface TunnelOptions {
  readonly target: { readonly host: string; readonly port: number };
  /** PEM, the CA that the gateway's certificate must be signed by. */
  readonly caFile: string;
}

/** Debian's SIPp does not speak TLS: the tunnel speaks it in its place, and checks the gateway's certificate. */
export class Tunnel {
  readonly #connections = new Set<TunnelledConnection>();

  private constructor(
    /** On loopback. */
    readonly port: number,
    private readonly server: Server,
    options: ConnectionOptions,
  ) {
    server.on('connection', (sipp) => {
      const connection = new TunnelledConnection(sipp, () => connect(options));
      this.#connections.add(connection);
      sipp.once('close', () => this.#connections.delete(connection));
    });
  }

  /** Resolves when it takes connections. Rejects when the CA cannot be read. */
  static async open({ target, caFile }: TunnelOptions): Promise<Tunnel> {
    const secureContext = createSecureContext({ ca: [...rootCertificates, await readFile(caFile, 'utf8')], minVersion: 'TLSv1.2' });
    const name = isIP(target.host) === 0 ? { servername: target.host } : {};
    const server = createServer({ noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return new Tunnel(port, server, { ...target, ...name, secureContext });
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    this.server.close();
    await once(this.server, 'close');
  }
}

/**
 * A connection of SIPp, which outlives the gateway's, as at a reload: SIPp counts the call as failed whose message finds its connection closed,
 * where a carrier sends it over the next one.
 */
class TunnelledConnection {
  #gateway: TLSSocket;

  constructor(
    private readonly sipp: Socket,
    private readonly connectToGateway: () => TLSSocket,
  ) {
    this.#gateway = this.#open();
    sipp.on('data', (chunk: Buffer) => {
      if (!this.#gateway.write(chunk)) sipp.pause();
    });
    sipp.on('drain', () => this.#gateway.resume());
    sipp.on('error', () => sipp.destroy());
    sipp.on('close', () => this.#gateway.destroy());
  }

  close(): void {
    this.sipp.destroy();
  }

  #open(): TLSSocket {
    const { sipp } = this;
    const gateway = this.connectToGateway();
    let wasHeard = false;
    gateway.setNoDelay(true);
    gateway.on('data', (chunk: Buffer) => {
      wasHeard = true;
      if (!sipp.write(chunk)) gateway.pause();
    });
    gateway.on('drain', () => sipp.resume());
    gateway.on('error', () => gateway.destroy());
    const onGone = (): void => {
      if (this.#gateway !== gateway || sipp.destroyed) return;
      // A gateway that closes before it has said a word would do so without end.
      if (!wasHeard) {
        sipp.destroy();
        return;
      }
      // At once, also for what the gateway sends.
      this.#gateway = this.#open();
      sipp.resume();
    };
    gateway.once('end', onGone);
    gateway.once('close', onGone);
    return gateway;
  }
}
