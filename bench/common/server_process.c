/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The server process as seen from the program that started it. It serves until its control socket ends, so it cannot
 * outlive that program, however that ends. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define CONTROL_FD 3

extern char **environ;

static int spawn_server(pid_t *pid, int control)
{
    char descriptor[16];
    snprintf(descriptor, sizeof descriptor, "%d", CONTROL_FD);
    char *arguments[] = {"weir-bench-server", SERVER_MODE, descriptor, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, control, CONTROL_FD);
    if (error == 0)
        error = posix_spawn(pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* One line, without its end. Lines are short and come one at a time, so a byte per call is no burden. */
static int read_line(int control, char *line, size_t size)
{
    size_t used = 0;
    while (used + 1 < size) {
        ssize_t n = recv(control, line + used, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return EPIPE;
        if (line[used] == '\n')
            break;
        used++;
    }
    line[used] = '\0';
    return 0;
}

int server_process_start(struct server_process *process)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return bench_complain("the server cannot be given a control socket", strerror(errno));
    int error = spawn_server(&process->pid, pair[1]);
    close(pair[1]);
    process->control = pair[0];
    if (error != 0) {
        process->pid = 0;
        server_process_stop(process);
        return bench_complain("the server does not start", strerror(error));
    }
    struct timeval patience = {.tv_sec = 5};
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char line[128];
    unsigned port = 0;
    error = read_line(pair[0], line, sizeof line);
    if (error != 0 || sscanf(line, "listening %u", &port) != 1 || port > UINT16_MAX) {
        server_process_stop(process);
        return bench_complain("the server does not listen", error != 0 ? strerror(error) : line);
    }
    process->address = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    return 0;
}

int server_process_serve(struct server_process *process, unsigned handlers, unsigned service_us)
{
    char line[128];
    int size = snprintf(line, sizeof line, "serve %u %u\n", handlers, service_us);
    if (send(process->control, line, (size_t)size, MSG_NOSIGNAL) != size)
        return bench_complain("the server takes no commands", strerror(errno));
    int error = read_line(process->control, line, sizeof line);
    if (error != 0 || strcmp(line, "ok") != 0)
        return bench_complain("the server refuses a command", error != 0 ? strerror(error) : line);
    return 0;
}

bool server_process_ended(struct server_process *process)
{
    int status;
    if (process->pid == 0 || waitpid(process->pid, &status, WNOHANG) != process->pid)
        return false;
    process->pid = 0;
    if (WIFSIGNALED(status))
        bench_complain("the server ended in the middle of the run", strsignal(WTERMSIG(status)));
    else
        bench_complain("the server ended in the middle of the run", "it gave up by itself");
    return true;
}

void server_process_stop(struct server_process *process)
{
    if (process->control >= 0)
        close(process->control);
    process->control = -1;
    if (process->pid == 0)
        return;
    uint64_t patience = weir_after_ns(2 * NS_PER_S);
    while (waitpid(process->pid, NULL, WNOHANG) == 0) {
        if (weir_now_ns() < patience) {
            sleep_until(weir_after_ns(5 * NS_PER_MS));
            continue;
        }
        kill(process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
        break;
    }
    process->pid = 0;
}
