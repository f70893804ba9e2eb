/** The graph of a program's folders, read from its imports by dependency-cruiser; circles in it, and its picture. */

import { createRequire } from "node:module";
import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";

/** Folder, or file beside the folders → the ones that it imports, types included. */
export type FolderGraph = ReadonlyMap<string, readonly string[]>;

const { options } = createRequire(import.meta.url)("./dependencies.cjs") as { readonly options: ICruiseOptions };

/** Reads the graph of each program below `baseDir`, with names relative to the program. */
export async function folderGraphs(
  programs: readonly string[],
  baseDir: string,
): Promise<ReadonlyMap<string, FolderGraph>> {
  const within = `^(${programs.join("|")})/`;
  const { output } = await cruise([...programs], {
    ...options,
    baseDir,
    includeOnly: { path: within },
    // One node for each folder of a program, with all that is in it, and one for each file beside the folders.
    collapse: `${within}([^/]+/|[^/]+$)`,
  });
  const { modules } = output as ICruiseResult;
  return new Map(programs.map((program) => [program, graphOf(program, modules)]));
}

function graphOf(program: string, modules: ICruiseResult["modules"]): FolderGraph {
  const own = modules.filter(({ source }) => source.startsWith(`${program}/`));
  const nameOf = (path: string) => path.slice(program.length + 1).replace(/\/$/, "");
  const edges = own.map(({ source, dependencies }): [string, string[]] => {
    const targets = dependencies.map(({ resolved }) => resolved).filter((to) => to.startsWith(`${program}/`));
    return [nameOf(source), [...new Set(targets.map(nameOf))].filter((to) => to !== nameOf(source)).toSorted()];
  });
  return new Map(edges.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Finds a circle, such as `a → b → a`, if there is one. */
export function circleIn(graph: FolderGraph): string | undefined {
  const done = new Set<string>();
  const visit = (name: string, path: readonly string[]): string | undefined => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name].join(" → ");
    if (done.has(name)) return undefined;
    for (const to of graph.get(name) ?? []) {
      const circle = visit(to, [...path, name]);
      if (circle !== undefined) return circle;
    }
    done.add(name);
    return undefined;
  };
  for (const name of graph.keys()) {
    const circle = visit(name, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

/**
 * Draws a graph without circles as a Mermaid picture. An arrow is left out where a longer way says the same: `a` imports
 * what stands anywhere below it.
 */
export function picture(graph: FolderGraph): string {
  const below = new Map<string, Set<string>>();
  const reach = (name: string): Set<string> => {
    const known = below.get(name);
    if (known !== undefined) return known;
    const all = new Set((graph.get(name) ?? []).flatMap((to) => [to, ...reach(to)]));
    below.set(name, all);
    return all;
  };
  const lines = [...graph].map(([name, targets]) => {
    const nearest = targets.filter((to) => !targets.some((other) => other !== to && reach(other).has(to)));
    return nearest.length === 0 ? name : `${name} --> ${nearest.join(" & ")}`;
  });
  return ["```mermaid", "flowchart TD", ...lines.map((line) => `  ${line}`), "```"].join("\n");
}

/** Puts each program's picture between its marks in the page. */
export function withPictures(page: string, graphs: ReadonlyMap<string, FolderGraph>): string {
  return [...graphs].reduce((text, [program, graph]) => {
    const marked = new RegExp(`(<!-- folders of ${program}: [^\\n]*-->\\n)[^]*?(<!-- end of folders -->)`);
    return text.replace(marked, (_, head: string, tail: string) => `${head}${picture(graph)}\n${tail}`);
  }, page);
}
