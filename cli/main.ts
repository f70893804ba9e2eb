/** `svc`: the command of the people who use and run the platform. Starts with as little as possible; a command loads its own code. */

import { VERSION } from "../shared/version.ts";

const [first, ...others] = process.argv.slice(2);
if ((first === "--version" || first === "-V") && others.length === 0) {
  process.stdout.once("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== "EPIPE") process.stderr.write(`error: the output cannot be written: ${code ?? message}\n`);
    process.exitCode = 1;
  });
  process.stdout.write(`${VERSION}\n`);
} else {
  const { run } = await import("./run.ts");
  let isLost = false;
  // A reader that goes when the command has ended has seen what it wanted.
  process.stdout.once("error", ({ code: cause }: NodeJS.ErrnoException) => (isLost = cause !== "EPIPE"));
  const code = await run(process.argv.slice(2), { env: process.env, streams: process });
  // What a slow reader of a pipe has not taken yet would be lost.
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((done) => void stream.write("", () => done()))),
  );
  // The stream reports a failed last write by an event, after the command has returned.
  await new Promise<void>((done) => void setImmediate(done));
  process.exit(code === 0 && isLost ? 1 : code);
}
