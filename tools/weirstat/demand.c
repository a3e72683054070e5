/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "weirstat.h"

static void print_demand(FILE *out, const struct weir__record *record)
{
    char rate[NUMBER_SIZE];
    uint64_t arrivals = record->figures[WEIR__FIGURE_ARRIVAL_RATE];
    if (record->kind != WEIR__RECORD_POOL)
        return;
    (void)fprintf(out, "  arrivals %s/s, burstiness %.2f, depth by \"%s\"\n",
                  arrivals != 0 ? format_count((double)arrivals / 1e6, rate) : "-",
                  (double)record->figures[WEIR__FIGURE_BURSTINESS] / 1e6, record->depth_term);
}

static void print_partition(FILE *out, const struct weir__record_partition *partition)
{
    char text[6][NUMBER_SIZE];
    char name[17];
    (void)fprintf(out, "  %-16s %5.1f%% %6s %6s %6s %7s %7s %6s\n",
                  partition->name[0] != '\0' ? format_name(partition->name, sizeof name - 1, name) : "(none)",
                  (double)partition->figures[WEIR__PARTITION_SHARE] / 1e4,
                  format_count((double)partition->figures[WEIR__PARTITION_IN_USE], text[0]),
                  format_count((double)partition->figures[WEIR__PARTITION_QUEUED], text[1]),
                  format_count((double)partition->figures[WEIR__PARTITION_WAITING], text[2]),
                  format_ns(partition->histograms[WEIR_HISTOGRAM_WAIT].quantile_ns[2], text[3]),
                  format_ns(partition->histograms[WEIR_HISTOGRAM_RTT].quantile_ns[2], text[4]),
                  format_count((double)partition->figures[WEIR__PARTITION_SHED], text[5]));
}

void print_details(FILE *out, const struct weir__record *record)
{
    print_demand(out, record);
    if (record->partition_count == 0)
        return;
    (void)fprintf(out, "  %-16s %6s %6s %6s %6s %7s %7s %6s\n", "PARTITION", "SHARE", "INFL", "QUEUED", "BLKD",
                  "WAIT99", "RTT99", "SHED");
    for (uint32_t i = 0; i < record->partition_count; i++)
        print_partition(out, &record->partitions[i]);
}
