/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Starting threads, and the log. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "suite.h"
#include "support.h"

#define MARK 12345 /* an errno value that no call sets */

/* ---- starting a thread ---- */

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

static bool is_fault(int number)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i] == number)
            return true;
    return false;
}

static void *note_mask(void *arg)
{
    (void)pthread_sigmask(SIG_BLOCK, NULL, arg);
    return arg;
}

/* A thread has every signal blocked but those that report a fault of its own, and its starter's mask is as before. */
START_TEST(thread_blocks_asynchronous_signals)
{
    sigset_t before;
    sigset_t after;
    sigset_t inside;
    pthread_t thread;
    void *returned = NULL;
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    errno = MARK;
    ck_assert_int_eq(weir__thread_start(&thread, 0, note_mask, &inside), 0);
    ck_assert_int_eq(errno, MARK);
    ck_assert_int_eq(pthread_join(thread, &returned), 0);
    ck_assert_ptr_eq(returned, &inside);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (number == SIGKILL || number == SIGSTOP || (number > 31 && number < SIGRTMIN))
            continue;
        ck_assert_int_eq(sigismember(&inside, number), is_fault(number) ? 0 : 1);
        ck_assert_int_eq(sigismember(&after, number), sigismember(&before, number));
    }
}
END_TEST

static pthread_t starter;
static atomic_int taken_elsewhere;
static atomic_bool storm_over;

static void take_signal(int number)
{
    (void)number;
    if (!pthread_equal(pthread_self(), starter))
        atomic_fetch_add(&taken_elsewhere, 1);
}

static void *send_signals(void *arg)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!atomic_load(&storm_over)) {
        (void)kill(getpid(), SIGUSR1);
        (void)sched_yield();
    }
    return arg;
}

static void *do_nothing(void *arg)
{
    return arg;
}

/* Not even its first instructions run a handler that belongs to the program. */
START_TEST(thread_takes_no_signal_while_it_starts)
{
    struct sigaction old;
    struct sigaction action = {.sa_handler = take_signal, .sa_flags = SA_RESTART};
    pthread_t sender;
    starter = pthread_self();
    atomic_store(&taken_elsewhere, 0);
    atomic_store(&storm_over, false);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &old), 0);
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &all, &before), 0); /* for the sender's first instructions */
    ck_assert_int_eq(pthread_create(&sender, NULL, send_signals, NULL), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    int error = 0;
    for (unsigned i = weir_test_scaled(500); i > 0 && error == 0; i--) {
        pthread_t thread;
        error = weir__thread_start(&thread, 0, do_nothing, NULL);
        if (error == 0)
            error = pthread_join(thread, NULL);
    }
    atomic_store(&storm_over, true);
    (void)pthread_join(sender, NULL);
    (void)sigaction(SIGUSR1, &old, NULL);
    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(atomic_load(&taken_elsewhere), 0);
}
END_TEST

static void *note_stack_size(void *arg)
{
    size_t *size = arg;
    pthread_attr_t attributes;
    size_t guard = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return NULL;
    (void)pthread_attr_getstacksize(&attributes, size);
    (void)pthread_attr_getguardsize(&attributes, &guard);
    *size += guard; /* glibc takes the guard out of the size asked for */
    (void)pthread_attr_destroy(&attributes);
    return NULL;
}

static size_t stack_of_thread(uint64_t asked)
{
    size_t seen = 0;
    pthread_t thread;
    ck_assert_int_eq(weir__thread_start(&thread, asked, note_stack_size, &seen), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return seen;
}

/* A stack size that is no whole number of pages is rounded up, never down: the thread has what one has that asked for
 * the next whole number. Sizes rise, for a larger stack of a thread before may be used again. */
START_TEST(stack_size_is_rounded_up)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t least = weir__thread_least_stack();
    const uint64_t sizes[] = {least, least + 1, 4 * least + page - 1, 1000001, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t seen = stack_of_thread(sizes[i]);
        ck_assert_uint_ge(seen, sizes[i]);
        ck_assert_uint_eq(seen, stack_of_thread((sizes[i] + page - 1) / page * page));
    }
}
END_TEST

/* A stack too small for a thread is refused by its error value; errno and the signal mask stay. */
START_TEST(impossible_stack_is_refused)
{
    pthread_t thread;
    sigset_t after;
    errno = MARK;
    ck_assert_int_eq(weir__thread_start(&thread, 1, do_nothing, NULL), EINVAL);
    ck_assert_int_eq(errno, MARK);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    ck_assert_int_eq(sigismember(&after, SIGUSR2), 0);
    ck_assert_uint_ge(weir__thread_least_stack(), 65536);
}
END_TEST

struct naming {
    const char *name;
    unsigned index;
    const char *expected;
    char seen[32];
    int error_number;
};

static void *name_thread(void *arg)
{
    struct naming *naming = arg;
    errno = MARK;
    weir__thread_set_name(naming->name, naming->index);
    naming->error_number = errno;
    (void)pthread_getname_np(pthread_self(), naming->seen, sizeof naming->seen);
    return NULL;
}

/* A thread's name keeps its index whole within 15 bytes. */
START_TEST(name_keeps_the_index)
{
#ifndef HAVE_CONFIG_H
    return; /* the library was built without its configuration, so it may not know how to name threads */
#endif
    struct naming namings[] = {
        {.name = "pool", .index = 0, .expected = "pool/0"},
        {.name = "", .index = 3, .expected = "/3"},
        {.name = "exactly-13-by", .index = 9, .expected = "exactly-13-by/9"},
        {.name = "a-name-that-is-far-too-long", .index = 7, .expected = "a-name-that-i/7"},
        {.name = "a-name-that-is-far-too-long", .index = 12345, .expected = "a-name-th/12345"},
        {.name = "a-name-that-is-far-too-long", .index = 4294967295, .expected = "a-na/4294967295"},
    };
    for (size_t i = 0; i < sizeof namings / sizeof namings[0]; i++) {
        pthread_t thread;
        ck_assert_int_eq(weir__thread_start(&thread, 0, name_thread, &namings[i]), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_str_eq(namings[i].seen, namings[i].expected);
        ck_assert_int_eq(namings[i].error_number, MARK);
    }
}
END_TEST

/* ---- log ---- */

struct lines {
    unsigned count;
    weir_log_level level;
    char text[2048];
};

static void collect(weir_log_level level, const char *message, void *arg)
{
    struct lines *lines = arg;
    lines->count++;
    lines->level = level;
    (void)snprintf(lines->text, sizeof lines->text, "%s", message);
    errno = EIO;
}

/* A line is written if its level is within the threshold. */
START_TEST(threshold_decides)
{
    struct lines lines = {0};
    weir_set_log(collect, &lines);
    for (uint32_t threshold = WEIR_LOG_OFF; threshold <= WEIR_LOG_INFO; threshold++) {
        for (unsigned level = WEIR_LOG_ERROR; level <= WEIR_LOG_INFO; level++) {
            lines.count = 0;
            errno = MARK;
            weir__log(threshold, (weir_log_level)level, "level %u", level);
            ck_assert_int_eq(errno, MARK);
            ck_assert_uint_eq(lines.count, level <= threshold ? 1 : 0);
            if (lines.count > 0)
                ck_assert_uint_eq(lines.level, level);
        }
    }
    weir_set_log(NULL, NULL);
}
END_TEST

/* The sink gets the formatted text without a newline; an overlong one is cut. */
START_TEST(sink_gets_the_text)
{
    struct lines lines = {0};
    char flood[4000];
    weir_set_log(collect, &lines);
    weir__log(WEIR_LOG_INFO, WEIR_LOG_WARN, "%s=%d", "MAX_LIMIT", 7);
    ck_assert_str_eq(lines.text, "MAX_LIMIT=7");
    memset(flood, 'x', sizeof flood - 1);
    flood[sizeof flood - 1] = '\0';
    weir__log(WEIR_LOG_INFO, WEIR_LOG_WARN, "%s", flood);
    ck_assert_uint_gt(strlen(lines.text), 500);
    ck_assert_int_eq(strncmp(lines.text, flood, strlen(lines.text)), 0);
    weir_set_log(NULL, NULL);
}
END_TEST

/* NULL sends the lines back to stderr, one a line, with the library's name. */
START_TEST(null_goes_back_to_stderr)
{
    struct lines lines = {0};
    char text[256] = "";
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    weir_set_log(collect, &lines);
    weir_set_log(NULL, NULL);
    (void)fflush(stderr);
    int saved = dup(STDERR_FILENO);
    ck_assert_int_ge(saved, 0);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    errno = MARK;
    weir__log(WEIR_LOG_WARN, WEIR_LOG_ERROR, "to %s", "stderr");
    weir__log(WEIR_LOG_WARN, WEIR_LOG_INFO, "not at all");
    int error_number = errno;
    (void)fflush(stderr);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    (void)fclose(file);
    ck_assert_int_eq(error_number, MARK);
    ck_assert_str_eq(text, "weir: to stderr\n");
    ck_assert_uint_eq(lines.count, 0);
}
END_TEST

static void log_from_inside(weir_log_level level, const char *message, void *arg)
{
    struct lines *lines = arg;
    (void)level;
    (void)message;
    weir_set_log(log_from_inside, arg);
    if (lines->count++ == 0)
        weir__log(WEIR_LOG_INFO, WEIR_LOG_INFO, "from the sink");
}

/* The sink is called under no lock: it may log and change the sink itself. */
START_TEST(sink_is_called_without_a_lock)
{
    struct lines lines = {0};
    weir_set_log(log_from_inside, &lines);
    weir__log(WEIR_LOG_INFO, WEIR_LOG_INFO, "outer");
    ck_assert_uint_eq(lines.count, 2);
    weir_set_log(NULL, NULL);
}
END_TEST

static atomic_uint mismatches;
static atomic_bool logging_over;
static int first_arg;
static int second_arg;

static void first_sink(weir_log_level level, const char *message, void *arg)
{
    (void)level;
    (void)message;
    if (arg != &first_arg)
        atomic_fetch_add(&mismatches, 1);
}

static void second_sink(weir_log_level level, const char *message, void *arg)
{
    (void)level;
    (void)message;
    if (arg != &second_arg)
        atomic_fetch_add(&mismatches, 1);
}

static void *log_on(void *arg)
{
    while (!atomic_load(&logging_over))
        weir__log(WEIR_LOG_INFO, WEIR_LOG_INFO, "line");
    return arg;
}

/* A sink always gets the argument it was set with, however often it changes meanwhile. */
START_TEST(sink_and_argument_belong_together)
{
    pthread_t thread;
    atomic_store(&mismatches, 0);
    atomic_store(&logging_over, false);
    weir_set_log(first_sink, &first_arg);
    ck_assert_int_eq(pthread_create(&thread, NULL, log_on, NULL), 0);
    for (unsigned i = weir_test_scaled(50000); i > 0; i--) {
        weir_set_log(second_sink, &second_arg);
        weir_set_log(first_sink, &first_arg);
    }
    atomic_store(&logging_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    weir_set_log(NULL, NULL);
    ck_assert_uint_eq(atomic_load(&mismatches), 0);
}
END_TEST

/* A fork child can log even where another thread was at it in the moment of the fork. */
START_TEST(fork_child_can_log)
{
    pthread_t thread;
    int failures = 0;
    ck_assert_int_eq(weir__fork_watch(), 0);
    atomic_store(&logging_over, false);
    weir_set_log(first_sink, &first_arg);
    ck_assert_int_eq(pthread_create(&thread, NULL, log_on, NULL), 0);
    for (unsigned i = weir_test_scaled(100); i > 0; i--) {
        pid_t child = fork();
        if (child == 0) {
            weir__log(WEIR_LOG_INFO, WEIR_LOG_INFO, "child");
            _exit(0);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            failures++;
    }
    atomic_store(&logging_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    weir_set_log(NULL, NULL);
    ck_assert_int_eq(failures, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    weir_test_add_group(suite, "thread",
                        (const TTest *const[]){thread_blocks_asynchronous_signals,
                                               thread_takes_no_signal_while_it_starts, stack_size_is_rounded_up,
                                               impossible_stack_is_refused, name_keeps_the_index, NULL});
    weir_test_add_group(suite, "log",
                        (const TTest *const[]){threshold_decides, sink_gets_the_text, null_goes_back_to_stderr,
                                               sink_is_called_without_a_lock, sink_and_argument_belong_together,
                                               fork_child_can_log, NULL});
    return weir_test_main(suite);
}
