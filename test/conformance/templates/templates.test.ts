/** Templates that the published SDK builds, and sandboxes of them. */

import { BuildError, Sandbox, Template, type TemplateClass, waitForPort } from "e2b";
import { expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { buildTemplate, contextOf, fresh, removeAfterwards, SIZE } from "../../support/platform/templates.ts";
import { visit } from "../../support/sandbox/pausing.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const build = (name: string, template: TemplateClass) => buildTemplate(platform, name, template);

test("every kind of step is in the sandboxes of a template, and a second build takes all of it from the cache", async () => {
  const fileContextPath = await contextOf({
    "app/main.py": "print('made')",
    "app/deep/data.txt": "data",
    "one.txt": "1",
  });
  const definition = () =>
    Template({ fileContextPath })
      .fromTemplate("base")
      .setEnvs({ GREETING: `it's "quoted" \\ $HOME`, SECOND: "two" })
      .setWorkdir("/srv/work")
      .runCmd("id -un > who.txt; printenv SECOND > env.txt", { user: "root" })
      .copy("app", "app/")
      .copy("one.txt", "/opt/renamed.txt", { mode: 0o640, user: "root" });
  const name = fresh("steps");
  const first = await build(name, definition());
  expect(first.lines.join("\n")).not.toContain("CACHED");
  const again = await build(name, definition());
  expect(again.templateId).toBe(first.templateId);
  expect(again.buildId).not.toBe(first.buildId);
  expect(again.lines.filter((line) => line.startsWith("CACHED"))).toHaveLength(5);

  const sandbox = await ownSandbox({ template: name });
  const run = async (command: string) => (await sandbox.commands.run(command)).stdout.trim();
  expect(await run("pwd; cat who.txt env.txt")).toBe("/srv/work\nroot\ntwo");
  expect(await run("python3 app/main.py; cat app/deep/data.txt")).toBe("made\ndata");
  expect(await run("stat -c '%U %a' /opt/renamed.txt")).toBe("root 640");
  expect(await run("printenv SECOND")).toBe("two");
});

test("a start command answers the first request in each sandbox", async () => {
  const name = fresh("start");
  await build(name, Template().fromTemplate("base").setStartCmd("python3 -m http.server 8000", waitForPort(8000)));
  for (let round = 0; round < 3; round++) {
    const sandbox = await ownSandbox({ template: name });
    expect((await visit(platform, sandbox, { port: 8000, path: "/" })).status).toBe(200);
  }
});

test("templates go on from templates, three levels deep", async () => {
  const [one, two, three] = [fresh("one"), fresh("two"), fresh("three")] as const;
  await build(one, Template().fromTemplate("base").setEnvs({ LEVEL: "1", ONE: "1" }).runCmd("echo 1 >> ~/levels"));
  await build(two, Template().fromTemplate(one).setEnvs({ LEVEL: "2" }).runCmd("echo 2 >> ~/levels"));
  await build(three, Template().fromTemplate(two).runCmd("echo 3 >> ~/levels").setWorkdir("/tmp"));
  expect(await Promise.all([one, two, three].map((name) => Template.exists(name)))).toEqual([true, true, true]);
  const sandbox = await ownSandbox({ template: three });
  const { stdout } = await sandbox.commands.run("cat ~/levels; echo $LEVEL $ONE; pwd");
  expect(stdout).toBe("1\n2\n3\n2 1\n/tmp\n");
});

test("the error of a failed step names the step and the reason, and the earlier build stays in use", async () => {
  const name = fresh("failing");
  await build(name, Template().fromTemplate("base").runCmd("echo good > ~/which"));
  const broken = Template().fromTemplate("base").runCmd("true").runCmd("echo out; exit 7");
  const error = await refusal(Template.build(broken, name, SIZE));
  expect(error).toBeInstanceOf(BuildError);
  expect(error.message).toContain("failed to run command 'echo out; exit 7': exit status 7");
  const nobody = Template().fromTemplate("base").setUser("root").runCmd("whoami", { user: "root123" });
  expect((await refusal(Template.build(nobody, name, SIZE))).message).toContain(
    "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'",
  );
  const sandbox = await ownSandbox({ template: name });
  expect((await sandbox.commands.run("cat ~/which")).stdout).toBe("good\n");
});

test("a template's name exists once it is built, and its tags are assigned, listed and removed", async () => {
  const name = fresh("tagged");
  expect(await Template.exists(name)).toBe(false);
  const { templateId, buildId } = await build(`${name}:v1`, Template().fromTemplate("base").runCmd("echo v1 > ~/v"));
  expect(await Template.exists(name)).toBe(true);
  expect(await Template.assignTags(`${name}:v1`, ["stable", "production"])).toMatchObject({
    buildId,
    tags: ["stable", "production"],
  });
  const tags = (await Template.getTags(templateId)).map(({ tag }) => tag);
  expect(tags.toSorted()).toEqual(["production", "stable", "v1"]);
  await Template.removeTags(name, "production");
  expect((await Template.getTags(templateId)).map(({ tag }) => tag).toSorted()).toEqual(["stable", "v1"]);
  const sandbox = await ownSandbox({ template: `${name}:stable` });
  expect((await sandbox.commands.run("cat ~/v")).stdout).toBe("v1\n");
  expect((await refusal(Sandbox.create(`${name}:nothing`))).message).toContain("nothing");
});

test("a build in the background reads as building at first", async () => {
  const seen: string[] = [];
  // A machine that stands still may see the first one only when it is over.
  for (const seconds of [2, 60]) {
    const definition = Template().fromTemplate("base").runCmd(`sleep ${seconds}`);
    const info = await Template.buildInBackground(definition, fresh("background"), SIZE);
    removeAfterwards(platform, info.templateId);
    seen.push((await Template.getBuildStatus(info)).status);
    await expect.poll(async () => (await Template.getBuildStatus(info)).status, { timeout: 150_000 }).toBe("ready");
    if (seen.includes("building")) break;
  }
  expect(seen.at(-1)).toBe("building");
});
