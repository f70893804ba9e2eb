/** A hunt for values of secrets and tokens that were used: nothing that the platform writes or shows has them. */

import { readFile } from "node:fs/promises";
import { Secret } from "e2b";
import { expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { dropFrozen } from "../../support/platform/frozen.ts";
import { inAnswers, inFiles, inProcesses } from "../../support/platform/hunt.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { egressPid, pidOf } from "../../support/platform/programs.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";
import { freshValue, ownSecret } from "../../support/sandbox/secrets.ts";

const platform = openPlatform();
const internet = openInternet();
/** The answer has no body: otherwise the server, which repeats requests, would show the values to the sandbox. */
const REQUEST = "curl -sS -m 30 -o /dev/null -I https://api.example/";
/** A new version is used soon, and a busy machine is slow. */
const SLOW = { timeout: 90_000 };
/** Keeps a text in its memory and its environment. */
const keeping = (text: string) =>
  `CANARY=${text} python3 -c 'import os, time; kept = os.environ["CANARY"]; time.sleep(600)'`;

test("values of secrets and tokens are nowhere after uses, a new version, a deletion and a pause; a canary is found", async () => {
  const secret = await ownSecret();
  const next = freshValue();
  const canary = freshValue();
  const sandbox = await ownSandbox({
    metadata: { canary },
    iam: { tokens: { cloud: Secret.iamToken({ audience: "sts.example", tokenType: "JWT-SVID" }) } },
    network: {
      rules: {
        "api.example": [
          {
            transform: ({ iam }) => ({
              headers: { "x-key": Secret.fill(secret.name), "x-token": `${iam.tokens["cloud"]}` },
            }),
          },
        ],
      },
    },
  });
  const { sandboxId } = sandbox;
  const watch = await internet.watch();
  const used = async () => (await watch.all("request")).map(({ headers }) => headers["x-key"]);
  await sandbox.commands.run(`${REQUEST}; ${REQUEST}`);
  await Secret.update(secret.name, next);
  await expect
    .poll(async () => {
      await sandbox.commands.run(REQUEST);
      return (await used()).at(-1);
    }, SLOW)
    .toBe(next);
  const token = String((await watch.all("request"))[0]?.headers["x-token"]);
  const signature = token.split(".")[2] ?? "";
  expect([(await used())[0], token.split(".").length]).toEqual([secret.value, 3]);
  const values = [secret.value, next, token, signature];

  // The canary shows that the hunt finds what is there.
  await sandbox.files.write("canary", Buffer.from(canary).toString("base64"));
  await (await sandbox.commands.run(keeping(canary), { background: true, timeoutMs: 0 })).disconnect();
  await sandbox.commands.run("sync");
  const texts = [...values, canary];
  const hunted = [...(await inProcesses(texts))];
  await Secret.destroy(secret.name);
  await sandbox.pause();
  await dropFrozen(platform, sandboxId);
  hunted.push(...(await inFiles(platform, sandboxId, texts)), ...(await inAnswers(platform, sandboxId, texts)));
  const places = hunted.filter(({ text }) => text === canary).map(({ place }) => place);
  for (const place of [
    /\/environ$/,
    /orchestrator\/.*\.db(-wal)?$/,
    /pages-\d+\.img$/,
    /disks\/.*\.img$/,
    /^\/sandboxes\//,
  ])
    expect(places).toEqual(expect.arrayContaining([expect.stringMatching(place)]));
  expect(hunted.filter(({ text }) => text !== canary)).toEqual([]);
});

test("no program of the platform writes its memory to a core file", async () => {
  const pids = [await pidOf(platform, "orchestrator"), await pidOf(platform, "agent"), await egressPid(platform)];
  for (const pid of pids) {
    expect(await readFile(`/proc/${pid}/limits`, "utf8")).toMatch(/^Max core file size +0 +/m);
    expect(Number.parseInt(await readFile(`/proc/${pid}/coredump_filter`, "utf8"), 16)).toBe(0);
  }
});
