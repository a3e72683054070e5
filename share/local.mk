# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# A Grafana dashboard for the metrics of weir_stats_write.
dist_pkgdata_DATA = share/weir-grafana.json
