/** `svc debug bundle` packs what a helper needs to see, without secrets. */

import { writeBundle } from "../../../machine/bundle/bundle.ts";
import { knownValues } from "../../../machine/bundle/known-values.ts";
import { partsOf } from "../../../machine/bundle/parts.ts";
import { redactor } from "../../../machine/bundle/redact.ts";
import type { Action } from "../../definition.ts";
import { bytes } from "../../output/time.ts";
import { fileTime, hereAsRoot, newFile } from "./here.ts";

const SINCE_S = 3_600;

export const bundle: Action = async (context, _args, { file, since = SINCE_S }) => {
  const machine = hereAsRoot(context);
  const now = machine.now();
  const path = newFile(file ?? `svc-debug-${fileTime(now)}.tar.gz`);
  const parts = await writeBundle({
    parts: partsOf(machine, now - since * 1_000),
    redact: redactor(knownValues(machine.instance)),
    path,
    signal: context.signal,
    onPart: ({ name, bytes: size, seconds, problem }) =>
      context.out.note(
        problem === undefined ? `${name}: ${bytes(size)}, ${seconds} s` : `${name}: left out: ${problem}`,
      ),
  });
  const failed = parts.filter(({ problem }) => problem !== undefined).length;
  context.out.note(
    `${parts.length - failed} parts, ${failed} left out. Known secrets are redacted; look through it before you send it to anyone.`,
  );
  await context.out.line(path);
};
