// What a packet of the benchmark carries in its payload: when it was sent and which one it is, in bytes that G.711 µ-law passes
// through linear samples unchanged (0x7f, the negative zero, would not).

const GROUPS_OF_TIME = 7;
const GROUPS_OF_SERIAL = 4;
const WRAP_US = 2 ** (6 * GROUPS_OF_TIME);

/** The machine's monotonic clock in microseconds: the same in all processes. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n) % WRAP_US;
}

export function elapsedMs(fromUs: number, toUs: number): number {
  return ((toUs - fromUs + WRAP_US) % WRAP_US) / 1_000;
}

export const TIME_AT = 0;
export const SERIAL_AT = GROUPS_OF_TIME;
/** The bot's own time. */
export const ECHO_AT = GROUPS_OF_TIME + GROUPS_OF_SERIAL;

export function writeTime(target: Uint8Array, offset: number, us: number): void {
  writeGroups(target, offset, us, GROUPS_OF_TIME);
}

export function readTime(source: Uint8Array, offset: number): number {
  return readGroups(source, offset, GROUPS_OF_TIME);
}

export function writeSerial(target: Uint8Array, offset: number, serial: number): void {
  writeGroups(target, offset + SERIAL_AT, serial, GROUPS_OF_SERIAL);
}

export function readSerial(source: Uint8Array, offset: number): number {
  return readGroups(source, offset + SERIAL_AT, GROUPS_OF_SERIAL);
}

function writeGroups(target: Uint8Array, offset: number, value: number, groups: number): void {
  let rest = value;
  for (let i = 0; i < groups; i += 1) {
    target[offset + i] = 0x80 | (rest % 64);
    rest = Math.floor(rest / 64);
  }
}

function readGroups(source: Uint8Array, offset: number, groups: number): number {
  let value = 0;
  for (let i = groups - 1; i >= 0; i -= 1) value = value * 64 + ((source[offset + i] ?? 0) & 0x3f);
  return value;
}
