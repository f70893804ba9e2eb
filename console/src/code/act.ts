/** An act of the console, as data that its code is written from. */

import { FromEnvironment } from "../base/without-secrets.ts";

/** The forms of an act; the request itself takes the place of a form that is absent. */
export interface Told {
  readonly title: string;
  /** The command of `svc`; absent: there is none. */
  readonly svc?: string;
  readonly typescript?: string;
  readonly python?: string;
  /** In place of the request to the API: for what goes to the sandbox itself. */
  readonly http?: string;
}

export interface Act {
  readonly method: string;
  /** `:name` stands for an id. */
  readonly path: string;
  readonly tell: (ids: readonly string[], body: Body) => Told | undefined;
}

/** Fields of a request's body. */
export class Body {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(body: unknown) {
    this.fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  }

  text(name: string): string {
    const value = this.fields[name];
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  }

  number(name: string): number {
    return Number(this.fields[name] ?? 0);
  }

  texts(name: string): readonly string[] {
    const value = this.fields[name];
    return Array.isArray(value) ? value.map(String) : [];
  }

  /** Entries of a field that is an object. */
  entries(name: string): readonly (readonly [string, string | FromEnvironment])[] {
    return Object.entries((this.fields[name] ?? {}) as Record<string, unknown>).map(([key, value]) => [
      key,
      value instanceof FromEnvironment ? value : String(value),
    ]);
  }

  has(name: string): boolean {
    return this.fields[name] !== undefined;
  }
}
