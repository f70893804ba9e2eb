/** Cases of the section. Columns: see ../table.ts. */
export const builds: Readonly<Record<string, string>> = {
  "COPY onto what is there": `
copy("npm", "/usr/local/bin/npm", {user: "root", mode: 0o755}), where that is a link | the link stays, npm itself is overwritten, the build is green => the link is replaced by the file with its mode, and what it led to keeps its bytes | docker/builds/steps.test.ts | COPY replaces links, pipes and running programs
the same onto a link to nothing, onto a FIFO and onto a program | written through, waited for or refused (text file busy) => each is replaced by the file, and none is opened | docker/builds/steps.test.ts | COPY replaces links, pipes and running programs
sibling: onto a link to itself, and onto one of two hard links | not tried => both are replaced, and the other hard link keeps its bytes | docker/builds/steps.test.ts | COPY replaces links, pipes and running programs
sibling: a file onto a directory of its name (etc into /) | not tried => the build fails and names the directory | docker/builds/steps.test.ts | COPY goes through links to directories
sibling: links, hard links and setuid files in the source | not tried => links stay links, hard links stay hard, and a file of root keeps setuid | docker/builds/steps.test.ts | links in the source stay links
sibling: one file to dir/. | a file with the name of the directory => the directory is made, with the file in it | integration/agent/builds/copies.test.ts | out/.
sibling: links with targets of more than 200 letters | in an image of busybox they led to nothing => the targets are whole | integration/agent/builds/copies.test.ts | long targets of links
`,
  "COPY through links to directories": `
copy("rootfs", "/", {user: "root"}) with bin/x in it, where /bin is a link | cannot overwrite non-directory '//bin' => the file is in the directory, and the link stays | docker/builds/steps.test.ts | COPY goes through links to directories
sibling: a second link, relative, below the first one | not tried => the file goes through both, and both stay | docker/builds/steps.test.ts | COPY goes through links to directories
sibling: a directory onto a file, and onto a link to nothing | not tried => each is replaced by the directory | docker/builds/steps.test.ts | COPY goes through links to directories
sibling: a source behind a link in the folder | the link was not followed => the file that it leads to is copied | integration/agent/builds/copies.test.ts | current/app.txt
sibling: a source that goes through a link out of the folder | files outside of the folder were sent => refused, naming the link | integration/agent/builds/copies.test.ts | a COPY of a link that leads out of the folder
`,
  "owner and group of what COPY brings": `
copy("f", "/srv/f", {user: "user:s2"}) | the group was dropped in silence => owner user, group s2, of new parents too | docker/builds/steps.test.ts | COPY gives files the owner and the group
the same with numbers: user:7, 4000:s2 | the group was dropped in silence => both, also where the image knows no such number | docker/builds/steps.test.ts | COPY gives files the owner and the group
setEnvs({U: "1000"}).copy("f", "/srv/f", {user: "$U"}) | invalid username: '$U' => substituted before it is split: 1000 | unit/agent/builds/steps.test.ts | the owner of a COPY is substituted
sibling: two variables, $WHO:$GROUP | invalid username => the user of the one and the group of the other | docker/builds/steps.test.ts | COPY gives files the owner and the group
sibling: a number alone, 4000 | the group was not that number => owner and group 4000 | docker/builds/steps.test.ts | COPY gives files the owner and the group
sibling: a name with two colons, a:b:c | not tried => the step fails and names it | unit/agent/builds/steps.test.ts | the owner of a COPY is substituted
sibling: a group, and a user, that the image does not have | not tried => the step fails and names the group, or the user | docker/builds/steps.test.ts | COPY gives files the owner and the group
`,
  "variables in values": `
setEnvs({X: "/a\${NO:+:\${NO}}"}) | /a} => /a | unit/agent/builds/steps.test.ts | an alternative in an alternative
a default in a default | half a value, with a brace behind it => the inner default | unit/agent/builds/steps.test.ts | a default in a default
the forms - and + without a colon | the text stayed as it was => an empty value counts as one | unit/agent/builds/steps.test.ts | an empty value, which is one without a colon
the form % | the text stayed as it was => the shortest end is cut off | unit/agent/builds/steps.test.ts | the shortest end
the form # | the text stayed as it was => the shortest front is cut off | unit/agent/builds/steps.test.ts | the shortest front
a form that is not understood: \${BASE^^} | the text stayed as it was => the step fails and names the reference | unit/agent/builds/steps.test.ts | upper case as in bash
a reference without its brace | the text stayed as it was => the step fails, names the reference and says that the brace is missing | unit/agent/builds/steps.test.ts | a brace that is not closed
sibling: \${FILE//a/b} | the text stayed as it was => all matches are replaced | unit/agent/builds/steps.test.ts | all matches replaced
sibling: \${NOTHING:?it is needed} | the text stayed as it was => the step fails with that text | unit/agent/builds/steps.test.ts | a value that is missing
sibling: \${java.home} | the text stayed as it was => the step fails and names the reference | unit/agent/builds/steps.test.ts | a name with a dot
sibling: \${SMILE%?}, where the value ends in an emoji | the text stayed as it was => the whole emoji is cut off | unit/agent/builds/steps.test.ts | letters outside of the basic plane
sibling: a replacement that makes 1.6 GB of 40 kB | it was made whole before its length was known => the step fails, and says that it is too long | unit/agent/builds/steps.test.ts | a replacement that would fill the memory
sibling: a variable in the path of WORKDIR | not tried => substituted | unit/agent/builds/steps.test.ts | /srv/$LANG
`,
  "values of one ENV that read each other": `
setEnvs({abc: "bye", def: "$abc"}), where abc was hello | the new value => decided and documented: of one setEnvs a value sees those before it: bye | unit/agent/builds/steps.test.ts | a value of an ENV step sees the variables of that step before it
ENV abc=bye def=$abc in a Dockerfile, by svc template build | the new value => as in Docker the one from before the line: the values are sent in such an order | unit/shared/dockerfile/dockerfile.test.ts | values of one ENV see what was set before it
sibling: ENV A=1 PATH=/x:$PATH A=2 | not tried => the last A counts, and PATH reads the earlier PATH | unit/shared/dockerfile/dockerfile.test.ts | values of one ENV see what was set before it
sibling: ENV A=$B B=$A, for which no order is right | the second read the new value of the first => refused with the line: its values read each other | unit/shared/dockerfile/dockerfile.test.ts | its values read each other
sibling: a value that holds the text of a reference | not tried => it is not substituted again | unit/agent/builds/steps.test.ts | a substituted value is not substituted again
`,
  "processes of a step": `
runCmd("nohup sleep 1000 >/dev/null 2>&1 &"), then a step that looks for it | alive or dead by cache and layer size => dead in the next step, behind a layer of 20 MB too | docker/builds/steps.test.ts | a step's processes end with it
a child that holds the step's output: sleep 1000 & | the step was not over => the step is over at once, and the child has ended | docker/builds/steps.test.ts | a step's processes end with it
sibling: a process that has left its session and its parent (setsid in a subshell) | not tried => it ends with the step too | docker/builds/steps.test.ts | a step's processes end with it
sibling: the platform's own helper, which starts during a step | it was ended with the first step => the same process is there in the next step | docker/builds/steps.test.ts | leaves the platform's own helper alive
`,
  "users, groups and homes": `
setUser("6001:6001") | group root => user and group 6001 in the steps after it | docker/builds/steps.test.ts | USER has a group by number and by name
setUser("user:s2") | group dropped => user 1000 with group s2 in steps, and in the settings of sandboxes | docker/builds/steps.test.ts | USER has a group by number and by name
useradd -m -d /srv/h app, setUser("app"), $HOME in an ENV | guessed /home/app => /srv/h, from the image's passwd, in ENV and in WORKDIR | docker/builds/steps.test.ts | $HOME is that of the image's passwd
sibling: the same steps from the cache, and a step more | not tried => the layers come from the cache, and $HOME is /srv/h there too | docker/builds/steps.test.ts | $HOME is that of the image's passwd
sibling: setUser("user:nowhere") | not tried => the step fails and names the group | docker/builds/steps.test.ts | USER has a group by number and by name
sibling: a user of the image whose home is a directory of others: daemon, /usr/sbin | the whole home was given to the user, with new files in it => the home keeps its owner and its files | integration/agent/builds/add-user.test.ts | the home that a user of the image has
sibling: an /etc/passwd whose last line has no end | the new user was written into the line before => the user has a line of its own | integration/agent/builds/add-user.test.ts | also when that line has no end
sibling: RUN useradd -m -u 1000 user on python:3.12 (Hugging Face's line) | exit status 9, and no word of the platform's own user => the reason names the user, its number and the way out | unit/agent/builds/taken-user.test.ts | says that every image gets that user
sibling: groupadd, adduser and addgroup with the number of that user | the same => the same, and nothing where another user has it | unit/agent/builds/taken-user.test.ts | says that the platform's user has the number
sibling: setUser("a;touch /tmp/x") | not tried => the build fails and names it, and no shell reads it | conformance/templates/steps.test.ts | a user's name is no way into a shell
`,
  "the directory of later steps": `
setUser("1000").setWorkdir("/w/x").runCmd("touch y") | refused: the directory was root's => the step writes there; the directory and its new parent belong to 1000 | docker/builds/steps.test.ts | WORKDIR belongs to the user with its new parents
the last WORKDIR removed by a later step | every command failed => made again for its user, in the next step and in sandboxes | docker/builds/steps.test.ts | WORKDIR belongs to the user with its new parents
sibling: setWorkdir("/etc/passwd/x") | not tried => the step fails and says that /etc/passwd is not a directory | docker/builds/steps.test.ts | WORKDIR belongs to the user with its new parents
sibling: a command of a user that does not exist | it read as a directory that cannot be made => the build fails with its step: invalid username, with the name | docker/builds/builds.test.ts | an unknown user
sibling: setWorkdir("sub") below another one | not tried => /srv/app/sub, also in sandboxes | docker/builds/builds.test.ts | steps have their effects
`,
  "steps whose time grows with their input": `
copy 2 550 directories onto themselves | 32 s, and 4 s anew => both copies succeed, by one walk that renames each; the test prints both times | docker/builds/steps.test.ts | copies thousands of directories anew and onto themselves
sibling: \${A//*a*a*b/} of 50 000 letters | not tried => the step fails: it takes too long | unit/agent/builds/steps.test.ts | a pattern that would take minutes
sibling: 500 000 carriage returns in a line of output | not tried => logged within seconds of processor time | unit/agent/builds/parts.test.ts | many carriage returns in a line
sibling: an archive of 100 000 entries | not tried => refused with the limit of 80 000 | docker/builds/builds.test.ts | 100 000 entries
`,
  "what a reader of Dockerfiles loses": `
ENV A="a b", by the published SDK | the value ends at the blank => listed in docs/using.md with the way out; svc template build keeps it | integration/orchestrator/templates/sdk.test.ts | a quoted value of ENV
RUN <<EOT, by the published SDK | one line => listed in docs/using.md with the way out; svc template build keeps the lines | integration/orchestrator/templates/sdk.test.ts | a heredoc of RUN
SHELL, by the published SDK | nothing => listed in docs/using.md with the way out; svc template build runs the file's commands in it | integration/orchestrator/templates/sdk.test.ts | a shell that SHELL names
RUN ["a", "b c"], by the published SDK | the text with its brackets => listed in docs/using.md with the way out; svc template build quotes it for a shell | integration/orchestrator/templates/sdk.test.ts | RUN in exec form
several FROM | refused by the SDK => listed in docs/using.md with the way out; svc template build builds the last stage, and refuses a COPY --from with its line | integration/orchestrator/templates/sdk.test.ts | a second FROM is refused
sibling: ENTRYPOINT and CMD, by the published SDK | the last of the two alone => listed in docs/using.md; svc template build joins them | integration/orchestrator/templates/sdk.test.ts | an ENTRYPOINT before a CMD
sibling: COPY --chmod, by the published SDK | nothing => listed in docs/using.md; svc template build keeps the mode | integration/orchestrator/templates/sdk.test.ts | the mode of a COPY
sibling: ENV P="/opt/bin":$PATH, by svc template build | the quotes stayed in the value => quotes in the middle of a value are what they are in Docker | unit/shared/dockerfile/dockerfile.test.ts | /opt/bin:$PATH
sibling: SHELL ["/bin/bash", "-o", "pipefail", "-c"], by svc template build | refused => the shell of each shell form after it, with its options | integration/shared/dockerfile-programs.test.ts | runs in the shell that SHELL names
sibling: a continued line in the middle of an address | a blank in the address => no blank | unit/shared/dockerfile/dockerfile.test.ts | a line that goes on has no blank
sibling: a heredoc with an interpreter of its own (#!/usr/bin/env node) | run by the shell => run by that program, as it is | integration/shared/dockerfile-programs.test.ts | is given to its interpreter as it is
sibling: Windows line ends and a byte order mark | the file was not read => they change nothing | unit/shared/dockerfile/dockerfile.test.ts | line ends of Windows
sibling: ONBUILD and SHELL of the base image | left out in silence => a warning in the log, also when the image comes from the cache | integration/agent/builds/builds.test.ts | what an image has for builds on top of it
sibling: ARG TARGETARCH and its like, without a value | refused => amd64, linux and linux/amd64, as Docker sets them; a value of the file or of the caller goes before | unit/shared/dockerfile/dockerfile.test.ts | a file that asks for the platform gets it
sibling: FROM scratch | it was looked for in a registry => refused with its line: the image is empty, and which image to name | unit/shared/dockerfile/dockerfile.test.ts | the image scratch is empty
sibling: COPY a b $D, where D ends with / | refused: the destination must end with / => both files are copied into it | unit/shared/dockerfile/dockerfile.test.ts | may be a variable with / at its end
sibling: USER and WORKDIR without a value | an empty value in the step => refused with the line | unit/shared/dockerfile/dockerfile.test.ts | takes a value
sibling: a directory that the caller may not read, which .dockerignore leaves out | the error EACCES ended the build => nothing of it is looked at; without .dockerignore it is refused by its name | integration/agent/builds/copies.test.ts | what the caller may not read
sibling: setuid and sticky bits in the folder | lost on the way => kept for files of root | integration/agent/builds/copies.test.ts | keeps setuid and sticky bits
sibling: COPY <<EOF /etc/app.conf, a text in the Dockerfile | refused => the file, with the variables, quotes and backslashes of Docker | unit/shared/dockerfile/texts.test.ts | a text in the Dockerfile is a file
sibling: the same through svc, from a Dockerfile on standard input (-f -) | refused; - was looked for as a file => the archive has the text | integration/cli/day-two.test.ts | is built from a Dockerfile on standard input
sibling: a stage that the last one is not from, and FROM of an earlier stage | refused => as in BuildKit the one is left out, with a note, and the other is a part of the last | unit/shared/dockerfile/stages.test.ts | of several stages the last one is built
sibling: [^a-c]x in .dockerignore | files that it names were sent => left out, as Go reads it | unit/shared/dockerfile/ignored.test.ts | [^a-c]x
sibling: a line that is no pattern in .dockerignore ([id) | left nothing out in silence => refused with the line | unit/shared/dockerfile/ignored.test.ts | is refused by its line
sibling: a .dockerignore in UTF-16, as PowerShell writes it | left nothing out in silence => refused: save it as UTF-8 | unit/shared/dockerfile/ignored.test.ts | as PowerShell writes it
sibling: FROM rockylinux, amazonlinux, ubi-minimal, opensuse | refused: the distribution is not supported => gets its programs from dnf, yum, microdnf or zypper | integration/agent/builds/distributions.test.ts | from its own package manager
sibling: FROM ghcr.io/Me/App, https://ghcr.io/me/app | is not the name of an image => the refusal says why, and what to write | unit/agent/builds/steps.test.ts | names the way out
sibling: **.pyc in .dockerignore | matched only below a directory => matches as in Docker | unit/shared/dockerfile/ignored.test.ts | /**.md
sibling: FROM \${REGISTRY}node:20, where ARG REGISTRY has no value | refused: it has no value => empty, as in Docker; what lacks a part then is refused | unit/shared/dockerfile/notes.test.ts | an ARG before FROM that has no value
sibling: CMD ['npm', 'start'], a list that is not JSON | run with its brackets in silence => a note with the line says so | unit/shared/dockerfile/notes.test.ts | which is no list
sibling: RUN echo "a\\nb", a line end in Debian's sh | written as it is in silence => a note with the line and the way out | unit/shared/dockerfile/notes.test.ts | which bash does not do as Debian's sh
sibling: docker build --target dev | no such option => that stage, by its name or number, with those that it is from | unit/shared/dockerfile/stages.test.ts | a stage that is named
sibling: COPY . . from a folder that is named by a link | copied nothing in silence => copies what is in it | integration/agent/builds/copies.test.ts | from a folder that is named by a link
sibling: a log that grows while it is copied (archive/tar: write too long) | "Size mismatch", without its name => sent as it was | integration/agent/builds/copies.test.ts | a log that grows while the folder is read
sibling: a file that goes away while it is copied | ENOENT of a path, or "Size mismatch" => refused by its name, with .dockerignore as the way out | integration/agent/builds/copies.test.ts | while the folder is read is named
`,
};
