/** What a browser may load of the console. Pure. */

/** Bytes, compressed, of what the page loads before it shows anything (`first load`), and of what a lazy part loads besides. */
export type Sizes = Readonly<Record<string, number>>;

/** The most that each may have. A new lazy part gets its bound here. */
export const BOUNDS: Sizes = {
  "first load": 60_000,
  xterm: 130_000,
  "code-mirror": 120_000,
  "shown-screen": 80_000,
  chart: 40_000,
  "build-files": 60_000,
};

/** What is wrong with the sizes, one sentence each. */
export function beyondBounds(sizes: Sizes, bounds: Sizes): string[] {
  const missing = Object.keys(bounds).filter((part) => sizes[part] === undefined);
  return [
    ...missing.map((part) => `the build of the console has no part '${part}'`),
    ...Object.entries(sizes).flatMap(([part, bytes]) => {
      const most = bounds[part];
      if (most === undefined) return [`the console's part '${part}' (${bytes} bytes compressed) has no bound`];
      return bytes > most ? [`the console's ${part} has ${bytes} bytes compressed, and may have ${most}`] : [];
    }),
  ];
}
