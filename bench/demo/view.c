/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The live view: a block of lines drawn over itself on a terminal, else one line a second. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "demo.h"

#define WIDTH       50 /* columns of a curve: the whole run */
#define ROWS_NEEDED 12

#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define NO_WRAP     "\033[?7l"
#define WRAP        "\033[?7h"
#define ERASE_LINE  "\033[K"
#define ERASE_BELOW "\033[J"
#define BOLD        "\033[1m"
#define CYAN        "\033[36m"
#define PLAIN       "\033[0m"

static struct view {
    pthread_mutex_t mutex; /* guards all below, and the terminal against log lines */
    bool open;
    bool live;
    bool color;
    bool unicode;
    int lines; /* drawn and to be drawn over */
} view = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct curve {
    const char *name;
    int decimals;
    const char *unit;
    double (*value)(const struct reading *reading);
};

static double value_limit(const struct reading *reading)
{
    return reading->limit;
}
static double value_in_flight(const struct reading *reading)
{
    return reading->in_flight;
}
static double value_queued(const struct reading *reading)
{
    return reading->queued;
}
static double value_completed(const struct reading *reading)
{
    return reading->completed_per_s;
}
static double value_shed(const struct reading *reading)
{
    return reading->shed_per_s;
}
static double value_p50(const struct reading *reading)
{
    return reading->p50_ms;
}
static double value_p99(const struct reading *reading)
{
    return reading->p99_ms;
}

static const struct curve curves[] = {
    {"limit", 0, "", value_limit},           {"in flight", 0, "", value_in_flight}, {"queued", 0, "", value_queued},
    {"completed", 0, "/s", value_completed}, {"RTT p50", 1, "ms", value_p50},       {"RTT p99", 1, "ms", value_p99},
    {"shed", 0, "/s", value_shed},
};

static const char *style(const char *code)
{
    return view.color ? code : "";
}

static void next_line(void)
{
    fputs(ERASE_LINE "\n", stdout);
    view.lines++;
}

/* The mean of the readings of each column; one without readings, in a short run, repeats its neighbour. The number of
 * columns that the run has reached. */
static int average_columns(const struct curve *curve, const struct run *run, const struct result *result,
                           double average[static WIDTH])
{
    unsigned count[WIDTH] = {0};
    int reached = 0;
    for (size_t i = 0; i < result->reading_count; i++) {
        int column = (int)(result->readings[i].at_s / run->options->duration_s * WIDTH);
        if (column >= WIDTH)
            column = WIDTH - 1;
        average[column] += curve->value(&result->readings[i]);
        count[column]++;
        reached = column + 1;
    }
    for (int i = 0; i < reached; i++) {
        if (count[i] > 0)
            average[i] /= count[i];
        else if (i > 0)
            average[i] = average[i - 1];
    }
    return reached;
}

/* On a scale from 0 to the greatest. */
static void draw_curve(const struct curve *curve, const struct run *run, const struct result *result)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", "_", ".", "-", "=", "+", "*", "%", "#"};
    const char *const *levels = view.unicode ? blocks : letters;
    double average[WIDTH] = {0};
    int reached = average_columns(curve, run, result, average);
    double top = 0;
    for (int i = 0; i < reached; i++)
        if (average[i] > top)
            top = average[i];
    for (int i = 0; i < WIDTH; i++)
        fputs(levels[average[i] > 0 ? 1 + (int)(average[i] / top * 7 + 0.5) : 0], stdout);
}

static void describe_phase(const struct run *run, size_t index, char *text, size_t size)
{
    const struct phase *phase = &run->options->plan.phases[index];
    if (run->options->plan.own_server)
        snprintf(text, size, "%s: %u handlers of %u ms = %.0f/s; the load is %.0f/s", phase->name, phase->handlers,
                 phase->service_us / 1000, phase->handlers * 1e6 / phase->service_us, run->options->rate);
    else
        snprintf(text, size, "the load is %.0f/s", run->options->rate);
}

static void draw(const struct run *run, const struct result *result)
{
    const struct reading *last = &result->readings[result->reading_count - 1];
    if (view.lines > 0)
        printf("\033[%dA\r", view.lines);
    view.lines = 0;
    next_line();
    char text[160];
    snprintf(text, sizeof text, "run %u of 2: %s pool (%s)", run->number, run->label, run->algorithm);
    printf(" %s%-60s%s%8.1f of %.0f s", style(BOLD), text, style(PLAIN), last->at_s, run->options->duration_s);
    next_line();
    describe_phase(run, last->phase, text, sizeof text);
    printf(" %s", text);
    next_line();
    next_line();
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        printf(" %-10s%7.*f %-4s", curves[i].name, curves[i].decimals, curves[i].value(last), curves[i].unit);
        printf("%s%s", view.unicode ? "▕" : "|", style(CYAN));
        draw_curve(&curves[i], run, result);
        printf("%s%s", style(PLAIN), view.unicode ? "▏" : "|");
        next_line();
    }
    fflush(stdout);
}

static void print_line(const struct run *run, const struct result *result)
{
    static const char format[] = "%5.0f s %-21s%5u %8u %7u %8.0f %7.1f %7.1f %7.0f\n";
    const struct reading *last = &result->readings[result->reading_count - 1];
    printf(format, last->at_s, run->options->plan.phases[last->phase].name, last->limit, last->in_flight, last->queued,
           last->completed_per_s, last->p50_ms, last->p99_ms, last->shed_per_s);
    fflush(stdout);
}

/* Log lines of the library appear above the block. Called by any thread. */
static void show_log(weir_log_level level, const char *message, void *unused)
{
    (void)level;
    (void)unused;
    pthread_mutex_lock(&view.mutex);
    if (view.open && view.live && view.lines > 0)
        printf("\033[%dA\r" ERASE_BELOW, view.lines);
    view.lines = 0;
    fflush(stdout);
    fprintf(stderr, "%s\n", message);
    pthread_mutex_unlock(&view.mutex);
}

static bool terminal_will_do(void)
{
    const char *term = getenv("TERM");
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || term == NULL || *term == '\0' || strcmp(term, "dumb") == 0)
        return false;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_row > ROWS_NEEDED;
}

void view_begin(const struct run *run)
{
    const char *no_color = getenv("NO_COLOR");
    pthread_mutex_lock(&view.mutex);
    setlocale(LC_CTYPE, "");
    view.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    view.live = terminal_will_do();
    view.color = no_color == NULL || *no_color == '\0';
    view.lines = 0;
    view.open = true;
    if (view.live) {
        fputs(HIDE_CURSOR NO_WRAP, stdout);
    } else {
        printf("\nRun %u of 2: %s pool (%s), %.0f requests/s for %.0f s\n", run->number, run->label, run->algorithm,
               run->options->rate, run->options->duration_s);
        puts("   time phase                limit in flight queued   done/s  p50 ms  p99 ms  shed/s");
    }
    fflush(stdout);
    pthread_mutex_unlock(&view.mutex);
    weir_set_log(show_log, NULL);
}

void view_show(const struct run *run, const struct result *result)
{
    pthread_mutex_lock(&view.mutex);
    if (view.live)
        draw(run, result);
    else if (result->reading_count % TICKS_PER_S == 0)
        print_line(run, result);
    pthread_mutex_unlock(&view.mutex);
}

void view_end(void)
{
    pthread_mutex_lock(&view.mutex);
    if (view.open && view.live) {
        fputs(SHOW_CURSOR WRAP, stdout);
        fflush(stdout);
    }
    view.open = false;
    pthread_mutex_unlock(&view.mutex);
}
