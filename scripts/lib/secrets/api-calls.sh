# Calls of the orchestrator's API by a script of operators. Needs environment.sh, ui.sh, instance.sh and `api`, the address.
# shellcheck shell=bash

# call METHOD PATH HEADER [BODY]: prints the body of the answer. Passes tokens to curl by standard input, because every user of the
# machine can read command lines.
call() {
  local answer
  answer=$(local_curl -sS -m 60 -X "$1" -H 'content-type: application/json' -H @- ${4:+-d "$4"} -w '\n%{http_code}' "$api$2" <<<"$3")
  case ${answer##*$'\n'} in
    2??) printf '%s\n' "${answer%$'\n'*}" ;;
    404) fail "$1 $2 answered 404" "this version of the platform does not have it" ;;
    *) fail "$1 $2 answered ${answer##*$'\n'}: ${answer%$'\n'*}" "'scripts/service log orchestrator' tells more" ;;
  esac
}

# read_json EXPRESSION: prints the value of a JavaScript expression of `it`, the JSON on standard input.
# shellcheck disable=SC2016
read_json() {
  "$NODE" -e 'const it = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const value = new Function("it", `return ${process.argv[1]}`)(it);
    process.stdout.write(typeof value === "string" ? value : JSON.stringify(value ?? "", null, 2))' "$1"
}
