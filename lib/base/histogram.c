/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "base/histogram.h"

#include "base/base.h"

void weir__histograms_add_job(struct weir__histograms *histograms, uint64_t stamp, uint64_t start_ns, uint64_t end_ns)
{
    unsigned count = weir__stamp_count(stamp);
    if (count == 0)
        return;
    weir__histogram_add(&histograms->wait, weir__stamp_age_ns(stamp, start_ns), count);
    weir__histogram_add(&histograms->rtt, end_ns - start_ns, count);
    weir__histogram_add(&histograms->end_to_end, weir__stamp_age_ns(stamp, end_ns), count);
}
