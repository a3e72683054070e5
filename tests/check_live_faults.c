/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Live files that somebody else changes under a reader's hands: cut short, grown, replaced or removed between any two
 * of its calls; and reads that are interrupted, come in pieces, or fail. The reader is a child, as ever; the linker
 * puts the functions named __wrap_ in the place of the system's. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_support.h"
#include "refused_calls.h"
#include "stats/live_file.h"

enum { PARTITIONS = 8, VALUE = 7 };

static char directory[64]; /* of the test that runs */
static char path[128];     /* of its live file */
static char options[] = "MAX_LIMIT\t40\tprogram\tlive\n";
static off_t whole; /* its size */

/* ---- what happens, in the reader ---- */

static struct {
    unsigned calls;       /* since it was set */
    unsigned after;       /* the call, from 1, after which change is called; 0: none */
    void (*change)(void); /* what somebody else does to the file */
    int error;            /* of the read at_read, from 1; 0: none fails */
    unsigned at_read;
    unsigned reads;
    unsigned tries;   /* calls that can be refused, since it was set */
    unsigned refused; /* the one that is, from 1, with error; 0: none */
    size_t piece;     /* most bytes of a read; 0: any */
} fault;

static void count_call(void)
{
    int kept = errno;
    if (++fault.calls == fault.after)
        fault.change();
    errno = kept;
}

bool weir_test_refuses(void)
{
    if (++fault.tries != fault.refused)
        return false;
    errno = fault.error;
    return true;
}

DIR *__real_opendir(const char *name);

DIR *__wrap_opendir(const char *name);
DIR *__wrap_opendir(const char *name)
{
    return weir_test_refuses() ? NULL : __real_opendir(name);
}

ssize_t __real_pread(int descriptor, void *to, size_t size, off_t offset);
int __real_fstat(int descriptor, struct stat *status);
void *__real_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);

ssize_t __wrap_pread(int descriptor, void *to, size_t size, off_t offset);
ssize_t __wrap_pread(int descriptor, void *to, size_t size, off_t offset)
{
    if (++fault.reads == fault.at_read && fault.error != 0) {
        errno = fault.error;
        return -1;
    }
    if (weir_test_refuses())
        return -1;
    ssize_t got = __real_pread(descriptor, to, fault.piece > 0 && size > fault.piece ? fault.piece : size, offset);
    count_call();
    return got;
}

int __wrap_fstat(int descriptor, struct stat *status);
int __wrap_fstat(int descriptor, struct stat *status)
{
    if (weir_test_refuses())
        return -1;
    int result = __real_fstat(descriptor, status);
    count_call();
    return result;
}

/* No reader maps a file, but one that did would have to stand this, too. */
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    void *mapped = __real_mmap(address, length, protection, flags, descriptor, offset);
    if ((flags & MAP_ANONYMOUS) == 0)
        count_call();
    return mapped;
}

/* ---- the file ---- */

static void make_directory(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/weir-live-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/weir-%ld-1.live", directory, (long)getpid());
}

static void remove_directory(void)
{
    ck_assert_msg(rmdir(directory) == 0, "%s is not empty", directory);
}

/* A file with a record whose figures are all VALUE, and options. */
static struct weir__live *make_file(void)
{
    int error = 0;
    struct stat status;
    static struct weir__record record;
    struct weir__live *live = weir__live_create(directory, 1, PARTITIONS, &error);
    ck_assert_ptr_nonnull(live);
    record.id = 1;
    record.pid = (uint32_t)getpid();
    for (unsigned i = 0; i < WEIR__FIGURES; i++)
        record.figures[i] = VALUE;
    record.partition_count = PARTITIONS;
    record.partitions[PARTITIONS - 1].figures[WEIR__PARTITION_SHED] = VALUE;
    weir__live_store(live, &record);
    weir__live_store_options(live, options);
    ck_assert_int_eq(stat(path, &status), 0);
    whole = status.st_size;
    return live;
}

/* ---- what others do to it ---- */

static void set_size(off_t size)
{
    if (truncate(path, size) != 0)
        _exit(100);
}

static void cut_to_nothing(void)
{
    set_size(0);
}

static void cut_in_the_head(void)
{
    set_size(offsetof(struct weir__live_file, record_words));
}

static void cut_behind_the_head(void)
{
    set_size(offsetof(struct weir__live_file, record_turns));
}

static void cut_in_the_options(void)
{
    set_size(offsetof(struct weir__live_file, options) + 8);
}

static void cut_in_the_records(void)
{
    set_size(offsetof(struct weir__live_file, records) + 8);
}

static void cut_a_byte(void)
{
    set_size(whole - 1);
}

static void cut_and_grow(void)
{
    set_size(0);
    set_size(whole);
}

static void grow(void)
{
    set_size(whole + 4096);
}

static void replace(void)
{
    char other[160];
    (void)snprintf(other, sizeof other, "%s.other", path);
    int file = open(other, O_CREAT | O_WRONLY, 0600);
    if (file < 0 || close(file) != 0 || rename(other, path) != 0)
        _exit(100);
}

static void take_away(void)
{
    if (unlink(path) != 0)
        _exit(100);
}

static void (*const changes[])(void) = {cut_to_nothing,
                                        cut_in_the_head,
                                        cut_behind_the_head,
                                        cut_in_the_options,
                                        cut_in_the_records,
                                        cut_a_byte,
                                        cut_and_grow,
                                        grow,
                                        replace,
                                        take_away};

enum { CHANGES = sizeof changes / sizeof changes[0] };

/* ---- the reader ---- */

/* All that is known of the file, or nothing: a record is the one that was stored, or, where the file was cut and grew
 * again, one of zeros. */
static bool is_stored(const struct weir__record *record)
{
    uint64_t value = record->figures[WEIR__FIGURE_SUBMITTED];
    for (unsigned i = WEIR__FIGURE_SUBMITTED; i < WEIR__FIGURES; i++) {
        if (!weir__figure_rows[i].is_age && record->figures[i] != value)
            return false;
    }
    return value == 0 || (value == VALUE && record->partition_count == PARTITIONS &&
                          record->partitions[PARTITIONS - 1].figures[WEIR__PARTITION_SHED] == VALUE);
}

/* Not by fcntl, which the tests refuse. */
static unsigned open_descriptors(void)
{
    enum { MOST = 256 };
    struct pollfd all[MOST];
    unsigned count = 0;
    for (int descriptor = 0; descriptor < MOST; descriptor++)
        all[descriptor] = (struct pollfd){.fd = descriptor};
    if (poll(all, MOST, 0) < 0)
        abort();
    for (int descriptor = 0; descriptor < MOST; descriptor++)
        count += (all[descriptor].revents & POLLNVAL) == 0;
    return count;
}

/* Reads the record and its options. What it returns: how much of the two it has got, and 10 more for each thing that is
 * wrong. */
enum { GOT_RECORD = 1, GOT_OPTIONS = 2, WRONG = 10 };

static int read_all(void)
{
    struct weir__record *records = NULL;
    char text[WEIR__LIVE_OPTIONS];
    size_t count = 0;
    unsigned odd = 0;
    unsigned open_before = open_descriptors();
    int error = weir__live_read(directory, &records, &count, &odd);
    int result =
        (error == 0 && count + odd <= 1) || (error == fault.error && records == NULL && count == 0) ? 0 : WRONG;
    if (count == 1 && !is_stored(&records[0]))
        result += WRONG;
    struct weir__record asked = {.id = 1, .pid = (uint32_t)getppid()};
    bool has_options = weir__live_read_options(directory, &asked, text);
    if (has_options && strcmp(text, options) != 0 && text[0] != '\0')
        result += WRONG;
    if (open_descriptors() != open_before)
        result += WRONG;
    free(records);
    return result + (count == 1 ? GOT_RECORD : 0) + (has_options ? GOT_OPTIONS : 0);
}

static int read_under_fault(void *unused)
{
    (void)unused;
    fault.calls = 0;
    fault.reads = 0;
    fault.tries = 0;
    return read_all();
}

/* Plays the fault that is set in a child; its status must be an exit. */
static int play(void)
{
    int status = weir_test_in_child(read_under_fault, NULL);
    ck_assert_msg(WIFEXITED(status), "the reader dies of signal %d after call %u", WTERMSIG(status), fault.after);
    ck_assert_msg(WEXITSTATUS(status) < WRONG, "the reader ends with %d after call %u", WEXITSTATUS(status),
                  fault.after);
    return WEXITSTATUS(status);
}

/* How many calls that are watched, or that can be refused, the reader makes where nothing happens; 0: it is not even
 * then right. */
static int calls_of_a_reader(void *unused)
{
    (void)unused;
    memset(&fault, 0, sizeof fault);
    return read_all() == GOT_RECORD + GOT_OPTIONS ? (int)fault.calls : 0;
}

static int tries_of_a_reader(void *unused)
{
    (void)unused;
    memset(&fault, 0, sizeof fault);
    return read_all() == GOT_RECORD + GOT_OPTIONS ? (int)fault.tries : 0;
}

static unsigned count_in_child(int (*count)(void *))
{
    int status = weir_test_in_child(count, NULL);
    ck_assert(WIFEXITED(status));
    return (unsigned)WEXITSTATUS(status);
}

/* ---- tests ---- */

/* Whatever is done to the file, and between whichever two calls of the reader: it comes to its end, with what was
 * stored or with nothing, and leaves nothing open. */
START_TEST(changed_while_it_is_read)
{
    struct weir__live *live = make_file();
    unsigned calls = count_in_child(calls_of_a_reader);
    unsigned missed = 0;
    ck_assert_uint_ge(calls, 6);
    weir__live_close(live, true);
    for (unsigned i = 0; i < CHANGES; i++) {
        for (unsigned k = 1; k <= calls; k++) {
            live = make_file();
            memset(&fault, 0, sizeof fault);
            fault.after = k;
            fault.change = changes[i];
            missed += play() != GOT_RECORD + GOT_OPTIONS;
            memset(&fault, 0, sizeof fault);
            weir__live_close(live, true);
        }
    }
    ck_assert_uint_gt(missed, CHANGES); /* else the changes come too late to matter */
}
END_TEST

/* Reads that a signal interrupts are made again, those that come in pieces are put together, and where one fails there
 * is nothing to show. */
START_TEST(reads_that_fall_short)
{
    struct weir__live *live = make_file();
    for (unsigned k = 1; k <= 8; k++) {
        memset(&fault, 0, sizeof fault);
        fault.at_read = k;
        fault.error = EINTR;
        ck_assert_int_eq(play(), GOT_RECORD + GOT_OPTIONS);
        fault.error = EIO;
        (void)play();
    }
    memset(&fault, 0, sizeof fault);
    fault.at_read = 1;
    fault.error = EIO;
    ck_assert_int_eq(play(), GOT_OPTIONS);
    memset(&fault, 0, sizeof fault);
    fault.piece = 100;
    ck_assert_int_eq(play(), GOT_RECORD + GOT_OPTIONS);
    weir__live_close(live, true);
}
END_TEST

/* Each call of the reader is refused once: there is nothing to show, or half of it, and nothing stays open. */
START_TEST(calls_that_are_refused)
{
    static const int errors[] = {EMFILE, EACCES, EIO};
    struct weir__live *live = make_file();
    unsigned tries = count_in_child(tries_of_a_reader);
    unsigned missed = 0;
    ck_assert_uint_ge(tries, 10);
    memset(&fault, 0, sizeof fault);
    for (fault.refused = 1; fault.refused <= tries; fault.refused++) {
        for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++) {
            fault.error = errors[i];
            missed += play() != GOT_RECORD + GOT_OPTIONS;
        }
    }
    memset(&fault, 0, sizeof fault);
    ck_assert_uint_gt(missed, 0);
    ck_assert_int_eq(play(), GOT_RECORD + GOT_OPTIONS);
    weir__live_close(live, true);
}
END_TEST

/* ---- what the dead leave behind ---- */

static int die_with_a_file(void *unused)
{
    int error = 0;
    (void)unused;
    struct weir__live *live = weir__live_create(directory, 1, PARTITIONS, &error);
    if (live == NULL)
        return 1;
    weir__live_close(live, false); /* a leak checker would ask for it; to others the process is as good as dead */
    return 0;
}

/* The files of processes that are gone, and other things under names of live files. */
static void leave_behind(void)
{
    char name[128];
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(weir_test_in_child(die_with_a_file, NULL), 0);
    (void)snprintf(name, sizeof name, "%s/weir-1-1.live", directory);
    ck_assert_int_eq(mkdir(name, 0700), 0);
    (void)snprintf(name, sizeof name, "%s/weir-1-2.live", directory);
    ck_assert_int_eq(mkfifo(name, 0600), 0);
    (void)snprintf(name, sizeof name, "%s/weir-1-3.live", directory);
    ck_assert_int_eq(symlink("/etc/hostname", name), 0);
}

static void take_the_rest_away(void)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s/weir-1-1.live", directory);
    ck_assert_int_eq(rmdir(name), 0);
    for (int i = 2; i <= 3; i++) {
        (void)snprintf(name, sizeof name, "%s/weir-1-%d.live", directory, i);
        ck_assert_int_eq(unlink(name), 0);
    }
}

static void read_directory(void)
{
    struct weir__record *records = NULL;
    size_t count = 0;
    unsigned odd = 0;
    ck_assert_int_eq(weir__live_read(directory, &records, &count, &odd), 0);
    ck_assert_uint_eq(count, 0);
    free(records);
}

static void make_another(void)
{
    weir__live_close(make_file(), true);
}

/* Who reads the directory, and who makes a file of its own there, takes away what the dead left, nothing else, and
 * keeps nothing open. */
START_TEST(left_by_the_dead)
{
    static void (*const visits[])(void) = {read_directory, make_another};
    leave_behind();
    unsigned open_before = open_descriptors();
    visits[_i]();
    ck_assert_uint_eq(open_descriptors(), open_before);
    take_the_rest_away(); /* and then the directory is empty */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("live faults");
    TCase *tests = tcase_create("live files that others change");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, changed_while_it_is_read);
    tcase_add_test(tests, reads_that_fall_short);
    tcase_add_test(tests, calls_that_are_refused);
    tcase_add_loop_test(tests, left_by_the_dead, 0, 2);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
