// Takes the archive of the base template's image from the platform that this machine joins, so that no packages are fetched for it. The
// join token is in JOIN_TOKEN, because every user of the machine can read command lines; it is sent over a connection that the authority
// of the token verifies, and stays unused.
// Usage: base-from-platform.mjs URLS RECIPE FILE     URLS: the orchestrators' ports for nodes, with commas between several
// Leaves FILE whole, or nothing. Exit status 3: the platform gave none; the reason is on standard output.
import { createHash, X509Certificate } from "node:crypto";
import { createWriteStream, renameSync, rmSync } from "node:fs";
import { Agent, request } from "node:https";
import { pipeline } from "node:stream/promises";
import { connect } from "node:tls";

const NONE = 3;
const SILENCE_MS = 20_000;
/** What a set-up spends on a try at most: with packages it takes about as long. */
const LIMIT_MS = 180_000;
const LONGEST_ANSWER = 4096;
const PLATFORM = "URI:svc://orchestrator";
/** As `shared/tls/peers.ts` has them. */
const tls = { servername: "", minVersion: "TLSv1.3" };

const token = (process.env.JOIN_TOKEN ?? "").trim();
const [, digest] = /^svcjoin1\.([0-9a-f]{64})\.[a-z0-9]{12}\.[A-Za-z0-9_-]{32}$/.exec(token) ?? [];

/** Reads the authority that the address shows. Sends nothing. */
function authorityAt({ hostname, port }) {
  return new Promise((resolve, reject) => {
    const host = hostname.replace(/^\[|\]$/g, "");
    const socket = connect({ host, port: port || 443, rejectUnauthorized: false, ...tls }, () => {
      let shown = socket.getPeerCertificate(true);
      const passed = new Set();
      while (shown?.raw !== undefined && !passed.has(shown.fingerprint256)) {
        passed.add(shown.fingerprint256);
        const certificate = new X509Certificate(shown.raw);
        if (digestOf(certificate) === digest) resolve(certificate.toString());
        shown = shown.issuerCertificate;
      }
      reject(new Error("it shows another authority than the join token names"));
      socket.destroy();
    });
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error("it does not answer")));
    socket.on("error", reject);
  });
}

function digestOf({ publicKey }) {
  return createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("hex");
}

function answerOf(url, ca, signal) {
  return new Promise((resolve, reject) => {
    const checkServerIdentity = (_host, { subjectaltname }) =>
      subjectaltname === PLATFORM ? undefined : new Error("its certificate is not of an orchestrator");
    const asked = request(
      url,
      { agent: new Agent({ ca, ...tls, checkServerIdentity }), headers: { "x-join-token": token }, signal },
      resolve,
    );
    asked.setTimeout(SILENCE_MS, () => asked.destroy(new Error("nothing came for a while")));
    asked.on("error", reject);
    asked.end();
  });
}

/** @throws {Error} that says why there is no archive */
async function take(url, recipe, file) {
  const signal = AbortSignal.timeout(LIMIT_MS);
  const ca = await authorityAt(url);
  const answer = await answerOf(new URL(`/internal/base-image/${recipe}?processor=${process.arch}`, url), ca, signal);
  if (answer.statusCode !== 200) throw new Error(await messageOf(answer));
  const draft = `${file}.part`;
  try {
    const target = createWriteStream(draft, { mode: 0o644 });
    await pipeline(answer, target, { signal });
    const bytes = Number(answer.headers["content-length"]);
    if (target.bytesWritten !== bytes) throw new Error(`it sent ${target.bytesWritten} of ${bytes} bytes`);
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

async function messageOf(answer) {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) {
    text += part;
    if (text.length > LONGEST_ANSWER) break;
  }
  const plain = `it answers ${answer.statusCode}`;
  try {
    return JSON.parse(text).message ?? plain;
  } catch {
    return plain;
  }
}

/** @returns the reasons why no platform gave it; none when one did */
async function takeFromAny(urls, recipe, file) {
  if (digest === undefined) return ["the join token is cut off or changed"];
  const refusals = [];
  for (const url of urls.split(",")) {
    try {
      await take(new URL(url), recipe, file);
      return [];
    } catch (error) {
      const why = error.name === "TimeoutError" || error.name === "AbortError" ? "it took too long" : error.message;
      refusals.push(`${url}: ${why}`);
    }
  }
  return refusals;
}

const [urls = "", recipe = "", file = ""] = process.argv.slice(2);
const refusals = await takeFromAny(urls, recipe, file);
if (refusals.length > 0) {
  process.stdout.write(`${refusals.join("; ").replaceAll("\n", " ")}\n`);
  // Not by process.exit(): it may wait for ever for a compilation that waits for the main thread (nodejs/node issue 54918).
  process.exitCode = NONE;
}
