/** A container engine that gives each container with fewer CPUs than the machine a set of processors of its own choice. */

import type { Containers } from "../containers/containers.ts";
import { formatCpus } from "../host/cpu-list.ts";
import type { CpuSets } from "./cpu-sets.ts";

export function withCpuSets<Engine extends Containers>(engine: Engine, sets: CpuSets): Engine {
  /** Containers that an earlier agent process made, or whose creation got no answer. */
  const adopt = async (id: string) => {
    // Docker describes no container whose disk is not mounted, as after a reboot: the list after its start has it.
    const found = await engine.inspect(id).catch(() => undefined);
    if (found !== undefined && !sets.knows(id)) sets.adopt(id, found.cpus, found.running);
  };

  return {
    ...engine,

    async create(spec) {
      const cpus = sets.take(spec.resources.cpuCount);
      try {
        const id = await engine.create(cpus === undefined ? spec : { ...spec, cpus: formatCpus(cpus) });
        sets.own(id, cpus);
        return id;
      } catch (error) {
        sets.give(cpus);
        throw error;
      }
    },

    async start(id) {
      sets.wake(id);
      try {
        await engine.start(id);
      } catch (error) {
        sets.rest(id);
        throw error;
      }
    },

    resize: (id, size) => engine.resize(id, { ...size, cpus: sets.change(id, size.cpuCount) }),
    chooseCpus: (id, cpuCount) => sets.change(id, cpuCount),

    async remove(id) {
      await engine.remove(id);
      sets.free(id);
    },

    async list() {
      const found = await engine.list();
      await Promise.all(found.filter(({ id }) => !sets.knows(id)).map(({ id }) => adopt(id)));
      return found;
    },

    watch: (since, onEvent, signal) =>
      engine.watch(
        since,
        (event) => {
          if (event.kind === "died") sets.rest(event.id);
          onEvent(event);
        },
        signal,
      ),
  };
}
