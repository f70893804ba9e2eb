/** Shows a file of the sandbox. A user looks at a picture, or changes a text; the page saves it only if nobody else has changed it. */

import { useEffect, useState } from "preact/hooks";
import { Failed } from "../../base/failed.ts";
import { useDoing } from "../../base/loaded.ts";
import { onSubmit } from "../../parts/field.tsx";
import { Danger, Empty, Failure } from "../../parts/parts.tsx";
import { useUnsaved } from "../../parts/unsaved.ts";
import { readFile, writeFile } from "../envd.ts";
import { CodeField } from "./field/code-field.tsx";
import { MOST_IMAGE_BYTES } from "./image.ts";
import { bytesOf, type Content, contentOf } from "./text.ts";

export interface OpenFile {
  readonly path: string;
  readonly content: Content;
  /** Undefined: the sandbox's envd tells none. */
  readonly etag: string | undefined;
}

/** @throws {Failed} */
export async function openFile(id: string, path: string): Promise<OpenFile> {
  const { bytes, etag } = await readFile(id, path, MOST_IMAGE_BYTES);
  return { path, content: contentOf(bytes), etag };
}

interface EditorProps {
  readonly id: string;
  readonly file: OpenFile;
  readonly close: () => void;
  readonly saved: () => void;
}

export function Editor({ id, file, close, saved }: EditorProps) {
  const { path, content } = file;
  if (content.is === "text")
    return <TextEditor id={id} path={path} opened={content} etag={file.etag} close={close} saved={saved} />;
  if (content.is === "image") return <Picture path={path} of={content} close={close} />;
  return (
    <Empty title={`${path} ${content.why}.`}>
      <p>It can be downloaded, and replaced by an upload.</p>
      <button type="button" onClick={close}>
        Close
      </button>
    </Empty>
  );
}

/** From a blob of the type that its bytes have: what the sandbox says of them decides nothing. */
function Picture(props: {
  readonly path: string;
  readonly of: Extract<Content, { readonly is: "image" }>;
  readonly close: () => void;
}) {
  const { path, of: content, close } = props;
  const { type, width, height } = content.image;
  const [url, setUrl] = useState<string | undefined>(undefined);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([content.bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [content, type]);
  return (
    <figure>
      <figcaption>
        {path}, {width} × {height}{" "}
        <button type="button" onClick={close}>
          Close
        </button>
      </figcaption>
      {url !== undefined && <img class="screen-picture" src={url} alt={path} />}
    </figure>
  );
}

type Text = Extract<Content, { readonly is: "text" }>;

interface TextEditorProps extends Omit<EditorProps, "file"> {
  readonly path: string;
  readonly opened: Text;
  readonly etag: string | undefined;
}

function TextEditor({ id, path, opened, etag, close, saved }: TextEditorProps) {
  const [base, setBase] = useState<Text>(opened);
  const [tag, setTag] = useState(etag);
  const [text, setText] = useState(opened.text);
  const [note, setNote] = useState("");
  const doing = useDoing();
  const isChanged = text !== base.text;
  useUnsaved(isChanged);
  const save = (ifMatch: string | undefined) =>
    doing.run(async () => {
      setNote("");
      const written = await writeFile(id, path, bytesOf(text, base.lineEnd), ifMatch);
      setBase({ ...base, text });
      setTag(written);
      setNote(
        ifMatch === undefined || written !== undefined
          ? "Saved."
          : "Saved. The sandbox began with an earlier version, which does not notice changes by others.",
      );
      saved();
    });
  const load = () =>
    doing.run(async () => {
      const now = await openFile(id, path);
      if (now.content.is !== "text")
        throw new Error(`${path} ${now.content.is === "image" ? "is a picture now" : now.content.why}`);
      setBase(now.content);
      setTag(now.etag);
      setText(now.content.text);
      setNote("Loaded as it is now.");
    });
  return (
    <form onSubmit={onSubmit(() => save(tag))}>
      <CodeField
        path={path}
        text={text}
        onText={setText}
        onSave={() => {
          if (isChanged && !doing.busy) save(tag);
        }}
      />
      {doing.error instanceof Failed && doing.error.status === 412 ? (
        <div class="failure" role="alert">
          <p>Somebody has changed or deleted {path} since it was opened. Nothing was saved.</p>
          <div class="acts">
            <button type="button" onClick={load}>
              Load theirs, and lose mine
            </button>
            <button type="button" onClick={() => save(undefined)}>
              Overwrite theirs
            </button>
          </div>
        </div>
      ) : (
        <Failure of={doing.error} />
      )}
      <div class="acts">
        <button type="submit" class="main" disabled={doing.busy || !isChanged}>
          Save
        </button>
        {isChanged ? (
          <Danger disabled={doing.busy} onConfirm={close}>
            Discard
          </Danger>
        ) : (
          <button type="button" onClick={close}>
            Close
          </button>
        )}
        <span class="small" role="status">
          {note}
        </span>
      </div>
    </form>
  );
}
