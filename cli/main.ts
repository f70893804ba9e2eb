/** `svc`: the command of the people who use and run the platform. Starts with as little as possible; a command loads its own code. */

import { VERSION } from "../shared/version.ts";

const [first, ...others] = process.argv.slice(2);
if ((first === "--version" || first === "-V") && others.length === 0) {
  process.stdout.write(`${VERSION}\n`);
} else {
  const { run } = await import("./run.ts");
  const code = await run(process.argv.slice(2), { env: process.env, streams: process });
  // What a slow reader of a pipe has not taken yet would be lost.
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((done) => void stream.write("", () => done()))),
  );
  process.exit(code);
}
