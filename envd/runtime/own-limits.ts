/** Pure: limits that children get back because Node or the container changed them for envd itself. */

/** envd's own limits at its start: children get back what Node or the container changed for envd. */
export interface Limits {
  readonly oomScore: number;
  readonly openFiles: number;
}

/** Added to a child's out-of-memory score, so that the kernel ends children before envd. */
const OOM_STEP = 100;
const MOST_OOM_SCORE = 1000;

/**
 * @param oomScoreAdj text of envd's own /proc/self/oom_score_adj
 * @param parentLimits text of its parent's /proc/PID/limits: Node raises its own number of open files when it starts
 */
export function childLimits(oomScoreAdj: string, parentLimits: string): Limits {
  const own = Number.parseInt(oomScoreAdj, 10);
  const soft = /^Max open files\s+(\d+)/m.exec(parentLimits)?.[1];
  return {
    oomScore: Math.min(MOST_OOM_SCORE, (Number.isNaN(own) ? 0 : own) + OOM_STEP),
    openFiles: soft === undefined ? -1 : Number(soft),
  };
}
