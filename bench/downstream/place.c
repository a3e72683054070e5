/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary directory, and the processes that run in it. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "downstream.h"

#define STOP_PATIENCE_NS (5 * NS_PER_S)

/* Servers refuse to run as root, or should not. */
static int choose_user(struct place *place)
{
    place->user = geteuid();
    place->group = getegid();
    if (place->user != 0)
        return 0;
    static const char *const names[] = {"postgres", "nobody"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct passwd *entry = getpwnam(names[i]);
        if (entry == NULL)
            continue;
        place->user = entry->pw_uid;
        place->group = entry->pw_gid;
        return 0;
    }
    return bench_complain("an unprivileged user", "neither postgres nor nobody exists");
}

int place_create(struct place *place, const char *part)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || *base == '\0')
        base = "/tmp";
    int size = snprintf(place->path, sizeof place->path, "%s/weir-%s-XXXXXX", base, part);
    if (size < 0 || (size_t)size >= sizeof place->path || mkdtemp(place->path) == NULL) {
        int error = errno;
        place->path[0] = '\0';
        return bench_complain("a temporary directory", strerror(error));
    }
    int error = choose_user(place);
    if (error == 0 && place->user != geteuid() && chown(place->path, place->user, place->group) != 0)
        error = bench_complain(place->path, strerror(errno));
    return error;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path) != 0 && errno != ENOENT ? errno : 0;
}

void place_remove(struct place *place)
{
    if (place->path[0] == '\0')
        return;
    int error = nftw(place->path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    if (error != 0 && access(place->path, F_OK) == 0)
        bench_complain(place->path, "could not be removed");
    place->path[0] = '\0';
}

int place_write(const struct place *place, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", place->path, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return bench_complain(path, strerror(errno));
    bool failed = fputs(text, file) < 0;
    if (fclose(file) != 0 || failed)
        return bench_complain(path, strerror(errno));
    return 0;
}

int free_port(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
                 getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    *port = ntohs(address.sin_port);
    return bound ? 0 : bench_complain("a port of its own", strerror(error));
}

/* Debian keeps servers where an ordinary user's PATH does not lead. */
static void extend_path(void)
{
    static const char more[] = "/usr/local/sbin:/usr/sbin:/sbin";
    const char *path = getenv("PATH");
    char *extended = NULL;
    if ((path != NULL && strstr(path, more) != NULL) ||
        asprintf(&extended, "%s:%s", path != NULL ? path : "/usr/bin:/bin", more) < 0)
        return;
    setenv("PATH", extended, 1);
    free(extended);
}

bool program_exists(const char *name)
{
    extend_path();
    char *copy = strdup(getenv("PATH"));
    char *rest = copy;
    bool found = false;
    for (char *directory; !found && (directory = strsep(&rest, ":")) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, name);
        found = access(path, X_OK) == 0;
    }
    free(copy);
    return found;
}

/* In the child: becomes the program or exits with 127. */
static void become(const struct place *place, const struct spawn *spawn, pid_t parent)
{
    char log[256];
    snprintf(log, sizeof log, "%s/%s.log", place->path, spawn->name);
    setpgid(0, 0); /* Ctrl-C is for us, who then end it in order */
    if (place->user != geteuid() && (setgroups(0, NULL) != 0 || setgid(place->group) != 0 || setuid(place->user) != 0))
        _exit(127);
    prctl(PR_SET_PDEATHSIG, spawn->end_signal); /* after setuid, which clears it */
    if (getppid() != parent || chdir(place->path) != 0)
        _exit(127);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(spawn->arguments[0], spawn->arguments);
    dprintf(2, "%s: %s\n", spawn->arguments[0], strerror(errno));
    _exit(127);
}

int place_spawn(const struct place *place, const struct spawn *spawn, pid_t *pid)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return bench_complain(spawn->name, strerror(errno));
    if (child == 0)
        become(place, spawn, parent);
    *pid = child;
    return 0;
}

int place_run(const struct place *place, const struct spawn *spawn)
{
    pid_t pid;
    int error = place_spawn(place, spawn, &pid);
    if (error != 0)
        return error;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return bench_complain(spawn->name, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return interrupted() ? EINTR : 0;
    place_log(place, spawn->name);
    return bench_complain(spawn->name, "it failed");
}

void place_log(const struct place *place, const char *name)
{
    char path[256], text[2048];
    snprintf(path, sizeof path, "%s/%s.log", place->path, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    if (fseek(file, -(long)(sizeof text - 1), SEEK_END) != 0)
        rewind(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    fprintf(stderr, "%s", text);
}

bool process_ended(pid_t *pid)
{
    if (*pid == 0 || waitpid(*pid, NULL, WNOHANG) != *pid)
        return false;
    *pid = 0;
    return true;
}

void process_stop(pid_t *pid, int end_signal)
{
    if (*pid == 0)
        return;
    kill(*pid, end_signal);
    uint64_t patience = weir_after_ns(STOP_PATIENCE_NS);
    while (!process_ended(pid)) {
        if (weir_now_ns() < patience) {
            sleep_until(weir_after_ns(5 * NS_PER_MS));
            continue;
        }
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
        *pid = 0;
        break;
    }
}
