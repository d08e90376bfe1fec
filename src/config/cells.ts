import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { cellAmong } from '../lib/cells.js';
import type { GatewayPlace } from './gateway-worker.js';

/**
 * One of the cells of a `trunkline up`: a SIP server with its gateway. Calls are shared out over the cells, whatever connection they come by
 * (docs/adr/0004).
 */
export interface CellPlace {
  /** From 1 to the count. */
  readonly index: number;
  readonly count: number;
}

/** The cell of a gateway: both of its places belong to it. */
export function cellOfGateway({ index, count }: GatewayPlace): number {
  return cellAmong(index, count);
}

/** The SIP server's name in logs and metrics. */
export function sipServerName(index: number): string {
  return index === 1 ? 'sip-server' : `sip-server-${String(index)}`;
}

/** Where the SIP server of a cell takes its gateway: all cells have the same control port. */
export function controlAddress(index: number): string {
  return `127.0.0.${String(index)}`;
}

/** Where a cell keeps its dialogs, in the data directory. */
export function journalName(index: number): string {
  return index === 1 ? 'dialogs.journal' : `dialogs-${String(index)}.journal`;
}

/** The journals in the directory of cells that are no more, and whose calls are now this cell's. */
export function journalsLeft(directory: string, { index, count }: CellPlace): string[] {
  const indexes = readdirSync(directory).map((name) => Number(/^dialogs-(\d+)\.journal$/.exec(name)?.[1] ?? 0));
  return indexes.filter((left) => left > count && cellAmong(left, count) === index).map((left) => join(directory, journalName(left)));
}

/** The cell's name among those of all hosts. */
export function cellName(instance: string, index: number): string {
  return index === 1 ? instance : `${instance}/${String(index)}`;
}

/** The cell's number on its host. */
export function cellIndexOf(name: string): number {
  return Number(/\/(\d+)$/.exec(name)?.[1] ?? 1);
}
