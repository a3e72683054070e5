/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Live files of any bytes, for what reads them: weirstat. Another process holds the lock that makes them alive.
 *
 * The first byte of an input says how the file is made: odd, it is the rest of the input; even, it is a good file with
 * changes, each an offset of two bytes, a length of one, and as many bytes. */

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "stats/live_file.h"
#include "weirstat/weirstat.h"

enum { LOOKS = 8 };

static char directory[64];
static char path[128];
static int descriptor = -1;
static pid_t holder;
static int leash = -1; /* the holder ends when it is closed, also by the end of this process */

/* ---- a file that is alive ---- */

static void tidy_up(void)
{
    (void)close(leash);
    (void)waitpid(holder, NULL, 0);
    (void)unlink(path);
    (void)rmdir(directory);
}

/* The child: holds the lock until the parent goes. */
_Noreturn static void hold(int ready, int end)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char byte = 0;
    if (fcntl(descriptor, F_SETLK, &lock) == 0)
        (void)!write(ready, &byte, 1);
    (void)close(ready);
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

static void start_holder(void)
{
    int ready[2];
    int end[2];
    char byte;
    FUZZ_CHECK(pipe(ready) == 0 && pipe(end) == 0);
    holder = fork();
    FUZZ_CHECK(holder >= 0);
    if (holder == 0) {
        (void)close(ready[0]);
        (void)close(end[1]);
        hold(ready[1], end[0]);
    }
    (void)close(ready[1]);
    (void)close(end[0]);
    leash = end[1];
    FUZZ_CHECK(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
}

static void prepare(void)
{
    if (descriptor >= 0)
        return;
    const char *parent = getenv("TMPDIR");
    (void)snprintf(directory, sizeof directory, "%.40s/weir-fuzz-XXXXXX", parent != NULL ? parent : "/tmp");
    FUZZ_CHECK(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/weir-1-1.live", directory);
    descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    FUZZ_CHECK(descriptor >= 0);
    start_holder();
    FUZZ_CHECK(atexit(tidy_up) == 0);
}

static void put(const void *bytes, size_t size)
{
    FUZZ_CHECK(ftruncate(descriptor, 0) == 0);
    FUZZ_CHECK(pwrite(descriptor, bytes, size, 0) == (ssize_t)size);
}

/* ---- a good file ---- */

static void fill_in_record(struct weir__record *record)
{
    memset(record, 0, sizeof *record);
    record->id = 1;
    record->pid = 1;
    record->time_ns = 1000000000;
    (void)snprintf(record->name, sizeof record->name, "good");
    (void)snprintf(record->phase, sizeof record->phase, "steady");
    (void)snprintf(record->reason, sizeof record->reason, "knee");
    (void)snprintf(record->algorithm, sizeof record->algorithm, "vegas2");
    (void)snprintf(record->mode, sizeof record->mode, "enforce");
    for (unsigned i = 0; i < WEIR__FIGURES; i++)
        record->figures[i] = 10 + i;
    for (unsigned i = 0; i < 3; i++)
        record->histograms[i] = (struct weir__record_histogram){.count = 10, .sum_ns = 10000, .max_ns = 2000};
    record->partition_count = 2;
    (void)snprintf(record->partitions[1].name, sizeof record->partitions[1].name, "live");
}

/* With room for three partitions, so that an offset of two bytes reaches all of it. */
enum { WORDS = (offsetof(struct weir__record, partitions) + 3 * sizeof(struct weir__record_partition)) / 8 };

static void fill_in(struct weir__live_file *file)
{
    static const char options[] = "MAX_LIMIT\t1000\tdefault\tlive\nMODE\tenforce\tprogram\t\n";
    struct weir__record record;
    fill_in_record(&record);
    memset(file, 0, weir__live_size(WORDS));
    memcpy(file->magic, WEIR__LIVE_MAGIC, sizeof file->magic);
    file->version = WEIR__LIVE_VERSION;
    file->record_size = sizeof record;
    file->figures = WEIR__FIGURES;
    file->pid = 1;
    file->options_size = WEIR__LIVE_OPTIONS;
    file->record_words = WORDS;
    for (int row = 0; row < 2; row++) {
        memcpy((char *)file->records + (size_t)row * WORDS * sizeof(uint64_t), &record, WORDS * sizeof(uint64_t));
        memcpy((char *)file->options[row], options, sizeof options);
    }
}

static void change(unsigned char *bytes, size_t size, struct fuzz_input *input)
{
    while (input->size > 0) {
        size_t offset = (size_t)fuzz_number(input, 2) % size;
        size_t length = (size_t)fuzz_number(input, 1);
        for (size_t i = 0; i < length && offset + i < size && input->size > 0; i++)
            bytes[offset + i] = (unsigned char)fuzz_number(input, 1);
    }
}

/* ---- everything that weirstat does with it ---- */

/* What is written to out between the two is looked at. */
static char *text;
static size_t text_length;

static FILE *listen_in(void)
{
    FILE *out = open_memstream(&text, &text_length);
    FUZZ_CHECK(out != NULL);
    return out;
}

static void look_at(FILE *out, bool is_json)
{
    FUZZ_CHECK(fclose(out) == 0);
    FUZZ_CHECK(strlen(text) == text_length);
    FUZZ_CHECK(fuzz_is_harmless(text, true));
    FUZZ_CHECK(!is_json || json_is_valid(text));
    free(text);
}

static void show(const struct weir__record *now, const struct weir__record *before)
{
    struct history history = {.length = 0};
    FILE *out = listen_in();
    print_table_head(out);
    print_table_row(out, now, NULL);
    print_table_row(out, now, before);
    print_title(out, now);
    history_add(&history, before, NULL);
    history_add(&history, now, before);
    history_add(&history, now, now);
    history_print(out, &history, false);
    look_at(out, false);
}

static void explain_looks(const struct weir__record *first, const struct weir__record *last)
{
    struct weir__record *looks = calloc(LOOKS, sizeof *looks);
    FUZZ_CHECK(looks != NULL);
    for (size_t i = 0; i < LOOKS; i++)
        looks[i] = i % 2 == 0 ? *first : *last;
    looks[LOOKS - 1] = *last;
    struct observation observation = {.looks = looks, .count = LOOKS};
    FILE *out = listen_in();
    FUZZ_CHECK(explain(out, &observation) > 0);
    look_at(out, false);
    free(looks);
}

static void show_options(const struct weir__record *record)
{
    char options[WEIR__LIVE_OPTIONS];
    if (!weir__live_read_options(directory, record, options))
        return;
    FILE *out = listen_in();
    print_options(out, options);
    look_at(out, false);
}

static void use(const struct weir__record *records, size_t count)
{
    struct weir__record *good = malloc(sizeof *good);
    FUZZ_CHECK(good != NULL);
    fill_in_record(good);
    for (size_t i = 0; i < count; i++) {
        show(&records[i], good);
        show(good, &records[i]);
        explain_looks(good, &records[i]);
        explain_looks(&records[i], good);
        explain_looks(&records[i], &records[i]);
        show_options(&records[i]);
    }
    free(good);
    FILE *out = listen_in();
    FUZZ_CHECK(weir__records_write(out, WEIR_JSON, records, count) == 0);
    look_at(out, true);
    out = listen_in();
    FUZZ_CHECK(weir__records_write(out, WEIR_PROMETHEUS, records, count) == 0);
    look_at(out, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct weir__record *records = NULL;
    size_t count = 0;
    unsigned odd = 0;
    prepare();
    if (fuzz_number(&input, 1) % 2 != 0) {
        put(input.data, input.size);
    } else {
        struct weir__live_file *file = malloc(weir__live_size(WORDS));
        FUZZ_CHECK(file != NULL);
        fill_in(file);
        change((unsigned char *)file, weir__live_size(WORDS), &input);
        put(file, weir__live_size(WORDS));
        free(file);
    }
    FUZZ_CHECK(weir__live_read(directory, &records, &count, &odd) == 0);
    FUZZ_CHECK(count + odd == 1);
    use(records, count);
    free(records);
    return 0;
}
