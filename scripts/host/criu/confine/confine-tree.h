/* A private tree of mounts: a program inside it sees only the paths that were added. */
#pragma once

/* A path that is visible in the tree, at the same place as outside. */
struct seen {
  char *path;
  int writable;
  int needed;
  /* Seen read-only and with inodes of its own, see own-inodes.h. */
  int apart;
  int tree;
};

/* Ends the program with a sentence about `what` and the reason in errno. */
_Noreturn void give_up(const char *what);

/* Adds a path. One that is missing, now or when the tree is made, is skipped, or ends the program if it is needed. */
void see(const char *path, int writable, int needed);

/* Adds a directory, or changes how an added one is seen: the restored container gets inodes of its own for it. */
void see_apart(const char *path);

/* Enters the tree: from now on this process sees the added paths only. */
void become_confined(void);
