/** Rows of the tables of use. */

/** What a project used in one step of time: the highest of what is in use, the sum of what is counted. */
export interface StoredSample {
  /** Beginning, Unix seconds, a multiple of the step's length. */
  readonly at: number;
  readonly sandboxes: number;
  readonly starts: number;
  readonly cpu_ms: number;
  readonly memory_bytes: number;
  readonly disk_bytes: number;
  readonly sent_bytes: number;
  readonly received_bytes: number;
}

export interface FinestSampleRow extends StoredSample {
  /** `number` of usage_projects. The project may have been deleted. */
  readonly project: number;
}

interface UsageSampleRow extends StoredSample {
  /** `number` of usage_projects. */
  readonly project: number;
  /** Length, seconds. */
  readonly step: number;
}

/** Packed samples of a length of time that is over. */
interface UsageBlockRow {
  readonly project: number;
  readonly step: number;
  /** Beginning, Unix seconds, a multiple of the length of the step's blocks. */
  readonly at: number;
  /** As of `pack`. */
  readonly samples: Uint8Array;
}

export interface UsageTables {
  readonly usage_projects: { readonly project_id: string; readonly number: number };
  readonly usage_finest: FinestSampleRow;
  /** Of the longer steps, in blocks that are not packed yet. */
  readonly usage_samples: UsageSampleRow;
  readonly usage_blocks: UsageBlockRow;
  /** Counters of running executions as they were counted last, and what they used then. */
  readonly usage_counters: {
    readonly execution_id: string;
    readonly cpu_ms: number;
    readonly sent_bytes: number;
    readonly received_bytes: number;
    /** This and the others: absent in a row of an earlier version. */
    readonly project_id: string | null;
    readonly memory_bytes: number | null;
    readonly disk_bytes: number | null;
    /** Time of the report, unix milliseconds. */
    readonly heard_at: number | null;
  };
  /** Times in which the orchestrator took samples, Unix seconds: outside of them nothing is known. */
  readonly usage_spans: { readonly began: number; readonly until: number };
  /** How far samples have been rolled up, by step, and events have been counted; the last number of a project. */
  readonly usage_marks: { readonly name: string; readonly value: number };
}
