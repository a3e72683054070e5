/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A computation of some milliseconds, before the processors of this machine: the right number of threads is that of
 * the processors, and with a quota less. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "downstream.h"

enum { QUIET, NEIGHBOUR, QUOTA };

#define WORK_NS   (4 * NS_PER_MS)
#define PERIOD_US 20000 /* of the quota; short, so that a call meets no more than one pause or two */

static pid_t neighbour;
static size_t current;
static uint64_t turns = 1000000; /* of the loop, for WORK_NS */

/* The group with a quota, "" if there is none, and where this process was before. */
static char group[256];
static char group_before[512];
static bool unified;

static uint64_t compute(uint64_t seed, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static enum ending call(uint64_t random)
{
    static _Atomic uint64_t sink;
    atomic_fetch_xor(&sink, compute(random | 1, turns));
    return ENDED_WELL;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void calibrate(void)
{
    uint64_t before = cpu_ns();
    call(1);
    turns = turns * WORK_NS / (cpu_ns() - before);
}

static bool write_text(const char *directory, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    bool well = fputs(text, file) >= 0;
    return fclose(file) == 0 && well;
}

static bool move_to(const char *directory)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)getpid());
    return write_text(directory, "cgroup.procs", number);
}

/* Half of the processors. */
static bool set_quota(bool on)
{
    char text[64];
    long quota = sysconf(_SC_NPROCESSORS_ONLN) * PERIOD_US / 2;
    if (unified) {
        if (on)
            snprintf(text, sizeof text, "%ld %d", quota, PERIOD_US);
        else
            snprintf(text, sizeof text, "max %d", PERIOD_US);
        return write_text(group, "cpu.max", text);
    }
    snprintf(text, sizeof text, "%d", PERIOD_US);
    if (!write_text(group, "cpu.cfs_period_us", text))
        return false;
    snprintf(text, sizeof text, "%ld", on ? quota : -1L);
    return write_text(group, "cpu.cfs_quota_us", text);
}

/* Where this process is in the hierarchy mounted at root, whose lines in /proc/self/cgroup have this prefix. */
static bool find_group(const char *root, const char *prefix)
{
    char line[256];
    FILE *file = fopen("/proc/self/cgroup", "r");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *rest = strchr(line, ':');
        found = rest != NULL && strncmp(rest + 1, prefix, strlen(prefix)) == 0;
        line[strcspn(line, "\n")] = '\0';
        if (found)
            snprintf(group_before, sizeof group_before, "%s%s", root, rest + 1 + strlen(prefix));
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static bool make_group(void)
{
    unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    if (!(unified ? find_group("/sys/fs/cgroup", ":/") : find_group("/sys/fs/cgroup/cpu", "cpu:/")) &&
        (unified || !find_group("/sys/fs/cgroup/cpu", "cpu,cpuacct:/")))
        return false;
    snprintf(group, sizeof group, "%s/weir-bench-%d", unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", (int)getpid());
    if (mkdir(group, 0755) == 0 && set_quota(false) && move_to(group))
        return true;
    rmdir(group);
    group[0] = '\0';
    return false;
}

static int start(const struct place *place)
{
    (void)place;
    calibrate();
    part_cpu.phases[QUOTA].absent = !make_group();
    if (part_cpu.phases[QUOTA].absent)
        printf("cpu: without the phase of the quota: no group with one can be made here (that needs root)\n");
    return 0;
}

/* A process for each second processor that never rests. */
static int neighbours_come(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    neighbour = fork();
    if (neighbour < 0)
        return bench_complain("cpu", strerror(errno));
    if (neighbour > 0)
        return 0;
    setpgid(0, 0);
    signal(SIGTERM, SIG_DFL);
    for (long i = 1; i < processors / 2; i++)
        if (fork() == 0)
            break;
    pid_t parent = getppid();
    while (getppid() == parent)
        call(1);
    _exit(0);
}

static int enter(size_t phase)
{
    if (phase == current)
        return 0;
    if (current == NEIGHBOUR && neighbour > 0) {
        kill(-neighbour, SIGKILL);
        process_stop(&neighbour, SIGKILL);
    }
    if (current == QUOTA)
        set_quota(false);
    current = phase;
    if (phase == NEIGHBOUR)
        return neighbours_come();
    return phase == QUOTA && !set_quota(true) ? bench_complain(group, strerror(errno)) : 0;
}

static void stop(void)
{
    enter(QUIET);
    if (group[0] == '\0')
        return;
    move_to(group_before);
    for (int i = 0; i < 100 && rmdir(group) != 0 && errno == EBUSY; i++)
        sleep_until(weir_after_ns(10 * NS_PER_MS));
    group[0] = '\0';
}

struct part part_cpu = {
    .name = "cpu",
    .title = "a computation of 4 ms, the processors of this machine",
    .widest = 256,
    .seconds = 6,
    .phase_count = 3,
    .phases =
        {
            [QUIET] = {.name = "quiet"},
            [NEIGHBOUR] = {.name = "a busy process for half the processors"},
            [QUOTA] = {.name = "cgroup quota of half"},
        },
    .start = start,
    .enter = enter,
    .stop = stop,
    .call = call,
};
