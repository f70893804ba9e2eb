/** The meeting in which a machine joins a platform, of which it may know only the digest of the authority. */

import type { X509Certificate } from "node:crypto";
import { connect, type TLSSocket } from "node:tls";
import { digestOf } from "../../tls/digest.ts";
import { reachFailure } from "../../tls/failures.ts";
import { AppError } from "../errors.ts";

const LIMIT_MS = 10_000;
const MOST_CERTIFICATES = 5;

/**
 * Reads the authority that the platform at the address shows. Sends nothing: what is sent comes later, over a connection
 * that this authority verifies.
 * @param digest of the authority that the join token names
 * @param trusted digests of those that have taken its place, as far as an earlier join of this machine knows them
 * @throws {AppError} node_unreachable; forbidden when the authority is another one
 */
export async function authorityAt(url: string, digest: string, trusted: readonly string[] = []): Promise<string> {
  const chain = await chainAt(url);
  const found = chain.find((certificate) => [digest, ...trusted].includes(digestOf(certificate)));
  if (found !== undefined) return found.toString();
  const last = chain.at(-1);
  const shown = last === undefined ? "no certificate" : `the authority ${digestOf(last)}`;
  throw new AppError(
    "forbidden",
    `the platform at ${url} shows ${shown}, and the join token is for ${digest}: the token is of another platform, or something between the machines answers in its place. Nothing of the token was sent; check the address, or make a token on that platform`,
  );
}

function chainAt(url: string): Promise<X509Certificate[]> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    const refuse = (cause: unknown) => {
      const why = reachFailure(cause, url) ?? "the connection failed";
      reject(
        new AppError(
          "node_unreachable",
          `the platform was not reached: ${why}. Its nodes report to the port of SVC_NODES_PORT on the address of SVC_NODES_HOST: compare both with this address`,
          { cause },
        ),
      );
      socket.destroy();
    };
    const socket = connect({
      host,
      port: port === "" ? 443 : Number(port),
      // The digest is the check.
      rejectUnauthorized: false,
      minVersion: "TLSv1.3",
    });
    socket.setTimeout(LIMIT_MS, () => refuse(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })));
    socket.on("error", refuse);
    socket.once("secureConnect", () => {
      resolve(chainOf(socket));
      socket.destroy();
    });
  });
}

function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next = socket.getPeerX509Certificate();
  while (next !== undefined && chain.length < MOST_CERTIFICATES) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}
