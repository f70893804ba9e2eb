/** The editor of a sandbox's network policy: what it may reach, and the headers that are set on its requests outside of it. */

import { useState } from "preact/hooks";
import { perform } from "../../base/client.ts";
import { useDoing } from "../../base/loaded.ts";
import { may } from "../../base/session.ts";
import { AsCode } from "../../code/as-code.tsx";
import { CheckField, onSubmit, TextArea, TextField } from "../../parts/field.tsx";
import { Failure } from "../../parts/parts.tsx";
import { requests } from "../../sandboxes/requests.ts";
import type { TabProps } from "../tab.ts";
import { type EditedHeader, type EditedPolicy, type EditedRule, editedOf, NEW_RULE, updateOf } from "./policy.ts";

export function Rules({ sandbox, again }: TabProps) {
  const { network = {}, sandboxID } = sandbox;
  const [policy, setPolicy] = useState<EditedPolicy>(() => editedOf(sandbox));
  const doing = useDoing();
  // Replacing takes away what is not sent, and the password of a proxy cannot be read back.
  const isWhole = network.egressProxy === undefined || network.egressProxy === null;
  const save = () =>
    doing.run(async () => {
      await perform(requests.replaceNetwork(sandboxID, updateOf(policy, sandbox)));
      again();
    });
  const setRule = (index: number, rule: EditedRule | undefined) =>
    setPolicy({ ...policy, rules: replaced(policy.rules, index, rule) });
  const request = requestOf(policy, sandbox);
  return (
    <form onSubmit={onSubmit(save)}>
      <h2>Rules</h2>
      <TextArea
        label="May reach (domain, address or range, a line each)"
        value={policy.allow}
        onValue={(allow) => setPolicy({ ...policy, allow })}
      />
      <TextArea
        label="May not reach (address or range, a line each)"
        value={policy.deny}
        onValue={(deny) => setPolicy({ ...policy, deny })}
      />
      <CheckField
        label="Closed: nothing but what it may reach"
        checked={policy.isClosed}
        onChecked={(isClosed) => setPolicy({ ...policy, isClosed })}
      />
      <h3>Headers of requests</h3>
      <p class="small">
        They are set outside the sandbox. {"${e2b.secrets.NAME}"} stands for a secret of the project. A value without
        such a placeholder is not shown again.
      </p>
      {policy.rules.map((rule, index) => (
        <RuleFields key={index} rule={rule} number={index + 1} change={(to) => setRule(index, to)} />
      ))}
      <div class="acts">
        <button type="button" onClick={() => setPolicy({ ...policy, rules: [...policy.rules, NEW_RULE] })}>
          Add a rule for a host
        </button>
        <button type="submit" class="main" disabled={doing.busy || !isWhole || !may("sandboxes")}>
          Put into force
        </button>
      </div>
      {!isWhole && <p class="small">This sandbox has a proxy, whose password only the SDK can give again.</p>}
      <Failure of={doing.error} />
      {request !== undefined && <AsCode of={request} />}
    </form>
  );
}

/** Undefined: what is typed is no policy yet. */
function requestOf(policy: EditedPolicy, sandbox: TabProps["sandbox"]) {
  try {
    return requests.replaceNetwork(sandbox.sandboxID, updateOf(policy, sandbox));
  } catch {
    return undefined;
  }
}

interface RuleFieldsProps {
  readonly rule: EditedRule;
  readonly number: number;
  /** Undefined removes it. */
  readonly change: (to: EditedRule | undefined) => void;
}

function RuleFields({ rule, number, change }: RuleFieldsProps) {
  const setHeader = (index: number, header: EditedHeader | undefined) =>
    change({ ...rule, headers: replaced(rule.headers, index, header) });
  return (
    <fieldset>
      <legend>{rule.host === "" ? `Rule ${number}` : rule.host}</legend>
      <TextField
        label={`Host of rule ${number}`}
        value={rule.host}
        placeholder="api.example.com or *.example.com"
        onValue={(host) => change({ ...rule, host })}
        required
      />
      {rule.headers.map((header, index) => (
        <div class="bar" key={index}>
          <TextField
            label={`Header ${index + 1} of rule ${number}`}
            value={header.name}
            onValue={(name) => setHeader(index, { ...header, name })}
          />
          <TextField
            label={`Value ${index + 1} of rule ${number}`}
            value={header.value}
            {...(header.kept === undefined ? {} : { placeholder: "hidden; stays as it is" })}
            onValue={(value) => setHeader(index, { ...header, value })}
          />
          <button
            type="button"
            aria-label={`Remove header ${index + 1} of rule ${number}`}
            onClick={() => setHeader(index, undefined)}
          >
            Remove
          </button>
        </div>
      ))}
      <CheckField
        label={`Secrets of rule ${number} may go over plain HTTP`}
        checked={rule.allowPlainHttp}
        onChecked={(allowPlainHttp) => change({ ...rule, allowPlainHttp })}
      />
      <div class="acts">
        <button
          type="button"
          aria-label={`Add a header to rule ${number}`}
          onClick={() => change({ ...rule, headers: [...rule.headers, { name: "", value: "" }] })}
        >
          Add a header
        </button>
        <button type="button" aria-label={`Remove rule ${number}`} onClick={() => change(undefined)}>
          Remove the rule
        </button>
      </div>
    </fieldset>
  );
}

function replaced<T>(items: readonly T[], index: number, item: T | undefined): readonly T[] {
  return item === undefined ? items.toSpliced(index, 1) : items.with(index, item);
}
