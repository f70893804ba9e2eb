/** Begins the build of a template from a Dockerfile and the folder that it copies from. */

import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { useDoing } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { onSubmit, TextArea, TextField } from "../parts/field.tsx";
import { loadPart } from "../parts/load-part.ts";
import { Code, Failure, Screen } from "../parts/parts.tsx";
import type { Found } from "./build-files.ts";
import { notesOf } from "./build-log.tsx";

const EXAMPLE = `FROM python:3.12-slim
RUN pip install --no-cache-dir flask
COPY . /srv/app
WORKDIR /srv/app
CMD ["python", "app.py"]
`;

export function BuildScreen() {
  const [name, setName] = useState("");
  const [dockerfile, setDockerfile] = useState("");
  const [files, setFiles] = useState<readonly Found[]>([]);
  const [cpu, setCpu] = useState("");
  const [memory, setMemory] = useState("");
  const [startCmd, setStartCmd] = useState("");
  const [readyCmd, setReadyCmd] = useState("");
  const [progress, setProgress] = useState("");
  const doing = useDoing();
  const [, go] = useLocation();
  const choose = (list: FileList | null) =>
    doing.run(async () => {
      const found = filesOf(list);
      setFiles(found);
      const own = found.find(({ path }) => path === "Dockerfile");
      if (own !== undefined) setDockerfile(await own.file.text());
    });
  const build = () =>
    doing.run(async () => {
      const { beginBuild } = await loadPart(() => import("./build-files.ts"));
      const sizes = { cpuCount: numberOf(cpu), memoryMB: numberOf(memory) };
      const begun = await beginBuild({ name, dockerfile, files, startCmd, readyCmd, progress: setProgress, ...sizes });
      notesOf.value = { buildID: begun.buildID, notes: begun.notes };
      go(`/templates/${begun.templateID}?build=${begun.buildID}`);
    });
  return (
    <Screen title="Build a template">
      <div class="beside">
        <form onSubmit={onSubmit(build)}>
          <TextField label="Name (name or name:tag)" value={name} onValue={setName} required />
          <label class="field">
            <span>Folder that the Dockerfile copies from (may be none)</span>
            <input type="file" ref={asFolder} multiple onChange={(event) => choose(event.currentTarget.files)} />
          </label>
          <TextArea label="Dockerfile" rows={14} value={dockerfile} placeholder={EXAMPLE} onValue={setDockerfile} />
          <TextField label="CPU cores (empty: the platform's)" type="number" value={cpu} onValue={setCpu} />
          <TextField label="Memory in MiB (empty: the platform's)" type="number" value={memory} onValue={setMemory} />
          <TextField label="Start command (empty: the Dockerfile's CMD)" value={startCmd} onValue={setStartCmd} />
          <TextField label="Ready when this succeeds (may be empty)" value={readyCmd} onValue={setReadyCmd} />
          <button type="submit" class="main" disabled={doing.busy || dockerfile.trim() === "" || !may("templates")}>
            Build
          </button>
          <p class="small" role="status">
            {doing.busy ? progress : files.length > 0 && `${files.length} files in the folder`}
          </p>
          <Failure of={doing.error} />
        </form>
        <div>
          <Code label="Command" text={`svc template build ${name === "" ? "my-template" : name} ./folder`} />
          <p>
            As in Docker, steps run as root in <code>/</code> until the file says otherwise; <code>FROM</code> names an
            image or a template. <code>.dockerignore</code> counts. Browsers tell no file modes: scripts (
            <code>#!</code>) and binaries are sent as executable, everything else is not; the command sends modes and
            links as they are.
          </p>
        </div>
      </div>
    </Screen>
  );
}

/** The attribute has no name in JSX. */
function asFolder(input: HTMLInputElement | null): void {
  input?.setAttribute("webkitdirectory", "");
}

/** The chosen files, by their paths inside the folder. */
function filesOf(list: FileList | null): readonly Found[] {
  return [...(list ?? [])].map((file) => ({ path: file.webkitRelativePath.split("/").slice(1).join("/"), file }));
}

function numberOf(text: string): number | undefined {
  return text === "" ? undefined : Number(text);
}
