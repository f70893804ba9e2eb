/* A tree of mounts of our own, in which a program sees nothing else of the machine. */
#pragma once

/* What is seen in it, at the same path as outside. */
struct seen {
  char *path;
  int writable;
  int tree;
};

/* Ends the program with a sentence about `what` and the reason in errno. */
_Noreturn void give_up(const char *what);

/* Adds a path. One that is missing is left out, or ends the program where it is needed. */
void see(const char *path, int writable, int needed);

/* Makes all that was added the only thing to be seen by this process. */
void become_confined(void);
