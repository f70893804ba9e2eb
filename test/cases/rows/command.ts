/** Cases of the command `svc` and of the scripts. Columns: see ../table.ts. */
export const command: Readonly<Record<string, string>> = {
  "a program's own options without --": `
svc sandbox exec ID ls -la, as with docker exec | unknown option '-la' => ls gets -la | unit/cli/boundary.test.ts | i1 ls -la
svc sandbox exec ID sort -u file | sort ran as the user "file", without an argument => sort gets -u and the file | unit/cli/boundary.test.ts | i1 sort -u file
svc sandbox exec -it ID bash | unknown option => exit code 2, and the sentence names svc sandbox connect | unit/cli/boundary.test.ts | names the command that opens a terminal
sibling: -e A=b before the sandbox, -u and -c behind the program | unknown option '-c' => the variable is set, and the shell gets its options | integration/cli/inside.test.ts | without -- leaves the program its own options
sibling: -du root, -uroot and --cwd=/srv before the sandbox | not tried => they stay options of svc | unit/cli/boundary.test.ts | -du root
sibling: ls -- -la | the first -- was taken away => ls gets both words | unit/cli/boundary.test.ts | i1 ls -- -la
`,
  "where cp copies a folder": `
svc sandbox cp ID:/dir/. existing, as with docker cp | the content was in existing/dir => the content is in existing | integration/cli/inside.test.ts | copies a folder where docker cp does
svc sandbox cp .. ID:/srv/ | the files were above /srv => they are in a folder of /srv | integration/cli/inside.test.ts | copies a folder where docker cp does
svc sandbox cp ID:/etc/passwd - | a file called - was made => exit code 2, and the sentence names exec with cat and tar | integration/cli/inside.test.ts | ID:/etc/passwd
sibling: a folder to new/, which is not there | the folder was new/app => new is the folder | integration/cli/inside.test.ts | copies a folder where docker cp does
sibling: - as the source | not there, exit code 3 => exit code 2 with the same sentence | integration/cli/inside.test.ts | ID:/tmp/x
sibling: a file here that cannot be read | cannot reach http://127.0.0.1:3002: EACCES => the file is named | unit/cli/files.test.ts | a file here that cannot be read is named
`,
  "an environment that is not the usual one": `
a key with a line break or a typographic quote in it | the key was in the error of the request => refused without showing it | unit/cli/settings.test.ts | that no header can have is refused
./scripts/up of a user with https_proxy set | sudo dropped it, and nothing was fetched => it is kept, and no password of it is among the words of a command | integration/scripts/sudo.test.ts | asks for root itself passes the name on
https_proxy set, as curl takes it | cannot reach, and no word of a proxy => the error names NODE_USE_ENV_PROXY=1 | unit/cli/settings.test.ts | gives no answer has to do with the proxy
sibling: values that end with a carriage return | not tried => they are the values | unit/cli/settings.test.ts | Windows line ends
sibling: HOME=/dev/null, as of users of services | cannot read /dev/null/.config/svc/config.toml: ENOTDIR => no contexts | unit/cli/settings.test.ts | a home that is no directory
sibling: HOME empty | a file below the present directory was read => the user's own home | unit/cli/settings.test.ts | an empty HOME is none
`,
  "long and busy commands": `
svc sandbox logs -f over a restart of the platform | cannot reach …, exit code 1 => it says so once, and goes on | integration/cli/promises.test.ts | a log is followed over a restart
svc doctor --preflight that fails itself | exit code 1 as for findings, and the package refused the upgrade => exit code 70, and the upgrade goes on | unit/cli/here.test.ts | a look of doctor that fails itself
sibling: svc forward ID :8000 --host localhost, as with kubectl | exit code 2 => a free port of 127.0.0.1 | integration/cli/inside.test.ts | takes what kubectl takes
sibling: svc forward --host with an address of another machine | EADDRNOTAVAIL without a way out => the sentence names ip address | integration/cli/inside.test.ts | an address that this machine does not have
`,
};
