/* Declarations that the parts of svc-exec share: frames on the control socket, and the functions of each part. */
#ifndef SVC_EXEC_H
#define SVC_EXEC_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The control socket, which connects this process to envd. Every other descriptor is close-on-exec. */
#define CONTROL_FD 3

/* Frame: u32 size of what follows, u8 kind, u32 id, body. Little endian; a string is u32 length, bytes, NUL. */
enum request_kind {
  REQUEST_SPAWN = 1,
  REQUEST_RELEASE = 2,
  REQUEST_SIGNAL = 3,
  REQUEST_RESIZE = 4,
  REQUEST_WATCH = 5,
  REQUEST_UNWATCH = 6,
  REQUEST_SYNC = 7,
  REQUEST_UNWATCH_ALL = 8,
  REQUEST_GET_ATTRIBUTES = 9,
  REQUEST_SET_ATTRIBUTES = 10,
};
enum answer_kind { ANSWER_REPLY = 100, ANSWER_EXIT = 101, ANSWER_NOTIFY = 102 };

/* The step of a start that failed, by which envd chooses the error message. */
enum spawn_step { STEP_NONE, STEP_RESOURCES, STEP_FORK, STEP_TERMINAL, STEP_USER, STEP_CWD, STEP_EXEC };

/* A request body while it is read. Past the end everything reads as zero and `broken` is set. */
struct reader {
  char *at;
  char *end;
  int broken;
};
uint32_t read_u32(struct reader *reader);
char *read_string(struct reader *reader); /* points into the frame, NUL-terminated */
char **read_strings(struct reader *reader); /* NULL-terminated, to be freed; NULL where the frame is broken */

/* The answer under construction; there is one at a time, and it is sent whole. */
void answer_start(uint8_t kind, uint32_t id);
void answer_u8(uint8_t value);
void answer_u32(uint32_t value);
void answer_bytes(const char *bytes, size_t length);
void answer_send(void);
void reply(uint32_t id, int error);

/* Blocks for one whole frame. NULL when envd is gone. The frame belongs to the caller. */
char *receive_frame(uint32_t *size);

struct terminal;
struct process {
  struct process *next;
  pid_t pid;
  uint32_t id;       /* of the request, while `status` is open */
  int status;        /* read end: closes when the program runs, else carries the failure; -1 afterwards */
  int held[3];       /* envd's ends: stdin, stdout, stderr; kept until it has opened its own, -1 when none */
  int reaped;
  int failed;        /* it never became the program: its exit is not reported */
  struct terminal *terminal;
};
extern struct process *processes;

/* spawn.c */
void spawn(uint32_t id, struct reader *reader);
void spawn_settled(struct process *process);
void close_held(struct process *process);

/* terminal.c: bytes between a pseudo terminal and two pipes */
int terminal_open(struct process *process, uint32_t cols, uint32_t rows, int ends[2], int *step);
int terminal_become(struct terminal *terminal, uid_t uid);
int terminal_resize(struct terminal *terminal, uint32_t cols, uint32_t rows);
size_t terminal_poll(struct terminal *terminal, struct pollfd *fds);
void terminal_pump(struct terminal *terminal, int leader_gone);
int terminal_done(const struct terminal *terminal);
void terminal_free(struct terminal *terminal);
#define TERMINAL_FDS 3

/* notify.c: inotify */
int notify_fd(void);
void notify_watch(uint32_t id, struct reader *reader);
void notify_unwatch(uint32_t id, struct reader *reader);
void notify_close(void);
void notify_drain(void);

/* attributes.c: user.e2b.* and user.svc.* extended attributes */
void attributes_get(uint32_t id, struct reader *reader);
void attributes_set(uint32_t id, struct reader *reader);

#endif
