/** `svc backup` and `svc restore`: the records of the platform and all that opens them. */

import { makeBackup } from "../../../machine/backup/backup.ts";
import { drill } from "../../../machine/backup/drill.ts";
import { restore as putBack, withBackup } from "../../../machine/backup/restore.ts";
import type { Action } from "../../definition.ts";
import { EXIT } from "../../failure.ts";
import { wordsOf } from "../../installed.ts";
import { fileTime, hereAsRoot, knownFile, newFile, sayInstance } from "./here.ts";

export const backup: Action = async (context, { first }) => {
  const machine = hereAsRoot(context);
  const path = newFile(first === "" ? `svc-backup-${fileTime(machine.now())}.tar.gz` : first);
  await makeBackup(machine, { path, onStep: (text) => context.out.note(text) });
  context.out.note(
    "It holds every key of the platform: keep it where only you can read it. Try it with `svc restore --drill`.",
  );
  await context.out.line(path);
};

export const restore: Action = async (context, { first }, options) => {
  const machine = hereAsRoot(context);
  return withBackup(machine, knownFile(first), async (content, manifest) => {
    context.out.note(
      `backup of ${manifest.madeAt}, version ${manifest.version}: ${manifest.files.length} files, checksums are right`,
    );
    if (options.drill === true) {
      const { problems, records, seconds } = await drill(machine, content, manifest);
      for (const problem of problems) await context.out.line(`FAIL  ${problem}`);
      if (problems.length > 0) return EXIT.failed;
      await context.out.line(
        `The drill is green: ${records} records, ${seconds} s. Nothing of this machine has changed.`,
      );
      return 0;
    }
    context.signal.throwIfAborted();
    sayInstance(context, machine);
    // Half of a restore would be none.
    context.signal.addEventListener("abort", () => context.out.note("the restore goes on to its end"));
    await putBack(hereAsRoot({ env: context.env }), content, manifest, {
      force: options.force === true,
      onStep: (text) => context.out.note(text),
    });
    const next = "Start the orchestrator (./scripts/service start orchestrator), then ./scripts/node adopt";
    context.out.note(`${wordsOf(context.env)(next)}: docs/operating/backup.md`);
    return 0;
  });
};
