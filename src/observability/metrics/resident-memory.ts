let lastMb = 0;

/** Resident memory of this process; what it was before, when it has no file handle left to read it with. */
export function residentMb(): number {
  try {
    lastMb = process.memoryUsage.rss() / (1 << 20);
  } catch {
    // EMFILE, of /proc/self/stat.
  }
  return lastMb;
}
