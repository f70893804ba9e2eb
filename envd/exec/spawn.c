/* Starts one program as one user: makes pipes or a terminal, a session, limits and the directory, then calls exec.
 * A close-on-exec pipe carries the failed step and its errno back to this process. */
#define _GNU_SOURCE
#include "svc-exec.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAG_TERMINAL 1u
#define FLAG_STDIN 2u
#define NOFILE_UNCHANGED 0xffffffffu

struct plan {
  uint32_t flags, uid, gid, oom_score, nofile_soft, cols, rows;
  size_t group_count;
  gid_t *groups;
  char *cwd;
  char **argv;
  char **envp;
};

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static const char *find(char **envp, const char *name) {
  size_t length = strlen(name);
  for (; *envp != NULL; envp++)
    if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') return *envp + length + 1;
  return NULL;
}

static void run_file(const char *path, const struct plan *plan) {
  execve(path, plan->argv, plan->envp);
  if (errno != ENOEXEC) return;
  /* A script without an interpreter line runs with /bin/sh, as execvp and shells do. */
  size_t count = 0;
  while (plan->argv[count] != NULL) count++;
  char **argv = calloc(count + 2, sizeof *argv);
  if (argv == NULL) return;
  argv[0] = (char *)"/bin/sh";
  argv[1] = (char *)path;
  for (size_t i = 1; i < count; i++) argv[i + 1] = plan->argv[i];
  execve(argv[0], argv, plan->envp);
  errno = ENOEXEC;
}

/* Searches the PATH of the new program, as its user and in its directory. Returns only on failure. */
static void run(const struct plan *plan) {
  const char *name = plan->argv[0];
  if (strchr(name, '/') != NULL) {
    run_file(name, plan);
    return;
  }
  if (*name == 0) {
    errno = ENOENT;
    return;
  }
  const char *path = find(plan->envp, "PATH");
  if (path == NULL) path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  int refused = 0;
  for (const char *dir = path;;) {
    size_t length = strcspn(dir, ":");
    char file[4096];
    int size = snprintf(file, sizeof file, "%.*s%s%s", (int)length, dir, length > 0 ? "/" : "./", name);
    if (size > 0 && (size_t)size < sizeof file) {
      run_file(file, plan);
      if (errno == EACCES) refused = 1;
      else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ESTALE && errno != ENAMETOOLONG) return;
    }
    if (dir[length] == 0) break;
    dir += length + 1;
  }
  errno = refused ? EACCES : ENOENT;
}

static void write_oom_score(uint32_t score) {
  char text[16];
  int size = snprintf(text, sizeof text, "%u", score);
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  /* A failed write is ignored: then only the order in which the OOM killer picks processes is wrong. */
  if (write(fd, text, (size_t)size) < 0) errno = 0;
  close(fd);
}

static void restore_defaults(const struct plan *plan) {
  sigset_t none;
  for (int signal_number = 1; signal_number < 65; signal_number++) signal(signal_number, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  umask(022);
  write_oom_score(plan->oom_score);
  if (plan->nofile_soft == NOFILE_UNCHANGED) return;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && plan->nofile_soft <= limit.rlim_max) {
    limit.rlim_cur = plan->nofile_soft;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

static int fail(int status, uint32_t step) {
  uint32_t words[2] = {step, (uint32_t)errno};
  if (write(status, words, sizeof words) < 0) _exit(126);
  _exit(127);
}

/* Gives the pipes to the user: otherwise the program could not reopen /dev/stderr by name. Others may open each end in its
 * own direction, as a program must that it starts as another user (su, gosu, a server that gives up root). In the other
 * direction they could write the program's input or take its output. Only who holds a pipe, or may trace one who does, finds
 * it. */
static void give_away(const struct plan *plan) {
  for (int fd = plan->flags & FLAG_STDIN ? 0 : 1; fd < 3; fd++)
    if (fchown(fd, plan->uid, plan->gid) < 0 || fchmod(fd, fd == 0 ? 0644 : 0622) < 0) errno = 0;
}

static void become(const struct plan *plan, struct process *process, const int ends[3], int status) {
  restore_defaults(plan);
  setsid();
  if (process->terminal != NULL) {
    if (terminal_become(process->terminal, plan->uid) < 0) fail(status, STEP_TERMINAL);
  } else if (dup2(ends[0], 0) < 0 || dup2(ends[1], 1) < 0 || dup2(ends[2], 2) < 0) {
    fail(status, STEP_RESOURCES);
  } else {
    give_away(plan);
  }
  if (setgroups(plan->group_count, plan->groups) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
      setresuid(plan->uid, plan->uid, plan->uid) < 0)
    fail(status, STEP_USER);
  /* Called after the change of user, so that the kernel refuses a directory that the user may not enter. */
  if (chdir(plan->cwd) < 0) fail(status, STEP_CWD);
  run(plan);
  fail(status, STEP_EXEC);
}

/* Makes stdin, stdout and stderr of the program, and puts envd's ends into process->held. */
static int open_ends(const struct plan *plan, struct process *process, int ends[3], int *step) {
  int pair[2];
  *step = STEP_RESOURCES;
  if (plan->flags & FLAG_TERMINAL) {
    if (terminal_open(process, plan->cols, plan->rows, pair, step) < 0) return -1;
    process->held[0] = pair[0];
    process->held[1] = pair[1];
    return 0;
  }
  if (plan->flags & FLAG_STDIN) {
    if (pipe2(pair, O_CLOEXEC) < 0) return -1;
    ends[0] = pair[0];
    process->held[0] = pair[1];
  } else if ((ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
    return -1;
  }
  for (int i = 1; i < 3; i++) {
    if (pipe2(pair, O_CLOEXEC) < 0) return -1;
    ends[i] = pair[1];
    process->held[i] = pair[0];
  }
  return 0;
}

static void refuse(uint32_t id, int error, uint32_t step) {
  answer_start(ANSWER_REPLY, id);
  answer_u32((uint32_t)error);
  answer_u32(step);
  answer_send();
}

static int read_plan(struct reader *reader, struct plan *plan) {
  plan->flags = read_u32(reader);
  plan->uid = read_u32(reader);
  plan->gid = read_u32(reader);
  plan->oom_score = read_u32(reader);
  plan->nofile_soft = read_u32(reader);
  plan->cols = read_u32(reader);
  plan->rows = read_u32(reader);
  plan->group_count = read_u32(reader);
  if (plan->group_count > (size_t)(reader->end - reader->at) / 4) return -1;
  plan->groups = (gid_t *)calloc(plan->group_count + 1, sizeof(gid_t));
  if (plan->groups == NULL) return -1;
  for (size_t i = 0; i < plan->group_count; i++) plan->groups[i] = read_u32(reader);
  plan->cwd = read_string(reader);
  plan->argv = read_strings(reader);
  plan->envp = read_strings(reader);
  return reader->broken || plan->argv == NULL || plan->envp == NULL || plan->argv[0] == NULL ? -1 : 0;
}

static void start(uint32_t id, const struct plan *plan) {
  int ends[3] = {-1, -1, -1}, status[2] = {-1, -1}, step = STEP_RESOURCES;
  struct process *process = calloc(1, sizeof *process);
  if (process == NULL) {
    refuse(id, ENOMEM, STEP_RESOURCES);
    return;
  }
  process->held[0] = process->held[1] = process->held[2] = process->status = -1;
  process->id = id;
  pid_t pid = -1;
  int error = 0;
  if (open_ends(plan, process, ends, &step) < 0 || pipe2(status, O_CLOEXEC) < 0) {
    error = errno;
  } else if ((pid = fork()) < 0) {
    error = errno;
    step = STEP_FORK;
  } else if (pid == 0) {
    become(plan, process, ends, status[1]);
  }
  for (int i = 0; i < 3; i++) close_fd(&ends[i]);
  close_fd(&status[1]);
  if (error != 0) {
    close_fd(&status[0]);
    close_held(process);
    if (process->terminal != NULL) terminal_free(process->terminal);
    free(process);
    refuse(id, error, (uint32_t)step);
    return;
  }
  process->pid = pid;
  process->status = status[0];
  process->next = processes;
  processes = process;
}

void spawn(uint32_t id, struct reader *reader) {
  struct plan plan = {0};
  if (read_plan(reader, &plan) == 0) start(id, &plan);
  else refuse(id, EPROTO, STEP_RESOURCES);
  free(plan.groups);
  free(plan.argv);
  free(plan.envp);
}

/* Reads the status pipe: the program runs, or a step of its start failed. */
void spawn_settled(struct process *process) {
  uint32_t words[2];
  ssize_t got;
  do got = read(process->status, words, sizeof words);
  while (got < 0 && errno == EINTR);
  close_fd(&process->status);
  if (got == (ssize_t)sizeof words) {
    process->failed = 1;
    close_held(process);
    refuse(process->id, (int)words[1], words[0]);
    return;
  }
  answer_start(ANSWER_REPLY, process->id);
  answer_u32(0);
  answer_u32((uint32_t)process->pid);
  for (int i = 0; i < 3; i++) answer_u32((uint32_t)process->held[i]);
  answer_send();
}

void close_held(struct process *process) {
  for (int i = 0; i < 3; i++) close_fd(&process->held[i]);
}
