/** `svc doctor`: shows what the checks of this machine found. */

import type { Machine } from "../../../machine/base/this-machine.ts";
import type { Result } from "../../../machine/checks/check.ts";
import { examine, type Mended, mend, preflight, type Report } from "../../../machine/doctor/doctor.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import { wordsOf } from "../../installed.ts";
import type { Options } from "../../options.ts";
import { hereAsRoot, sayInstance } from "./here.ts";

const WORDS = { failed: "FAIL", warning: "WARN", unknown: "?", ok: "ok" } as const;

export const doctor: Action = async (context, _args, options) => {
  const machine = hereAsRoot(context);
  let report = await seen(context, () => look(machine, options));
  context.signal.throwIfAborted();
  let mended: readonly Mended[] = [];
  if (options.fix === true) {
    sayInstance(context, machine);
    mended = await mend(report, machine);
    // The report is of the machine as it is now.
    if (mended.length > 0) report = await seen(context, () => examine(machine));
  }
  const code = report.ok ? 0 : EXIT.failed;
  const output = options.output ?? (options.json === true ? "json" : undefined);
  if (output !== undefined) {
    await context.out.structured({ ...report, mended }, { output });
    return code;
  }
  for (const { id, evidence, problem } of mended) {
    await context.out.line(
      problem === undefined ? `mended ${id}: ${evidence}` : `not mended ${id}: ${evidence}: ${problem}`,
    );
  }
  for (const result of report.checks) {
    if (result.status === "ok" && options.all !== true) continue;
    if (result.status === "unknown" && options.all !== true) continue;
    await context.out.line(...linesOf(result).map(wordsOf(context.env)));
  }
  context.out.note(summary(report));
  return code;
};

/** A look that fails has an exit code of its own: the package refuses an upgrade for what was found, and for nothing else. */
export async function seen<T>({ signal }: Pick<Context, "signal">, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (signal.aborted || cause instanceof Failure) throw cause;
    throw new Failure(`doctor itself failed: ${cause instanceof Error ? cause.message : String(cause)}`, {
      exitCode: EXIT.crashed,
      cause,
      wayOut: "this says nothing of the machine; `svc debug bundle` collects what is needed to find out why",
    });
  }
}

function look(machine: Machine, { preflight: isForUpgrade = false, fix = false }: Options): Promise<Report> {
  if (isForUpgrade && fix) throw usage("--preflight changes nothing: --fix is another run");
  return isForUpgrade ? preflight(machine) : examine(machine);
}

function linesOf({ id, section, status, problem, evidence, fix }: Result): readonly string[] {
  const word = WORDS[status].padEnd(5);
  if (status === "ok") return [`${word} ${section}: ${id}`];
  if (status === "unknown") return [`${word} ${section}: ${id}: ${evidence}`];
  return [`${word} ${section}: ${problem} (${id})`, `      ${evidence}`, `      -> ${fix}`];
}

/** Pure. */
export function summary({ checks, ok }: Report): string {
  const count = (status: Result["status"]) => checks.filter((one) => one.status === status).length;
  const some = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const unknown = count("unknown");
  return [
    ok ? "No failure" : some(count("failed"), "failure"),
    some(count("warning"), "warning"),
    `${count("ok")} checks passed`,
    ...(unknown === 0 ? [] : [`${unknown} could not be seen (--all names them)`]),
  ].join(", ");
}
