/** Resident memory of this process. */
export function residentMb(): number {
  return process.memoryUsage.rss() / (1 << 20);
}
