/** Condenses Docker's progress of a pull to a few lines for people. Pure. */

export interface PullLog {
  /** Lines of JSON, cut anywhere. */
  push(text: string): void;
  /** The message of the registry or of Docker when the pull failed. */
  readonly error: string | undefined;
}

interface PullProgress {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

/** Percentage points of progress between two lines of the log. */
const STEP = 10;

export function createPullLog(onProgress: (line: string) => void): PullLog {
  const layers = new Map<string, { current: number; total: number }>();
  const state = { rest: "", error: undefined as string | undefined, reported: 0, layers: 0 };

  const note = ({ id, status, error, progressDetail }: PullProgress) => {
    if (error !== undefined) state.error = error.slice(0, 500);
    if (status === undefined) return;
    if (id === undefined || status.startsWith("Pulling from") || status.startsWith("Digest")) {
      onProgress(id === undefined ? status : `${status} (${id})`);
      return;
    }
    const { current, total } = progressDetail ?? {};
    if (status === "Downloading" && total !== undefined && total > 0) layers.set(id, { current: current ?? 0, total });
    const known = layers.get(id);
    if (status === "Download complete" && known !== undefined) layers.set(id, { ...known, current: known.total });
    tell();
  };

  const tell = () => {
    const sum = { current: 0, total: 0 };
    for (const { current, total } of layers.values()) {
      sum.current += current;
      sum.total += total;
    }
    if (sum.total === 0) return;
    const percent = Math.floor((sum.current * 100) / sum.total / STEP) * STEP;
    // A layer that Docker announces late makes the total larger; the reported percentage does not go back.
    if (percent <= state.reported) return;
    state.reported = percent;
    onProgress(`Downloading ${percent} % of ${(sum.total / 1024 ** 2).toFixed(1)} MiB`);
  };

  return {
    push(text) {
      const lines = `${state.rest}${text}`.split("\n");
      state.rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.trim() === "") continue;
        try {
          note(JSON.parse(line) as PullProgress);
        } catch {
          // Not a line of progress.
        }
      }
    },
    get error() {
      return state.error;
    },
  };
}
