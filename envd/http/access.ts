/** Authorises requests: the sandbox's token for clients, the node's token for the platform. */

import type { IncomingMessage } from "node:http";
import { AppError } from "../../shared/http/errors.ts";
import { checkSignature, equalText, type FileOperation } from "../files/signature.ts";
import type { Session } from "../init/session.ts";

const UNAUTHORIZED = "unauthorized access, please provide a valid access token or method signing if supported";

export class Access {
  readonly #session: Session;
  #controlToken: string | undefined;
  readonly #now: () => number;

  /** @param controlToken the node's token; without one, the sandbox's token opens the node's routes */
  constructor(session: Session, controlToken: string | undefined, now: () => number) {
    this.#session = session;
    this.#controlToken = controlToken;
    this.#now = now;
  }

  /** @throws {AppError} unauthorized. Before a token is set every request passes. */
  client(request: IncomingMessage): void {
    const { accessToken } = this.#session.settings;
    if (accessToken === undefined) return;
    if (!equalText(one(request.headers["x-access-token"]) ?? "", accessToken))
      throw new AppError("unauthorized", UNAUTHORIZED);
  }

  /** A file route: token, or signature in the URL. @throws {AppError} unauthorized with the reason */
  file(request: IncomingMessage, query: URLSearchParams, operation: FileOperation): void {
    const { accessToken } = this.#session.settings;
    if (accessToken === undefined) return;
    const header = one(request.headers["x-access-token"]);
    if (header !== undefined) {
      if (!equalText(header, accessToken))
        throw new AppError("unauthorized", "access token present in header but does not match");
      return;
    }
    const signed = {
      path: query.get("path") ?? "",
      operation,
      username: query.get("username") ?? "",
      signature: query.get("signature") ?? undefined,
      expiration: query.get("signature_expiration") ?? undefined,
    };
    checkSignature(signed, accessToken, this.#now());
  }

  /**
   * Sets the node's next token: a copy of this memory must not open with the original's token.
   * @throws {AppError} unauthorized unless the request carries the previous token
   */
  rotate(request: IncomingMessage, next: string): void {
    if (this.#controlToken === undefined) throw new AppError("unauthorized", UNAUTHORIZED);
    this.node(request);
    this.#controlToken = next;
  }

  /** A route of the platform. @throws {AppError} unauthorized */
  node(request: IncomingMessage): void {
    if (this.#controlToken === undefined) this.client(request);
    else if (!equalText(one(request.headers["svc-node-token"]) ?? "", this.#controlToken))
      throw new AppError("unauthorized", UNAUTHORIZED);
  }

  /** POST /init, whose body has the token: the node may set any, others only repeat it. @throws {AppError} unauthorized */
  init(request: IncomingMessage, offered: string | undefined): void {
    if (this.#controlToken !== undefined) {
      this.node(request);
      return;
    }
    const { accessToken } = this.#session.settings;
    if (accessToken !== undefined && !equalText(offered ?? "", accessToken))
      throw new AppError("unauthorized", UNAUTHORIZED);
  }
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
