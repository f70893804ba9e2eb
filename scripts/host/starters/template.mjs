// Builds the template of a starter with the public SDK in a project of the platform's own, and promotes it: then it has this name
// for every project. Argument: the file that keeps that project's key, for root only.
// Reads SVC_ADMIN_TOKEN, E2B_API_URL, E2B_SANDBOX_URL, SVC_REPORT (a file for one line), and what `template` takes from the recipe.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { env } from "node:process";
import { Sandbox, Template } from "e2b";

const { SVC_ADMIN_TOKEN, E2B_API_URL, SVC_REPORT = "", SVC_STARTER: NAME = "" } = env;
const { SVC_IMAGE = "", SVC_IMAGE_ID, SVC_START = "", SVC_READY = "", SVC_FIRST = "", SVC_ANSWER = "" } = env;
const SIZE = { cpuCount: Number(env.SVC_CPU_COUNT), memoryMB: Number(env.SVC_MEMORY_MB) };
const [, , keyFile = ""] = process.argv;
// The build's second tag: the template is built again when the image or one of these is another.
const made = createHash("sha256")
  .update(JSON.stringify([SVC_IMAGE_ID, SIZE, SVC_START, SVC_READY]))
  .digest("hex")
  .slice(0, 16);

async function call(method, path, headers, body) {
  const response = await fetch(`${E2B_API_URL}${path}`, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

const admin = (method, path, body) => call(method, path, { "x-admin-token": SVC_ADMIN_TOKEN }, body);
const withKey = (key, path) => call("GET", path, { "x-api-key": key });

/** The key of the platform's project; makes both when there is none that works. */
async function platformKey() {
  let known = "";
  try {
    known = readFileSync(keyFile, "utf8").trim();
  } catch {
    // The first run.
  }
  const works =
    known !== "" &&
    (await withKey(known, "/v2/sandboxes?limit=1").then(
      () => true,
      () => false,
    ));
  if (works) return known;
  const { teamID } = await admin("POST", "/admin/projects", { name: "platform" });
  const { key } = await admin("POST", `/admin/teams/${teamID}/api-keys`, { name: "scripts/template" });
  // The SDK checks the prefix of a key.
  const kept = `e2b_${key.replace(/^svc_/, "")}`;
  writeFileSync(keyFile, `${kept}\n`, { mode: 0o600 });
  return kept;
}

/** The template's id if its default build is the one of this image. */
async function current(key) {
  try {
    const tags = await withKey(key, `/templates/${NAME}/tags`);
    const buildOf = (name) => tags.find(({ tag }) => tag === name)?.buildID;
    if (buildOf("default") === undefined || buildOf("default") !== buildOf(made)) return undefined;
    return (await withKey(key, `/templates/${NAME}`)).templateID;
  } catch {
    return undefined;
  }
}

const key = await platformKey();
const there = await current(key);
let templateID = there;
if (templateID === undefined) {
  const image = Template().fromImage(SVC_IMAGE);
  const template = SVC_START === "" ? image : image.setStartCmd(SVC_START, SVC_READY);
  const options = { apiKey: key, apiUrl: E2B_API_URL, tags: ["default", made], ...SIZE };
  const onBuildLogs = ({ level, message }) => void process.stdout.write(`${level}: ${message}\n`);
  ({ templateId: templateID } = await Template.build(template, NAME, { ...options, onBuildLogs }));
}
await admin("POST", "/admin/templates/promote", { templateID, name: NAME });

// The first run, as a client makes it.
const began = performance.now();
const sandbox = await Sandbox.create(NAME, { apiKey: key, timeoutMs: 60_000 });
try {
  const { stdout } = await sandbox.commands.run(SVC_FIRST, { timeoutMs: 60_000 });
  if (!stdout.includes(SVC_ANSWER)) throw new Error(`'${SVC_FIRST}' was answered with: ${stdout}`);
} finally {
  await sandbox.kill();
}
const elapsed = Math.round(performance.now() - began);
writeFileSync(
  SVC_REPORT,
  `${NAME}, ${there === undefined ? "built" : "was there"}; created and answered in ${elapsed} ms`,
);
