/* What criu-preload.c asks before it makes a call by its number. */
#pragma once

/* Makes open_tree and move_mount inside a sandbox's root: 1, and `*result` is set with errno; 0 for any other call. */
int move_inside(long number, long arguments[6], long *result, long (*real)(long, ...));
