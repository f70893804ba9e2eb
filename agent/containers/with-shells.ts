/** A container engine that tells the first process of a container which was a shell: Docker knows the one that stands for it. */

import type { Annotations } from "./annotations.ts";
import type { Containers } from "./containers.ts";

export function withShells<Engine extends Containers>(
  engine: Engine,
  annotations: Pick<Annotations, "shellProcess">,
): Engine {
  return {
    ...engine,
    async inspect(id) {
      const found = await engine.inspect(id);
      if (found === undefined || !found.running) return found;
      const pid = await annotations.shellProcess(id);
      return pid === undefined ? found : { ...found, pid };
    },
  };
}
