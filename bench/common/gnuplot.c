/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

#include "common.h"

extern char **environ;

int gnuplot(char *const arguments[])
{
    pid_t pid;
    int error = posix_spawnp(&pid, "gnuplot", NULL, NULL, arguments, environ);
    if (error != 0)
        return error;
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return ENOENT;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EIO;
}
