/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

const struct peer *const peers[] = {
    &peer_textbook,
#ifdef WITH_THPOOL
    &peer_thpool,
#endif
#ifdef WITH_GLIB
    &peer_glib,
#endif
#ifdef WITH_UV
    &peer_uv,
#endif
#ifdef WITH_APR
    &peer_apr,
#endif
#ifdef WITH_OPENMP
    &peer_openmp,
#endif
    &peer_raw,      &peer_weir_fixed, &peer_weir, NULL,
};

const char *const missing_peers[] = {
#ifndef WITH_THPOOL
    "thpool (Debian: cthreadpool-dev)",
#endif
#ifndef WITH_GLIB
    "glib (Debian: libglib2.0-dev)",
#endif
#ifndef WITH_UV
    "libuv (Debian: libuv1-dev)",
#endif
#ifndef WITH_APR
    "apr (Debian: libaprutil1-dev)",
#endif
#ifndef WITH_OPENMP
    "openmp (the compiler's -fopenmp)",
#endif
    NULL,
};
