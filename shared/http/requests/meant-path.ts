/** The path that a caller meant who asked for one that no route has. No I/O. */

/** The base addresses of other services, and versions of a path. */
const PREFIX = /^(?:\/api)?(?:\/v\d{1,2})?(?=\/)/;
/** What the platform's own paths begin with. */
const VERSIONS = ["", "/v2", "/v3"];

/** The paths of a server's routes. */
export class KnownPaths {
  readonly #byMethod = new Map<string, string[][]>();

  /** @param url in the form of the router: `/things/:id` */
  add(method: string, url: string): void {
    const known = this.#byMethod.get(method) ?? [];
    known.push(url.split("/"));
    this.#byMethod.set(method, known);
  }

  /** The path that a route has in another version, or without `/api` before it. */
  like(method: string, path: string): string | undefined {
    const bare = path.replace(PREFIX, "");
    return VERSIONS.map((version) => version + bare).find((each) => each !== path && this.#has(method, each));
  }

  #has(method: string, path: string): boolean {
    const parts = path.split("/");
    return (this.#byMethod.get(method) ?? []).some(
      (known) =>
        known.length === parts.length &&
        known.every((part, index) => (part.startsWith(":") ? parts[index] !== "" : part === parts[index])),
    );
  }
}
