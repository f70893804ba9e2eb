/** Fields of forms, each with its label. */

export function TextField(props: {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly type?: "text" | "password" | "number" | "search";
  readonly required?: boolean;
  readonly placeholder?: string;
  readonly autoFocus?: boolean;
}) {
  const { label, value, onValue, type = "text", ...rest } = props;
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type={type}
        value={value}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onValue(event.currentTarget.value)}
        {...rest}
      />
    </label>
  );
}

export function TextArea(props: {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly rows?: number;
  readonly placeholder?: string;
}) {
  const { label, value, onValue, rows = 4, placeholder } = props;
  return (
    <label class="field">
      <span>{label}</span>
      <textarea
        rows={rows}
        value={value}
        spellcheck={false}
        placeholder={placeholder}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </label>
  );
}

export function CheckField(props: {
  readonly label: string;
  readonly checked: boolean;
  readonly onChecked: (checked: boolean) => void;
}) {
  const { label, checked, onChecked } = props;
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChecked(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

export function Choice(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onValue: (value: string) => void;
}) {
  const { label, value, options, onValue } = props;
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Files of this machine, given as soon as they are chosen. */
export function FilesField(props: {
  readonly label: string;
  readonly disabled: boolean;
  readonly onFiles: (files: readonly File[]) => void;
}) {
  const { label, disabled, onFiles } = props;
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="file"
        multiple
        disabled={disabled}
        onChange={({ currentTarget: input }) => {
          const files = [...(input.files ?? [])];
          // The same file can be chosen again.
          input.value = "";
          onFiles(files);
        }}
      />
    </label>
  );
}

/** Runs `submit` without leaving the page. */
export function onSubmit(submit: () => void): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    submit();
  };
}
