/**
 * The certificate that clients on other machines see, kept in two files by whoever renews it. Reads them again when they change;
 * files that cannot be used leave the former certificate in place, and are a finding.
 */

import { readFile, stat } from "node:fs/promises";
import { ConfigError } from "../../program/config.ts";
import { type Finding, findingText } from "../../program/finding.ts";
import type { Log } from "../../program/log.ts";
import { loop } from "../../program/loop.ts";
import { endOf, problemsOf, type SiteFiles, type SitePair, unusable } from "./certificate.ts";

const LOOK_EVERY_MS = 5_000;

export interface Site {
  readonly current: SitePair;
  /** End of the shown certificate, unix milliseconds. */
  readonly until: number;
  /** What is wrong now with the certificate, or with the files that should replace it. */
  findings(): readonly Finding[];
  onReplaced(listener: (next: SitePair) => void): () => void;
  stop(): Promise<void>;
}

export interface SiteOptions extends SiteFiles {
  readonly domain: string;
  readonly now: () => number;
  readonly log: Log;
  readonly lookEveryMs?: number;
}

/** @throws {ConfigError} the files cannot be used, and there are no others */
export async function openSite(options: SiteOptions): Promise<Site> {
  const { certFile, domain, now, log } = options;
  const first = await readPair(options);
  if ("problem" in first) throw new ConfigError([findingText(first)]);
  const listeners = new Set<(next: SitePair) => void>();
  const state: {
    current: SitePair;
    seen: string;
    bad: { readonly seen: string; readonly finding?: Finding } | undefined;
  } = {
    current: first,
    seen: await signatureOf(options),
    bad: undefined,
  };
  const findings = () => [
    ...(state.bad?.finding === undefined ? [] : [state.bad.finding]),
    ...problemsOf(state.current, { certFile, domain, at: now() }),
  ];
  for (const finding of findings()) log.warn({ finding }, "clients may refuse the certificate of this site");

  const looking = loop({ name: "certificate", everyMs: options.lookEveryMs ?? LOOK_EVERY_MS, log }, async () => {
    const seen = await signatureOf(options);
    if (seen === state.seen || (state.bad?.seen === seen && state.bad.finding !== undefined)) return;
    const next = await readPair(options);
    const [finding] = "problem" in next ? [next] : problemsOf(next, { certFile, domain, at: now() }).filter(isSerious);
    if (finding !== undefined) {
      // Seen once, it may be half of a change: the second file comes within the next round.
      const isSecond = state.bad?.seen === seen;
      state.bad = isSecond ? { seen, finding } : { seen };
      if (isSecond) log.warn({ finding }, "kept the former certificate: the new files cannot be used");
      return;
    }
    const pair = next as SitePair;
    state.seen = seen;
    state.bad = undefined;
    if (pair.certificate === state.current.certificate && pair.key === state.current.key) return;
    state.current = pair;
    for (const listener of listeners) listener(pair);
    log.info({ until: new Date(endOf(pair)).toISOString() }, "the certificate of this site was replaced");
  });

  return {
    get current() {
      return state.current;
    },
    get until() {
      return endOf(state.current);
    },
    findings,
    onReplaced(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop: () => looking.stop(),
  };
}

/** A certificate that ends soon, or lacks its chain, is still better than none; a wrong name or time is not. */
function isSerious({ id, problem }: Finding): boolean {
  return id === "certificates.names" || (id === "certificates.expiry" && !problem.includes("expires in"));
}

async function readPair(files: SiteFiles): Promise<SitePair | Finding> {
  let pair: SitePair;
  try {
    const [certificate, key] = await Promise.all([readFile(files.certFile, "utf8"), readFile(files.keyFile, "utf8")]);
    pair = { certificate, key };
  } catch (error) {
    return {
      id: "certificates.files",
      problem: "the files of the certificate cannot be read",
      evidence: (error as Error).message,
      wayOut: "give them to the user of the program: chown svc KEY && chmod 400 KEY",
    };
  }
  return unusable(pair, files) ?? pair;
}

/** Changes with each change of a file, also where a link leads to another one, as certbot's do. */
async function signatureOf({ certFile, keyFile }: SiteFiles): Promise<string> {
  const parts = await Promise.all(
    [certFile, keyFile].map((file) =>
      stat(file, { bigint: true }).then(
        ({ ino, size, mtimeNs, ctimeNs }) => `${ino} ${size} ${mtimeNs} ${ctimeNs}`,
        (error: NodeJS.ErrnoException) => error.code ?? "unreadable",
      ),
    ),
  );
  return parts.join("|");
}
