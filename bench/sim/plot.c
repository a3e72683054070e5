/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdlib.h>

static FILE *open_in(const char *directory, const char *name, const char *suffix)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s%s", directory, name, suffix) >= (int)sizeof path)
        return NULL;
    return fopen(path, "w");
}

static bool write_points(const char *directory, const char *name, const struct sim_trace *trace)
{
    FILE *csv = open_in(directory, name, ".csv");
    if (csv == NULL)
        return false;
    (void)fprintf(csv, "seconds,limit,optimum,in_flight,rtt_ms,queue\n");
    for (size_t i = 0; i < trace->count; i++) {
        const struct sim_point *p = &trace->points[i];
        (void)fprintf(csv, "%.4f,%.0f,%.1f,%.0f,%.4f,%.0f\n", p->at, p->limit, p->optimum, p->in_flight, p->rtt * 1e3,
                      p->queue);
    }
    return fclose(csv) == 0;
}

static const char template[] =
    "set datafile separator ','\n"
    "set grid\n"
    "set yrange [0:*]\n"
    "set key outside right top\n"
    "do for [format in 'png svg'] {\n"
    "if (format eq 'png') { set terminal pngcairo size 1200,900 } else { set terminal svg size 1200,900 dynamic }\n"
    "set output directory.'/'.name.'.'.format\n"
    "set multiplot layout 3,1 title caption\n"
    "set lmargin 10\n"
    "set rmargin 18\n"
    "set ylabel 'permits'\n"
    "plot file using 1:4 skip 1 with lines lc rgb '#c0c0c0' title 'in flight', "
    "file using 1:2 skip 1 with lines lc rgb '#1f77b4' title 'limit', "
    "file using 1:3 skip 1 with lines lw 2 dt 2 lc rgb '#2ca02c' title 'optimum'\n"
    "set ylabel 'RTT, ms'\n"
    "plot file using 1:5 skip 1 with lines lc rgb '#d62728' title 'RTT'\n"
    "set ylabel 'jobs'\n"
    "set xlabel 'seconds'\n"
    "plot file using 1:6 skip 1 with lines lc rgb '#9467bd' title 'queue', 1 with lines lc rgb '#ffffff' notitle\n"
    "unset multiplot\n"
    "unset xlabel\n"
    "unset output\n"
    "}\n";

bool sim_plot(const char *directory, const struct sim_scenario *scenario, const struct sim_controller *controller,
              const struct sim_trace *trace)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s-%s", scenario->id, controller->name);
    if (!write_points(directory, name, trace))
        return false;
    FILE *gnuplot = popen("gnuplot", "w");
    if (gnuplot == NULL)
        return false;
    (void)fprintf(gnuplot, "directory = '%s'\nname = '%s'\nfile = '%s/%s.csv'\ncaption = '%s: %s, %s'\n%s", directory,
                  name, directory, name, scenario->id, scenario->title, controller->title, template);
    return pclose(gnuplot) == 0;
}

bool sim_plot_index(const char *directory, const struct sim_scenario *const *scenarios, size_t scenarios_count,
                    const struct sim_controller *const *controllers, size_t controllers_count)
{
    FILE *page = open_in(directory, "index", ".html");
    if (page == NULL)
        return false;
    (void)fprintf(page,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>weir: scenarios</title>\n"
                  "<style>body{font-family:sans-serif} img{width:32em;max-width:100%%}</style>\n"
                  "<h1>Limits in simulated scenarios</h1>\n");
    for (size_t i = 0; i < scenarios_count; i++) {
        (void)fprintf(page, "<h2>%s: %s</h2>\n", scenarios[i]->id, scenarios[i]->title);
        for (size_t k = 0; k < controllers_count; k++) {
            char name[128];
            (void)snprintf(name, sizeof name, "%s-%s", scenarios[i]->id, controllers[k]->name);
            (void)fprintf(page, "<a href=\"%s.svg\"><img src=\"%s.png\" alt=\"%s\" loading=\"lazy\"></a>\n", name, name,
                          controllers[k]->title);
        }
    }
    (void)fprintf(page, "</html>\n");
    return fclose(page) == 0;
}
