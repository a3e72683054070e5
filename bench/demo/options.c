/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include <getopt.h>
#include <string.h>

#include "demo.h"

/* The load stays the same throughout: 0.7 of the healthy server's capacity (20 handlers of 20 ms: 1000/s), and 1.4
 * times what is left when half the handlers are gone or each takes twice as long. */
#define DEFAULT_RATE       700.0
#define DEFAULT_DURATION_S 55.0
#define DEFAULT_FIXED      64u

static const struct plan own_plan = {
    .own_server = true,
    .phase_count = 5,
    .phases =
        {
            {"healthy", 20, 20000, 8, false},
            {"capacity halved", 10, 20000, 13, true},
            {"recovered", 20, 20000, 11, false},
            {"service time doubled", 20, 40000, 13, false},
            {"recovered again", 20, 20000, 10, false},
        },
};
static const struct plan url_plan = {.own_server = false, .phase_count = 1, .phases = {{"load", 0, 0, 1, false}}};

static const char usage_text[] =
    "Usage: demo [OPTION]...\n"
    "Sends an open-loop load of HTTP requests through an adaptive pool, then the same load\n"
    "through a fixed one, while the server behind them loses half its capacity, becomes slow\n"
    "and recovers; compares the two.\n"
    "\n"
    "  --url URL         load this server (http://host[:port][/path]) instead of the demo's own;\n"
    "                    it is left as it is\n"
    "  --rate N          requests per second (default 700)\n"
    "  --duration S      seconds of each of the two runs (default 55)\n"
    "  --algorithm NAME  of the adaptive pool: vegas2 (default), gradient2, vegas, aimd, fixed\n"
    "  --fixed N         threads of the pool to compare with (default 64)\n"
    "  --output DIR      where weir-demo.png and its data go (default: the current directory)\n"
    "  --check           exit with 3 if the adaptive pool does not do what the verdict lists\n"
    "  --help            this text\n"
    "\n"
    "The adaptive pool is called \"adaptive\" and reads the environment: for instance\n"
    "WEIR_MAX_LIMIT__ADAPTIVE=200.\n"
    "Exit status: 0 done, 1 the run failed, 2 bad arguments, 3 see --check, 130 interrupted.\n";

/* Splits host[:port] or [v6][:port], length bytes long. */
static bool parse_authority(struct url *url, const char *text, size_t length)
{
    const char *end = text + length;
    const char *host = text;
    const char *host_end;
    if (*text == '[') {
        host = text + 1;
        host_end = memchr(host, ']', (size_t)(end - host));
        if (host_end == NULL)
            return false;
        text = host_end + 1;
    } else {
        host_end = memchr(text, ':', length);
        if (host_end == NULL)
            host_end = end;
        text = host_end;
    }
    size_t host_size = (size_t)(host_end - host);
    if (host_size == 0 || host_size >= sizeof url->host || memchr(host, '@', host_size) != NULL)
        return false;
    memcpy(url->host, host, host_size);
    url->host[host_size] = '\0';
    strcpy(url->port, "80");
    if (text == end)
        return true;
    size_t port_size = (size_t)(end - text) - 1;
    if (*text != ':' || port_size == 0 || port_size > 5)
        return false;
    memcpy(url->port, text + 1, port_size);
    url->port[port_size] = '\0';
    double port;
    return strspn(url->port, "0123456789") == port_size && option_number(url->port, 1, 65535, &port);
}

static bool parse_url(struct url *url, const char *text)
{
    static const char scheme[] = "http://";
    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return false;
    for (const char *c = text; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    text += sizeof scheme - 1;
    size_t length = strcspn(text, "/?#");
    if (!parse_authority(url, text, length))
        return false;
    text += length;
    size_t path_size = strcspn(text, "#");
    const char *slash = *text == '/' ? "" : "/";
    if (path_size + 2 > sizeof url->path)
        return false;
    snprintf(url->path, sizeof url->path, "%s%.*s", slash, (int)path_size, text);
    return true;
}

static bool known_algorithm(const char *name)
{
    weir_config config;
    weir_config_init(&config);
    return strcmp(name, "default") == 0 || weir_config_set(&config, "ALGORITHM", name) == 0;
}

static enum options_result parse_one(struct options *options, int option, const char *value)
{
    switch (option) {
    case 'u':
        if (!parse_url(&options->url, value))
            return option_refuse("--url", value, "of the form http://host[:port][/path]");
        options->plan = url_plan;
        return OPTIONS_RUN;
    case 'r':
        if (!option_number(value, 1, 100000, &options->rate))
            return option_refuse("--rate", value, "a number of requests per second from 1 to 100000");
        return OPTIONS_RUN;
    case 'd':
        if (!option_number(value, 5, 86400, &options->duration_s))
            return option_refuse("--duration", value, "a number of seconds from 5 to 86400");
        return OPTIONS_RUN;
    case 'a':
        if (!known_algorithm(value))
            return option_refuse("--algorithm", value, "vegas2, gradient2, vegas, aimd or fixed");
        options->algorithm = value;
        return OPTIONS_RUN;
    case 'f':
        if (!option_whole(value, 1, 10000, &options->fixed))
            return option_refuse("--fixed", value, "a whole number of threads from 1 to 10000");
        return OPTIONS_RUN;
    case 'o':
        if (*value == '\0')
            return option_refuse("--output", value, "a directory");
        options->output = value;
        return OPTIONS_RUN;
    case 'c':
        options->check = true;
        return OPTIONS_RUN;
    case 'h':
        fputs(usage_text, stdout);
        return OPTIONS_HELP;
    default:
        fputs("demo: --help lists the options\n", stderr);
        return OPTIONS_BAD;
    }
}

enum options_result options_parse(struct options *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"url", required_argument, NULL, 'u'},
        {"rate", required_argument, NULL, 'r'},
        {"duration", required_argument, NULL, 'd'},
        {"algorithm", required_argument, NULL, 'a'},
        {"fixed", required_argument, NULL, 'f'},
        {"output", required_argument, NULL, 'o'},
        {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){
        .plan = own_plan,
        .rate = DEFAULT_RATE,
        .duration_s = DEFAULT_DURATION_S,
        .fixed = DEFAULT_FIXED,
        .output = ".",
    };
    int option;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        enum options_result result = parse_one(options, option, optarg);
        if (result != OPTIONS_RUN)
            return result;
    }
    if (optind < argc) {
        fprintf(stderr, "demo: unexpected argument \"%s\"; --help lists the options\n", argv[optind]);
        return OPTIONS_BAD;
    }
    if (options->check && !options->plan.own_server) {
        fputs("demo: --check judges the phases of the demo's own server, so it does not go with --url\n", stderr);
        return OPTIONS_BAD;
    }
    return OPTIONS_RUN;
}

double plan_start_s(const struct plan *plan, size_t phase, double duration_s)
{
    double before = 0;
    double sum = 0;
    for (size_t i = 0; i < plan->phase_count; i++) {
        if (i < phase)
            before += plan->phases[i].weight;
        sum += plan->phases[i].weight;
    }
    return duration_s * before / sum;
}
