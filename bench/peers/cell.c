/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers.h"

enum { PATIENCE_S = 60 };

static void child(measure_fn *measure, const void *what, unsigned count, int out)
{
    double figures[32] = {0};
    (void)alarm(PATIENCE_S);
    measure(what, figures);
    ssize_t written = write(out, figures, count * sizeof figures[0]);
    _exit(written == (ssize_t)(count * sizeof figures[0]) ? 0 : 1);
}

bool cell_run(measure_fn *measure, const void *what, double *figures, unsigned count)
{
    int fds[2];
    (void)fflush(NULL);
    if (pipe(fds) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        child(measure, what, count, fds[1]);
    (void)close(fds[1]);
    size_t wanted = count * sizeof figures[0];
    bool whole = pid > 0 && read(fds[0], figures, wanted) == (ssize_t)wanted;
    (void)close(fds[0]);
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && whole;
}
