/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef HAVE_SYS_EVENTFD_H
#include <sys/eventfd.h>
#endif

#include "pool/pool.h"

struct weir_completions {
    pthread_mutex_t lock;     /* last in the order: nothing else is locked under it */
    struct weir__line jobs;   /* guarded by lock: ended jobs, by their units */
    int read_fd;              /* immutable after create */
    int write_fd;             /* immutable after create: the same for an eventfd */
    unsigned fork_generation; /* immutable after create */
};

#ifdef HAVE_SYS_EVENTFD_H
static int open_descriptors(struct weir_completions *completions)
{
    completions->read_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    completions->write_fd = completions->read_fd;
    return completions->read_fd < 0 ? errno : 0;
}
#else
static int open_descriptors(struct weir_completions *completions)
{
    int fds[2];
    if (pipe(fds) != 0)
        return errno;
    completions->read_fd = fds[0];
    completions->write_fd = fds[1];
    for (int i = 0; i < 2; i++) {
        (void)fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    return 0;
}
#endif

int weir_completions_create(weir_completions **completions)
{
    if (completions == NULL)
        return EINVAL;
    int error = weir__fork_watch();
    if (error != 0)
        return error;
    weir_completions *created = weir__allocate(sizeof *created);
    if (created == NULL)
        return ENOMEM;
    int saved_errno = errno;
    error = open_descriptors(created);
    errno = saved_errno;
    if (error != 0) {
        free(created);
        return error;
    }
    created->fork_generation = weir__fork_generation();
    WEIR__MUST(pthread_mutex_init(&created->lock, NULL));
    *completions = created;
    return 0;
}

static bool is_inherited(const weir_completions *completions)
{
    return completions->fork_generation != weir__fork_generation();
}

int weir_completions_fd(weir_completions *completions)
{
    return completions == NULL || is_inherited(completions) ? -1 : completions->read_fd;
}

/* The descriptor is readable exactly while a job is there: set and cleared under the lock, at the first and the last.
 * Eight bytes are what an eventfd wants, and a pipe takes them as well. */
static void set_readable(const weir_completions *completions, bool readable)
{
    int saved_errno = errno;
    uint64_t one = 1;
    ssize_t done =
        readable ? write(completions->write_fd, &one, sizeof one) : read(completions->read_fd, &one, sizeof one);
    (void)done; /* cannot fail: it does not block, and alternates */
    errno = saved_errno;
}

void weir__completions_put(weir_completions *completions, weir_job *job)
{
    WEIR__MUST(pthread_mutex_lock(&completions->lock));
    weir__line_append(&completions->jobs, &weir__handle_of(job)->unit);
    if (completions->jobs.length == 1)
        set_readable(completions, true);
    WEIR__MUST(pthread_mutex_unlock(&completions->lock));
}

weir_job *weir_completions_next(weir_completions *completions)
{
    if (completions == NULL || is_inherited(completions))
        return NULL;
    weir_job *job = NULL;
    WEIR__MUST(pthread_mutex_lock(&completions->lock));
    struct weir__unit *unit = completions->jobs.first;
    if (unit != NULL) {
        job = weir__job_of((struct weir__handle *)unit);
        weir__line_remove(&completions->jobs, unit);
        if (completions->jobs.length == 0)
            set_readable(completions, false);
    }
    WEIR__MUST(pthread_mutex_unlock(&completions->lock));
    return job;
}

void weir_completions_destroy(weir_completions *completions)
{
    if (completions == NULL)
        return;
    int saved_errno = errno;
    (void)close(completions->read_fd);
    if (completions->write_fd != completions->read_fd)
        (void)close(completions->write_fd);
    errno = saved_errno;
    if (!is_inherited(completions))
        WEIR__MUST(pthread_mutex_destroy(&completions->lock));
    free(completions);
}
