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
  "machines that have other software, too": `
Docker from docker.com with its docker.sources, then ./scripts/up | the base template was built from Docker's repository => the distribution's own source is taken | integration/scripts/apt-mirror.test.ts | is not taken for the distribution's, which has the same suite
apt-get update with a source that answers 401 (Proxmox without a subscription) | apt cannot read its package lists => what is missing is installed, and the source is named | integration/scripts/host/packages.test.ts | a source that does not answer
a cloud machine whose unattended-upgrades hold the lock of dpkg | could not get lock => it is waited for | integration/scripts/host/packages.test.ts | waits for a machine that upgrades itself
Docker Desktop with the integration of WSL | kill: not a pid => the sentence says that the daemon runs in a machine of its own | integration/scripts/machine-checks.test.ts | docker-is-elsewhere
a kernel that was started with ipv6.disable=1 | no sandbox started: address family not supported => they start | unit/agent/network/links.test.ts | ipv6.disable=1 is told nothing of IPv6
node of asdf, mise or volta | Node.js  is too old => root gets the directory of the real node | integration/scripts/host/unusual.test.ts | the node of a version manager
sibling: azure-cli.sources, with the component main | Microsoft's repository was taken => the distribution's own source is taken | integration/scripts/apt-mirror.test.ts | one with a component main and a key of its own
sibling: the suite is called stable | apt has no source for bookworm => it is found | integration/scripts/apt-mirror.test.ts | and not at a browser's address with a suite of that name
sibling: containerd.io of a node of Kubernetes, without Docker | apt removed or refused it => docker-ce is installed | integration/scripts/host/packages.test.ts | has Docker's own containerd, as a node of Kubernetes, and its source
sibling: podman-docker is there | apt removed it => refused, and the sentence names what would be removed | integration/scripts/host/packages.test.ts | no package of the machine is removed
sibling: Debian 13, whose docker.io has no program docker | docker: command not found => docker-cli is installed | integration/scripts/host/packages.test.ts | leaves it to docker-cli
sibling: the default route of OpenVPN, in two halves | a warning of an overlap => none | integration/scripts/machine-checks.test.ts | the default route of a VPN, in two halves
`,
  "long and busy commands": `
svc sandbox logs -f over a restart of the platform | cannot reach …, exit code 1 => it says so once, and goes on | integration/cli/promises.test.ts | a log is followed over a restart
svc doctor --preflight that fails itself | exit code 1 as for findings, and the package refused the upgrade => exit code 70, and the upgrade goes on | unit/cli/here.test.ts | a look of doctor that fails itself
sibling: svc forward ID :8000 --host localhost, as with kubectl | exit code 2 => a free port of 127.0.0.1 | integration/cli/inside.test.ts | takes what kubectl takes
sibling: svc forward --host with an address of another machine | EADDRNOTAVAIL without a way out => the sentence names ip address | integration/cli/inside.test.ts | an address that this machine does not have
`,
};
