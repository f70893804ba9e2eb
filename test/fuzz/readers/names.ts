/**
 * Fuzzes the readers of names and references that people and programs write: hosts, ranges, images, templates, page tokens,
 * signed URLs.
 */

import { isBaseName, parseImageName } from "../../../agent/builds/images/image-name.ts";
import { readImage } from "../../../orchestrator/builds/image-reference.ts";
import { checkUploadUrl, uploadUrl } from "../../../orchestrator/builds/uploads/url.ts";
import { isInternalRoute } from "../../../orchestrator/edge/internal-routes.ts";
import { readSigned } from "../../../orchestrator/edge/signed-url.ts";
import { targetOf } from "../../../orchestrator/edge/target.ts";
import { fromToken, toToken } from "../../../orchestrator/sandboxes/lists.ts";
import { parseTag, parseTemplateReference } from "../../../orchestrator/templates/reference.ts";
import { parseSandboxId } from "../../../shared/ids.ts";
import { hostName, hostOfHeader } from "../../../shared/policy/names.ts";
import { addressText, parseRange } from "../../../shared/policy/ranges.ts";
import { must, type Reader, unlessRefused } from "../reader.ts";

const LONGEST_NAME = 253;
/** The host as the WHATWG URL parser reads it, which browsers and Node's clients use. */
function urlHost(host: string): string | undefined {
  try {
    return new URL(`http://${host}/`).hostname;
  } catch {
    return undefined;
  }
}

/** Whether URL parsers read the path as `//host/path`: such a path leads to another server. */
function hasAuthority(path: string): boolean {
  return path
    .replaceAll(/[\t\r\n]/g, "")
    .replaceAll("\\", "/")
    .startsWith("//");
}

const HOST_WORDS = [
  ".",
  "..",
  "*",
  "xn--",
  "%00",
  "\0",
  ":80",
  ":",
  "[::1]",
  "@",
  "/",
  "\\",
  "\u00fc",
  "127.0.0.1",
  "0x7f",
  "localhost",
  "-",
];
const SEED = "a seed of the tests";
const NOW = Date.parse("2026-01-01T00:00:00Z");
const PLACE = { templateId: "abcdefghij0123456789", hash: "a".repeat(64) };

export const names: readonly Reader[] = [
  {
    name: "host-name",
    promise: "never throws; a spelling of ours is its own spelling, and is the host that a URL with it leads to",
    seeds: () => [
      "example.com",
      "A.B.Example.COM.",
      "xn--bcher-kva.test",
      "_dmarc.example.com",
      "1.2.3.4",
      "b\u00fccher.test",
    ],
    words: HOST_WORDS,
    longest: 400,
    share: 60_000,
    check(input) {
      const name = hostName(input.toString("utf8"));
      const ofHeader = hostOfHeader(input.toString("latin1"));
      if (ofHeader !== undefined) must(hostName(ofHeader) === ofHeader, "a host of a header is not spelled as ours");
      if (name === undefined) return;
      must(name.length <= LONGEST_NAME && hostName(name) === name, `${name} has another spelling`);
      const seen = urlHost(name);
      if (seen !== undefined) must(seen === name, `a URL with ${name} leads to ${seen}`);
    },
  },
  {
    name: "address-range",
    promise: "never throws; both ends are addresses, in order, and read again as themselves",
    seeds: () => ["203.0.113.0/24", "0.0.0.0/0", "10.1.2.3", "255.255.255.255/32"],
    words: [".", "/", "/32", "/33", "0", "00", "256", "0x", " ", "+", "e"],
    longest: 60,
    share: 60_000,
    check(input) {
      const range = parseRange(input.toString("latin1"));
      if (range === undefined) return;
      must(range.first >= 0 && range.first <= range.last && range.last < 2 ** 32, "the ends are no addresses");
      must(parseRange(addressText(range.first))?.first === range.first, "an end is not read again as itself");
    },
  },
  {
    name: "edge-target",
    promise: "never throws; a sandbox and port, or a refusal; by host name it is the one that a browser asked for",
    seeds: () => [
      "8080-i0123456789abcdefghi.example.com",
      "49983-iabc.localhost:3000",
      "localhost:3000",
      "sandbox.example.com",
      "[::1]:80",
    ],
    words: [...HOST_WORDS, "8080-", "-i0", "sandbox."],
    longest: 300,
    share: 60_000,
    check(input) {
      const host = input.toString("latin1");
      const target = targetOf({ hosts: [host], ids: [], ports: [] });
      const byHeader = targetOf({ hosts: ["localhost"], ids: [host], ports: [host] });
      for (const one of [target, byHeader])
        if (one.is === "sandbox")
          must(parseSandboxId(one.sandboxId) === one.sandboxId && one.port >= 0, "it is no sandbox's id");
      if (target.is !== "sandbox") return;
      const seen = urlHost(host);
      const label = seen?.split(".")[0];
      if (label !== undefined && /^\d/.test(label))
        must(label.split("-")[1] === target.sandboxId, `a browser asks for ${seen}, we route to ${target.sandboxId}`);
    },
  },
  {
    name: "internal-route",
    promise: "never throws; what a URL parser takes for an internal route of envd is one",
    seeds: () => [
      "/init",
      "/files?path=/a",
      "/health",
      "/%69nit",
      "//init/",
      "/a/../init",
      "/ca-bundle",
      "/process.Process/Start",
    ],
    words: ["/", "..", "%2e", "%2f", "%25", "\\", ";", "?", "#", "init", "INIT", "\t", "%00", "%"],
    longest: 300,
    share: 60_000,
    check(input) {
      const path = `/${input.toString("latin1")}`;
      const internal = isInternalRoute(path);
      let seen: string;
      try {
        seen = new URL(path, "http://x").pathname;
      } catch {
        return;
      }
      if (/^\/(init|freeze|warm|watches)(\/|$)/.test(seen) && !hasAuthority(path))
        must(internal, `a URL parser reads ${seen}, and it is let through`);
    },
  },
  {
    name: "signed-url",
    promise: "never throws; what is signed is what a URL parser reads of the query",
    seeds: () => [
      "/files?path=/a&signature=v1_x&signature_expiration=1&username=user",
      "/files?signature=v1_&path=%2Fa%20b",
    ],
    words: ["&", "=", "signature=", "path=", "%", "%2", "+", "#", "?", "username=", ";"],
    longest: 600,
    share: 40_000,
    check(input) {
      const url = input.toString("latin1");
      const signed = readSigned("GET", url);
      if (signed === undefined) return;
      must(url.startsWith("/files?"), "another path is read as signed");
      const seen = new URLSearchParams(url.slice("/files?".length));
      must(
        signed.path === (seen.get("path") ?? "") && signed.signature === seen.get("signature"),
        "it reads otherwise",
      );
    },
  },
  {
    name: "upload-url",
    promise: "throws its own error for every query but the one that was signed",
    seeds: () => [uploadUrl("http://x", PLACE, { seed: SEED, now: NOW }).split("?")[1] ?? ""],
    words: ["&", "=", "expires=", "signature=", "%", "+", "0"],
    longest: 400,
    share: 20_000,
    check(input) {
      const query = Object.fromEntries(new URLSearchParams(input.toString("latin1")));
      const right = Object.fromEntries(new URL(uploadUrl("http://x", PLACE, { seed: SEED, now: NOW })).searchParams);
      const taken = unlessRefused(["forbidden"], () => {
        checkUploadUrl(PLACE, query, { seeds: [SEED], now: NOW });
        return true;
      });
      if (taken === true)
        must(
          Number(query["expires"]) === Number(right["expires"]) && query["signature"] === right["signature"],
          `another query was taken: ${JSON.stringify(query)}`,
        );
    },
  },
  {
    name: "page-token",
    promise: "throws its own error only; a token that is taken is the one made for its position",
    seeds: () => [toToken({ startedAt: NOW, id: "i0123" }, "desc"), toToken({ startedAt: NOW, id: "i0123" }, "asc")],
    words: ["__", "=", "-", "_", "Z", "YXNj"],
    longest: 300,
    share: 60_000,
    check(input) {
      for (const order of ["asc", "desc"] as const) {
        const position = unlessRefused(["bad_request"], () => fromToken(input.toString("latin1"), order));
        if (position === undefined) continue;
        must(Number.isFinite(position.startedAt), "a position without a time was taken");
        const again = fromToken(toToken(position, order), order);
        must(again?.id === position.id && again.startedAt === position.startedAt, "its token is read otherwise");
      }
    },
  },
  {
    name: "template-reference",
    promise: "throws its own error only; what it reads, written again, is read the same",
    seeds: () => ["base", "team/my-template:v1.2", "Name:TAG", "abcdefghij0123456789:default"],
    words: ["/", ":", "::", "..", "-", "_", " ", "\u00e4", "00000000-0000-0000-0000-000000000000"],
    longest: 300,
    share: 60_000,
    check(input) {
      const text = input.toString("utf8");
      unlessRefused(["bad_request"], () => parseTag(text));
      const reference = unlessRefused(["bad_request"], () => parseTemplateReference(text));
      if (reference === undefined) return;
      const { namespace, name, tag } = reference;
      const written = `${namespace === undefined ? "" : `${namespace}/`}${name}:${tag}`;
      must(
        JSON.stringify(parseTemplateReference(written)) === JSON.stringify(reference),
        `${written} is read otherwise`,
      );
    },
  },
  {
    name: "image-name",
    promise: "throws its own error only; Docker's spelling is its own spelling, of the same registry",
    seeds: () => [
      "ubuntu",
      "library/ubuntu:22.04",
      "docker.io/library/node:20-slim",
      "registry.example.com:5000/a/b-c_d:1.0",
      `localhost/x@sha256:${"0".repeat(64)}`,
      "svc/build:x",
    ],
    words: [
      "library/",
      "docker.io/",
      "index.docker.io/",
      "svc/",
      "build:",
      ":",
      "@",
      "/",
      "localhost",
      ":5000",
      "--",
      "__",
      ".",
    ],
    longest: 300,
    share: 60_000,
    check(input) {
      const text = input.toString("latin1");
      isBaseName(text);
      const given = unlessRefused(["bad_request"], () => readImage(text));
      const image = unlessRefused(["bad_request"], () => parseImageName(given?.is === "image" ? given.image : text));
      if (image === undefined) return;
      must(!/[^!-~]/.test(image.name) && image.name.length <= text.length + 10, "the name has what no name has");
      must(!image.name.startsWith("-") && !image.registry.startsWith("-"), "the name is an option of a program");
      const again = parseImageName(image.name);
      must(again.name === image.name && again.registry === image.registry, `${image.name} is read as ${again.name}`);
    },
  },
];
