/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "stats/live_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "limiter/limiter.h"

_Static_assert(sizeof(struct weir__record) % sizeof(uint64_t) == 0, "a record is a row of words");
_Static_assert(WEIR__LIVE_OPTIONS % sizeof(uint64_t) == 0, "so are the options");

/* How often figures are stored while there is work, and how often their histograms are summed up. */
#define STORE_NS   UINT64_C(20000000)
#define SUMMARY_NS UINT64_C(100000000)

struct weir__live {
    struct weir__live_file *file; /* immutable; mapped */
    size_t record_words;          /* immutable */
    int descriptor;               /* immutable; holds the lock */
    int directory;                /* immutable */
    char name[64];                /* immutable */
    struct weir__record record;   /* guarded by the limiter's lock: what was stored last */
    uint64_t stored_ns;           /* guarded by the limiter's lock */
    uint64_t summed_ns;           /* guarded by the limiter's lock */
    uint32_t next_partition;      /* guarded by the limiter's lock: whose histograms are summed up next */
};

/* ---- words ---- */

/* Of a record with so many partitions. */
static size_t words_of(uint32_t partitions)
{
    size_t bytes = offsetof(struct weir__record, partitions) + partitions * sizeof(struct weir__record_partition);
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

/* Makes words the current ones of two rows. */
static void store_words(struct weir__live_turns *turns, _Atomic uint64_t *const rows[2], const void *from, size_t words)
{
    /* relaxed: this is the only writer, and who sees a word below sees begun, too */
    uint64_t next = atomic_load_explicit(&turns->done, memory_order_relaxed) + 1;
    atomic_store_explicit(&turns->begun, next, memory_order_relaxed);
    const unsigned char *bytes = from;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        /* release pairs with the second fence in load: who has read this word reads begun above */
        atomic_store_explicit(&rows[next & 1][i], word, memory_order_release);
    }
    atomic_store_explicit(&turns->done, next, memory_order_release); /* pairs with the first fence in load */
}

void weir__live_store(struct weir__live *live, const struct weir__record *record)
{
    struct weir__live_file *file = live->file;
    _Atomic uint64_t *const rows[2] = {file->records, file->records + live->record_words};
    size_t words = words_of(record->partition_count);
    store_words(&file->record_turns, rows, record, words < live->record_words ? words : live->record_words);
}

void weir__live_store_options(struct weir__live *live, const char *text)
{
    struct weir__live_file *file = live->file;
    _Atomic uint64_t *const rows[2] = {file->options[0], file->options[1]};
    char block[WEIR__LIVE_OPTIONS] = "";
    size_t length = strlen(text);
    memcpy(block, text, length < sizeof block ? length : sizeof block - 1);
    store_words(&file->option_turns, rows, block, sizeof block / sizeof(uint64_t));
}

/* ---- files ---- */

/* weir-<pid>-<id>.live of another process. One of this process must not even be opened: to close it would give up the
 * lock that is held through another descriptor. */
static bool is_others(const char *name)
{
    char rest[8] = "";
    unsigned long pid = 0;
    unsigned long long id = 0;
    return sscanf(name, "weir-%lu-%llu%7s", &pid, &id, rest) == 3 && strcmp(rest, ".live") == 0 &&
           pid != (unsigned long)getpid();
}

/* What place was interrupted at, long ago. */
static bool is_leftover(int directory, const char *name)
{
    enum { LONG_S = 60 };
    static const char ending[] = ".live.new";
    struct stat status;
    size_t length = strlen(name);
    return strncmp(name, ".weir-", 6) == 0 && length > sizeof ending &&
           strcmp(name + length - (sizeof ending - 1), ending) == 0 &&
           fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - status.st_mtime > LONG_S;
}

/* Whether some process holds the lock. */
static bool is_alive(int descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Opens a file that may be a live one of another process; -1: it is none. */
static int open_other(int directory, const char *name)
{
    struct stat status;
    int descriptor = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
        return descriptor;
    (void)close(descriptor);
    return -1;
}

/* Removes it if it is stale; only what belongs to this user, so that root does not touch what it did not write. */
static void sweep_one(int directory, const char *name)
{
    struct stat status;
    int descriptor = open_other(directory, name);
    if (descriptor < 0)
        return;
    if (fstat(descriptor, &status) == 0 && status.st_uid == geteuid() && !is_alive(descriptor))
        (void)unlinkat(directory, name, 0);
    (void)close(descriptor);
}

static void sweep(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    if (stream == NULL) {
        if (copy >= 0)
            (void)close(copy);
        return;
    }
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (is_others(entry->d_name) || is_leftover(directory, entry->d_name))
            sweep_one(directory, entry->d_name);
    }
    (void)closedir(stream);
}

/* Fills in a file that nobody sees yet. 0 or an errno value. */
static int fill(struct weir__live *live)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fchmod(live->descriptor, S_IRUSR | S_IWUSR) != 0)
        return errno;
    int error = posix_fallocate(live->descriptor, 0,
                                (off_t)weir__live_size(live->record_words)); /* a full disk shows here, not later */
    if (error != 0)
        return error;
    if (fcntl(live->descriptor, F_SETLK, &lock) != 0)
        return errno;
    size_t size = weir__live_size(live->record_words);
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, live->descriptor, 0);
    if (mapped == MAP_FAILED)
        return errno;
    live->file = mapped;
    memcpy(live->file->magic, WEIR__LIVE_MAGIC, sizeof live->file->magic);
    live->file->version = WEIR__LIVE_VERSION;
    live->file->record_size = sizeof(struct weir__record);
    live->file->figures = WEIR__FIGURES;
    live->file->pid = (uint32_t)getpid();
    live->file->options_size = WEIR__LIVE_OPTIONS;
    live->file->record_words = (uint32_t)live->record_words;
    return 0;
}

/* Under a name of its own first: a file with the final name is complete and locked. */
static int place(struct weir__live *live)
{
    char hidden[sizeof live->name + 8];
    (void)snprintf(hidden, sizeof hidden, ".%s.new", live->name);
    (void)unlinkat(live->directory, hidden, 0); /* of a process with this number that was killed */
    live->descriptor =
        openat(live->directory, hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (live->descriptor < 0)
        return errno;
    int error = fill(live);
    if (error == 0) {
        sweep_one(live->directory, live->name); /* likewise; of one that is alive the link below says EEXIST */
        if (linkat(live->directory, hidden, live->directory, live->name, 0) != 0)
            error = errno;
    }
    (void)unlinkat(live->directory, hidden, 0);
    return error;
}

static void release(struct weir__live *live)
{
    if (live->file != NULL)
        (void)munmap(live->file, weir__live_size(live->record_words));
    if (live->descriptor >= 0)
        (void)close(live->descriptor);
    if (live->directory >= 0)
        (void)close(live->directory);
    free(live);
}

struct weir__live *weir__live_create(const char *directory, uint64_t id, uint32_t partitions, int *error)
{
    struct weir__live *live = weir__allocate(sizeof *live);
    *error = ENOMEM;
    if (live == NULL)
        return NULL;
    int saved_errno = errno;
    live->descriptor = -1;
    live->record_words = words_of(partitions);
    live->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *error = live->directory >= 0 ? 0 : errno;
    if (*error == 0) {
        sweep(live->directory);
        (void)snprintf(live->name, sizeof live->name, "weir-%lu-%" PRIu64 ".live", (unsigned long)getpid(), id);
        *error = place(live);
    }
    if (*error != 0) {
        release(live);
        live = NULL;
    }
    errno = saved_errno;
    return live;
}

void weir__live_close(struct weir__live *live, bool remove)
{
    if (live == NULL)
        return;
    int saved_errno = errno;
    if (remove)
        (void)unlinkat(live->directory, live->name, 0);
    release(live);
    errno = saved_errno;
}

/* ---- a limiter's ---- */

/* A few at a time, in turn, for there may be 63 of them; all where nobody is about to come soon. */
static void sum_partitions(struct weir__live *live, const weir_limiter *limiter, bool all)
{
    enum { AT_ONCE = 4 };
    uint32_t count = live->record.partition_count;
    for (uint32_t i = 0; i < count && (all || i < AT_ONCE); i++) {
        uint32_t index = live->next_partition++ % count;
        weir__record_summarize_partition(&live->record.partitions[index], limiter->partitions.all[index].histograms);
    }
}

static void store(weir_limiter *limiter, uint64_t now_ns, bool idle)
{
    struct weir__live *live = limiter->live;
    weir__record_take(&live->record, limiter, now_ns);
    live->record.pid = live->file->pid;
    if (now_ns >= live->summed_ns + SUMMARY_NS) {
        const struct weir__histograms *histograms = limiter->histograms;
        weir__record_summarize(&live->record.histograms[WEIR_HISTOGRAM_WAIT], &histograms->wait);
        weir__record_summarize(&live->record.histograms[WEIR_HISTOGRAM_RTT], &histograms->rtt);
        weir__record_summarize(&live->record.histograms[WEIR_HISTOGRAM_END_TO_END], &histograms->end_to_end);
        sum_partitions(live, limiter, idle);
        live->summed_ns = now_ns;
    }
    live->stored_ns = now_ns;
    weir__live_store(live, &live->record);
}

uint64_t weir__live_due_ns(const weir_limiter *limiter)
{
    return limiter->live->stored_ns + STORE_NS;
}

void weir__live_note(weir_limiter *limiter, uint64_t now_ns, bool idle)
{
    if (idle || now_ns >= weir__live_due_ns(limiter))
        store(limiter, now_ns, idle);
}

void weir__live_configured(weir_limiter *limiter, uint64_t now_ns)
{
    char text[WEIR__LIVE_OPTIONS];
    (void)weir__config_render(&limiter->config, text, sizeof text);
    weir__live_store_options(limiter->live, text);
    store(limiter, now_ns, true);
}

void weir__live_attach(weir_limiter *limiter)
{
    const char *directory = limiter->config.stats_dir;
    uint32_t partitions = limiter->partitions.count > 1 ? limiter->partitions.count : 0;
    int error = 0;
    if (directory == NULL)
        return;
    struct weir__live *live = weir__live_create(directory, limiter->fork_lock.id, partitions, &error);
    if (live == NULL) {
        weir__log(limiter->config.log, WEIR_LOG_WARN,
                  "\"%s\": STATS_DIR=\"%s\" cannot be used (error %d, %s); its figures are not published",
                  limiter->name, directory, error, weir_strerror(error));
        return;
    }
    weir__lock(limiter);
    limiter->live = live;
    weir__live_configured(limiter, weir_now_ns());
    weir__unlock(limiter);
}

/* ---- the reader ---- */

/* A file of another process. It is read, not mapped: where somebody cuts it short meanwhile, memory that is mapped
 * would fault. It is not trusted any further than what has been read. */
struct source {
    int descriptor;
    size_t record_words; /* 0: it is of another version */
};

/* False: the file ends before, or cannot be read. */
static bool read_at(const struct source *source, size_t offset, void *to, size_t size)
{
    unsigned char *bytes = to;
    while (size > 0) {
        ssize_t got = pread(source->descriptor, bytes, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        offset += (size_t)got;
        size -= (size_t)got;
    }
    return true;
}

static bool matches(const struct weir__live_file *head, uint64_t size)
{
    return memcmp(head->magic, WEIR__LIVE_MAGIC, sizeof head->magic) == 0 && head->version == WEIR__LIVE_VERSION &&
           head->record_size == sizeof(struct weir__record) && head->figures == WEIR__FIGURES &&
           head->options_size == WEIR__LIVE_OPTIONS && head->record_words >= words_of(0) &&
           head->record_words <= words_of(WEIR__RECORD_PARTITIONS) && size == weir__live_size(head->record_words);
}

static struct source source_of(int descriptor)
{
    struct stat status;
    struct weir__live_file head;
    struct source source = {.descriptor = descriptor};
    if (fstat(descriptor, &status) == 0 && status.st_size >= 0 &&
        read_at(&source, 0, &head, offsetof(struct weir__live_file, record_turns)) &&
        matches(&head, (uint64_t)status.st_size))
        source.record_words = head.record_words;
    return source;
}

/* The current one of two rows of so many words. False: the writer was too fast, or the file ends before. */
static bool load(const struct source *source, size_t turns, size_t rows, void *to, size_t words)
{
    uint64_t done;
    uint64_t begun;
    size_t size = words * sizeof(uint64_t);
    if (!read_at(source, turns + offsetof(struct weir__live_turns, done), &done, sizeof done))
        return false;
    atomic_thread_fence(memory_order_acquire); /* pairs with the release of done in store_words */
    if (!read_at(source, rows + (done & 1) * size, to, size))
        return false;
    atomic_thread_fence(memory_order_acquire); /* pairs with the release of a word in store_words */
    return read_at(source, turns + offsetof(struct weir__live_turns, begun), &begun, sizeof begun) && begun - done < 2;
}

static bool load_record(const struct source *source, struct weir__record *record)
{
    memset(record, 0, sizeof *record);
    return load(source, offsetof(struct weir__live_file, record_turns), offsetof(struct weir__live_file, records),
                record, source->record_words);
}

static bool load_options(const struct source *source, char text[WEIR__LIVE_OPTIONS])
{
    return load(source, offsetof(struct weir__live_file, option_turns), offsetof(struct weir__live_file, options), text,
                WEIR__LIVE_OPTIONS / sizeof(uint64_t));
}

enum { ATTEMPTS = 1000 }; /* to meet a moment between two stores */

static void end_texts(struct weir__record *record)
{
    record->name[sizeof record->name - 1] = '\0';
    record->phase[sizeof record->phase - 1] = '\0';
    record->reason[sizeof record->reason - 1] = '\0';
    record->algorithm[sizeof record->algorithm - 1] = '\0';
    record->mode[sizeof record->mode - 1] = '\0';
    record->depth_term[sizeof record->depth_term - 1] = '\0';
    if (record->partition_count > WEIR__RECORD_PARTITIONS)
        record->partition_count = WEIR__RECORD_PARTITIONS;
    for (uint32_t i = 0; i < record->partition_count; i++)
        record->partitions[i].name[sizeof record->partitions[i].name - 1] = '\0';
}

/* What goes on while nobody stores: on one machine all processes have the same monotonic clock. */
static void grow_older(struct weir__record *record)
{
    uint64_t now_ns = weir_now_ns();
    uint64_t passed_ns = now_ns > record->time_ns ? now_ns - record->time_ns : 0;
    for (unsigned row = 0; row < WEIR__FIGURES; row++) {
        if (weir__figure_rows[row].is_age && record->figures[row] != 0)
            record->figures[row] += passed_ns;
    }
}

/* False: it is of another version, or its writer is always faster. */
static bool read_file(int descriptor, struct weir__record *record)
{
    struct source source = source_of(descriptor);
    bool done = false;
    for (int i = 0; source.record_words != 0 && !done && i < ATTEMPTS; i++)
        done = load_record(&source, record);
    if (done) {
        end_texts(record);
        grow_older(record);
    }
    return done;
}

enum found { FOUND_RECORD, FOUND_ODD, FOUND_NOTHING };

static enum found read_one(int directory, const char *name, struct weir__record *record)
{
    struct stat status;
    enum found found = FOUND_NOTHING;
    int descriptor = open_other(directory, name);
    if (descriptor < 0)
        return FOUND_NOTHING;
    if (!is_alive(descriptor)) {
        if (fstat(descriptor, &status) == 0 && status.st_uid == geteuid())
            (void)unlinkat(directory, name, 0);
    } else {
        found = read_file(descriptor, record) ? FOUND_RECORD : FOUND_ODD;
    }
    (void)close(descriptor);
    return found;
}

bool weir__live_read_options(const char *directory, const struct weir__record *record, char text[WEIR__LIVE_OPTIONS])
{
    char name[64];
    bool done = false;
    int place = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        return false;
    (void)snprintf(name, sizeof name, "weir-%lu-%" PRIu64 ".live", (unsigned long)record->pid, record->id);
    int descriptor = is_others(name) ? open_other(place, name) : -1;
    (void)close(place);
    if (descriptor < 0)
        return false;
    struct source source = source_of(descriptor);
    for (int i = 0; source.record_words != 0 && !done && i < ATTEMPTS; i++)
        done = load_options(&source, text);
    (void)close(descriptor);
    text[WEIR__LIVE_OPTIONS - 1] = '\0';
    return done;
}

static int compare(const void *a, const void *b)
{
    const struct weir__record *x = a;
    const struct weir__record *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int read_entries(DIR *stream, struct weir__record **records, size_t *count, unsigned *odd)
{
    size_t room = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (!is_others(entry->d_name))
            continue;
        if (*count == room) {
            room = room * 2 + 8;
            struct weir__record *grown = realloc(*records, room * sizeof *grown);
            if (grown == NULL)
                return ENOMEM;
            *records = grown;
        }
        enum found found = read_one(dirfd(stream), entry->d_name, &(*records)[*count]);
        *count += found == FOUND_RECORD;
        *odd += found == FOUND_ODD;
    }
    return 0;
}

int weir__live_read(const char *directory, struct weir__record **records, size_t *count, unsigned *odd)
{
    *records = NULL;
    *count = 0;
    *odd = 0;
    DIR *stream = opendir(directory);
    if (stream == NULL)
        return errno;
    int error = read_entries(stream, records, count, odd);
    (void)closedir(stream);
    if (error != 0) {
        free(*records);
        *records = NULL;
        *count = 0;
    } else if (*count > 1) {
        qsort(*records, *count, sizeof **records, compare);
    }
    return error;
}
