/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the system refuses, call by call: the files of the live figures, descriptors, fork handlers, attributes of
 * threads. The k-th call fails, for every k that is reached: what is created works or is refused with the error that
 * the manual names, nothing stays open or behind, and the next one is as good as ever.
 *
 * The linker puts the functions named __wrap_ in the place of the system's. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool_support.h"
#include "refused_calls.h"

/* ---- the fault ---- */

static struct {
    atomic_uint calls; /* since it was set */
    atomic_uint first; /* the call that fails, from 1; 0: none */
    atomic_uint many;  /* how many do, from there on */
    atomic_int error;
} fault;

/* Sets errno where the call is to fail. */
bool weir_test_refuses(void)
{
    unsigned call = atomic_fetch_add(&fault.calls, 1) + 1;
    unsigned first = atomic_load(&fault.first);
    if (first == 0 || call < first || call - first >= atomic_load(&fault.many))
        return false;
    errno = atomic_load(&fault.error);
    return true;
}

static void set_fault(unsigned first, unsigned many, int error)
{
    atomic_store(&fault.first, 0);
    atomic_store(&fault.many, many);
    atomic_store(&fault.error, error);
    atomic_store(&fault.calls, 0);
    atomic_store(&fault.first, first);
}

static unsigned end_fault(void)
{
    unsigned calls = atomic_load(&fault.calls);
    set_fault(0, 0, 0);
    return calls;
}

int __real_fchmod(int descriptor, mode_t mode);
int __real_posix_fallocate(int descriptor, off_t offset, off_t length);
void *__real_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
int __real_linkat(int old_directory, const char *old_path, int new_directory, const char *new_path, int flags);
DIR *__real_fdopendir(int descriptor);
int __real_eventfd(unsigned count, int flags);
int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __real_pthread_attr_init(pthread_attr_t *attributes);

int __wrap_fchmod(int descriptor, mode_t mode);
int __wrap_fchmod(int descriptor, mode_t mode)
{
    return weir_test_refuses() ? -1 : __real_fchmod(descriptor, mode);
}

int __wrap_posix_fallocate(int descriptor, off_t offset, off_t length);
int __wrap_posix_fallocate(int descriptor, off_t offset, off_t length)
{
    return weir_test_refuses() ? atomic_load(&fault.error) : __real_posix_fallocate(descriptor, offset, length);
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    bool maps_file = (flags & MAP_ANONYMOUS) == 0; /* the others are memory, whose lack is check_faults.c's */
    return maps_file && weir_test_refuses() ? MAP_FAILED
                                            : __real_mmap(address, length, protection, flags, descriptor, offset);
}

int __wrap_linkat(int old_directory, const char *old_path, int new_directory, const char *new_path, int flags);
int __wrap_linkat(int old_directory, const char *old_path, int new_directory, const char *new_path, int flags)
{
    return weir_test_refuses() ? -1 : __real_linkat(old_directory, old_path, new_directory, new_path, flags);
}

DIR *__wrap_fdopendir(int descriptor);
DIR *__wrap_fdopendir(int descriptor)
{
    return weir_test_refuses() ? NULL : __real_fdopendir(descriptor);
}

int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    return weir_test_refuses() ? -1 : __real_eventfd(count, flags);
}

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return weir_test_refuses() ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

int __wrap_pthread_attr_init(pthread_attr_t *attributes);
int __wrap_pthread_attr_init(pthread_attr_t *attributes)
{
    return weir_test_refuses() ? ENOMEM : __real_pthread_attr_init(attributes);
}

/* ---- what is left behind ---- */

static unsigned entries(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(directory);
    return count;
}

/* ---- the files of live figures ---- */

static char directory[64];

/* One pool that is to publish its figures, under a fault. Returns how many calls it makes. */
static unsigned publish_under_fault(unsigned first, unsigned many, int error, bool *published)
{
    atomic_uint ran = 0;
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(2, 4);
    config.stats_dir = directory;
    unsigned descriptors = entries("/proc/self/fd");
    weir_test_log_capture();
    set_fault(first, many, error);
    int created = weir_pool_create(&pool, "faulty", &config);
    unsigned calls = end_fault();
    ck_assert_int_eq(created, 0);
    *published = entries(directory) == 1;
    ck_assert_msg(entries(directory) <= 1, "call %u fails: something is left in the directory", first);
    bool told = strstr(weir_test_log_text(), "STATS_DIR") != NULL;
    ck_assert_msg(told != *published, "call %u fails: published %d, told %d", first, *published, told);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    weir_test_pool_end(pool);
    weir_test_log_release();
    ck_assert_uint_eq(atomic_load(&ran), 2);
    ck_assert_msg(entries(directory) == 0, "call %u fails: a file stays", first);
    ck_assert_msg(entries("/proc/self/fd") == descriptors, "call %u fails: descriptors leak", first);
    return calls;
}

/* Each call that makes the file fails once, and all from there on: the pool works, with its file or with a line that
 * says that there is none. */
START_TEST(live_file)
{
    static const int errors[] = {EMFILE, ENOSPC, EACCES, EINTR};
    bool published = false;
    (void)snprintf(directory, sizeof directory, "/tmp/weir-faults-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    unsigned reached = publish_under_fault(0, 0, 0, &published);
    ck_assert(published);
    ck_assert_uint_ge(reached, 7);
    unsigned refused = 0;
    for (unsigned k = 1; k <= reached; k++) {
        for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++) {
            (void)publish_under_fault(k, i % 2 == 0 ? 1 : UINT32_MAX, errors[i], &published);
            refused += !published;
        }
    }
    ck_assert_uint_gt(refused, 0);
    (void)publish_under_fault(0, 0, 0, &published);
    ck_assert(published);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* ---- descriptors ---- */

/* No descriptor to be had: the creation says so, and the next one works. */
START_TEST(no_descriptor)
{
    weir_completions *completions = NULL;
    ck_assert_int_eq(weir_completions_create(&completions), 0); /* forks are watched from here on */
    weir_completions_destroy(completions);
    completions = NULL;
    unsigned descriptors = entries("/proc/self/fd");
    errno = 7;
    set_fault(1, 1, EMFILE);
    int error = weir_completions_create(&completions);
    int kept = errno;
    unsigned calls = end_fault();
    if (calls == 0)
        return; /* no eventfd here */
    ck_assert_int_eq(error, EMFILE);
    ck_assert_int_eq(kept, 7);
    ck_assert_ptr_null(completions);
    ck_assert_uint_eq(entries("/proc/self/fd"), descriptors);
    ck_assert_int_eq(weir_completions_create(&completions), 0);
    weir_completions_destroy(completions);
}
END_TEST

/* ---- fork handlers ---- */

static int use_inherited(void *pool)
{
    return weir_pool_submit(pool, weir_test_nothing, NULL) == ECHILD ? 0 : 1;
}

/* The first creations of the process find no memory for the fork handlers; a later one does, and forks are watched. */
START_TEST(no_fork_handler)
{
    weir_pool *pool = NULL;
    weir_limiter *limiter = NULL;
    weir_completions *completions = NULL;
    weir_config config = weir_test_fixed(1, 1);
    set_fault(1, 3, ENOMEM);
    ck_assert_int_eq(weir_pool_create(&pool, "early", &config), ENOMEM);
    ck_assert_int_eq(weir_limiter_create(&limiter, "early", &config), ENOMEM);
    ck_assert_int_eq(weir_completions_create(&completions), ENOMEM);
    ck_assert_uint_eq(end_fault(), 3);
    ck_assert_int_eq(weir_pool_create(&pool, "later", &config), 0);
    ck_assert_int_eq(weir_test_in_child(use_inherited, pool), 0);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    weir_test_pool_end(pool);
}
END_TEST

static atomic_uint creators;
static struct weir_test_gate start;

static void *create_first(void *arg)
{
    weir_limiter *limiter = NULL;
    (void)arg;
    weir_config config = weir_test_fixed(1, 1);
    weir_test_gate_pass(&start);
    if (weir_limiter_create(&limiter, "first", &config) == 0 && weir_limiter_destroy(limiter) == 0)
        atomic_fetch_add(&creators, 1);
    return NULL;
}

/* Several threads make the first creation of the process at once: the handlers are registered once. */
START_TEST(fork_handlers_once)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    weir_test_gate_init(&start);
    set_fault(0, 0, 0);
    for (int i = 0; i < THREADS; i++)
        threads[i] = weir_test_thread(create_first, NULL);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&start) == THREADS);
    set_fault(0, 0, 0); /* counts */
    weir_test_gate_open(&start);
    for (int i = 0; i < THREADS; i++)
        (void)weir_test_join(threads[i]);
    ck_assert_uint_eq(end_fault(), 1);
    ck_assert_uint_eq(atomic_load(&creators), THREADS);
    weir_test_gate_destroy(&start);
}
END_TEST

/* ---- attributes of threads ---- */

/* No memory for a thread's attributes is a thread that cannot be started. */
START_TEST(no_attributes)
{
    atomic_uint ran = 0;
    weir_test_log_capture();
    weir_pool *pool = weir_test_pool(3, 8);
    set_fault(1, 1, ENOMEM);
    int first = weir_pool_submit(pool, weir_test_count, &ran);
    ck_assert_uint_eq(end_fault(), 1);
    ck_assert_int_eq(first, ENOMEM);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    ck_assert_uint_eq(weir_test_stats(pool).worker_start_failures, 1);
    ck_assert_uint_eq(weir_test_stats(pool).submitted, 1);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 1);
    weir_test_log_release();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("system faults");
    TCase *tests = tcase_create("each call");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, no_fork_handler);
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode == NULL || strcmp(fork_mode, "no") != 0) /* it needs a process that has no handlers yet */
        tcase_add_test(tests, fork_handlers_once);
    tcase_add_test(tests, live_file);
    tcase_add_test(tests, no_descriptor);
    tcase_add_test(tests, no_attributes);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
