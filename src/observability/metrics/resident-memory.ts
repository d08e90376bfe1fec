let lastMb = 0;

/** Resident memory of this process; the previous figure if no file handle is left to read it. */
export function residentMb(): number {
  try {
    lastMb = process.memoryUsage.rss() / (1 << 20);
  } catch {
    // EMFILE for /proc/self/stat.
  }
  return lastMb;
}
