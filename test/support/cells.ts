import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { sipServerName } from '../../src/config/cells.js';
import { cellOf } from '../../src/sip/message/cell-of.js';
import { CarrierCall, until } from './carrier-call.js';
import type { RunningGateway } from './gateway.js';
import { HandMadeCall } from './hand-made-call.js';
import { SipPeer, type WireMessage } from './sip-peer.js';

/** The cells of the gateways that these tests start. */
export const CELLS = 2;

/** The cell of a call by its Call-ID. */
export function cellOfCall(callId: string): number {
  return cellOf(`INVITE sip:a@b SIP/2.0\r\nCall-ID: ${callId}\r\n\r\n`, CELLS).cell;
}

/** The first of many calls that belongs to the cell; the others are dropped before they begin. */
export async function inCell<Call>(
  cell: number,
  make: () => Call | Promise<Call>,
  callIdOf: (call: Call) => string,
  drop: (call: Call) => void = () => undefined,
): Promise<Call> {
  for (;;) {
    const call = await make();
    if (cellOfCall(callIdOf(call)) === cell) return call;
    drop(call);
  }
}

/** A call that is answered, in this cell. */
export async function talkingIn(cell: number, gateway: RunningGateway): Promise<CarrierCall> {
  const call = await openedIn(cell, gateway);
  await call.connect();
  return call;
}

/** Everything up to the INVITE of a call in this cell. */
export function openedIn(cell: number, gateway: RunningGateway): Promise<CarrierCall> {
  return inCell(
    cell,
    () => CarrierCall.open(gateway, gateway.ready.phone_number),
    ({ signalling }) => signalling.callId,
    (unfit) => unfit.close(),
  );
}

/** The cell that made the answer's tag: that which has the call. */
export function cellOfAnswer(answer: WireMessage): number {
  return /;tag=2\./.test(answer.header('To') ?? '') ? 2 : 1;
}

/** Resolves when each cell gets its new requests, whichever has the connection. */
export async function areWhole(gateway: RunningGateway): Promise<void> {
  for (const owner of [1, 2]) {
    const peer = await connectionOf(gateway, owner);
    for (const cell of [1, 2]) {
      const isTaken = async (): Promise<boolean> => {
        const probe = await inCell(
          cell,
          () => new HandMadeCall(peer, gateway.ready.phone_number),
          ({ callId }) => callId,
        );
        return cellOfAnswer(await probe.probe('OPTIONS')) === cell;
      };
      await until(isTaken, `cell ${String(cell)} is not back`);
    }
    peer.close();
  }
}

/** A connection that the SIP server of this cell has accepted. */
export async function connectionOf(gateway: RunningGateway, cell: number): Promise<SipPeer> {
  for (;;) {
    const pid = await gateway.pidOf(sipServerName(cell));
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
    if (socketsOf(pid).has(serverSocket(gateway.sipPort, peer.localPort))) return peer;
    peer.close();
  }
}

function socketsOf(pid: number): ReadonlySet<string> {
  const directory = `/proc/${String(pid)}/fd`;
  // A process that was killed may be gone, and its successor not named yet.
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return new Set(names.flatMap((fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`${directory}/${fd}`))?.[1] ?? []));
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Its number in proc(5)'s list of TCP sockets; '' if it is not there. */
function serverSocket(serverPort: number, clientPort: number): string {
  const [local, remote] = [serverPort, clientPort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`);
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const fields = lines
    .map((line) => line.trim().split(/\s+/))
    .find((each) => each[1]?.endsWith(local!) === true && each[2]?.endsWith(remote!) === true);
  return fields?.[9] ?? '';
}
