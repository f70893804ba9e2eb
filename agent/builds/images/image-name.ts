/** Parses image names as people write them. Pure. */

import { AppError } from "../../../shared/http/errors.ts";

export interface ImageName {
  /** As the Docker daemon lists it: default parts left out, tag included. */
  readonly name: string;
  /** Host and port of the registry. */
  readonly registry: string;
}

const DOCKER_HUB = "docker.io";
const PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const NAME = new RegExp(
  `^(?:((?!-)(?:[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)+|localhost|[A-Za-z0-9-]+(?=:\\d))(?::\\d{1,5})?)/)?` +
    `(${PART}(?:/${PART})*)(?::([\\w][\\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`,
);
/** Client-side names of the node's own image: need no registry. */
const BASE_NAMES = new Set(["base", "base:latest", "e2bdev/base", "e2bdev/base:latest", "docker.io/e2bdev/base"]);
/** Client-side names of the code interpreter's image. */
const INTERPRETER_NAME = /^(?:(?:docker\.io\/)?e2bdev\/|svc\/)code-interpreter(?::latest)?$/;
const STARTER_NAME = /^svc\/starter\/([a-z0-9][a-z0-9.-]*)(?::latest)?$/;
/** Names of templates and snapshots of all projects, which are in the same Docker daemon. */
const OURS = /^svc\/(?:build|from|layer|snapshot)[:@]/;

export function isBaseName(image: string): boolean {
  return BASE_NAMES.has(image.trim());
}

/** An image that `scripts/template NAME` makes on the node; undefined: the name of another one. */
export function starterOf(image: string): { readonly image: string; readonly template: string } | undefined {
  const name = image.trim();
  if (INTERPRETER_NAME.test(name)) return { image: "svc/code-interpreter:latest", template: "code-interpreter-v1" };
  const template = STARTER_NAME.exec(name)?.[1];
  return template === undefined ? undefined : { image: `svc/starter/${template}:latest`, template };
}

const LONGEST_SHOWN = 200;

/** @throws {AppError} bad_request */
export function parseImageName(text: string): ImageName {
  const found = NAME.exec(text.trim());
  if (found === null)
    throw new AppError(
      "bad_request",
      `'${text.slice(0, LONGEST_SHOWN)}' is not the name of an image${whyNot(text.trim())}`,
    );
  const [, host, path = "", tag, digest] = found;
  const registry = host === undefined || host === "index.docker.io" ? DOCKER_HUB : host;
  const short = registry === DOCKER_HUB ? path.replace(/^library\/(?=[^/]+$)/, "") : `${registry}/${path}`;
  // Without a registry in front, Docker would read the first part of the path as one.
  if (registry === DOCKER_HUB && /^(?:[^/]*\.[^/]*|localhost)\//.test(short))
    throw new AppError(
      "bad_request",
      `'${text.slice(0, LONGEST_SHOWN)}' names an image of ${DOCKER_HUB} as if of another registry`,
    );
  const name = digest === undefined ? `${short}:${tag ?? "latest"}` : `${short}@${digest}`;
  if (OURS.test(name)) throw new AppError("bad_request", `the image ${name} belongs to the platform`);
  return { name, registry };
}

/** What people write most often in a name that is none, with the way out. */
function whyNot(text: string): string {
  if (text.length > LONGEST_SHOWN) return "";
  const [, address] = /^(?:https?|docker):\/\/(.+)$/i.exec(text) ?? [];
  if (address !== undefined) return NAME.test(address) ? `: leave out what is before '${address}'` : "";
  // Hosts and tags may have capitals.
  const lower = text.replace(
    /^((?:[^/]*[.:][^/]*\/)?)([^:@]*)/,
    (_all, host: string, path: string) => host + path.toLowerCase(),
  );
  return lower !== text && NAME.test(lower) ? `, which has no capital letters: write '${lower}'` : "";
}

/** Comma-separated patterns with `*`, as in settings. */
export function matchesAny(patterns: string, name: string): boolean {
  return patterns
    .split(",")
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== "")
    .some((pattern) => new RegExp(`^${pattern.split("*").map(escaped).join(".*")}$`).test(name));
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&");
}
