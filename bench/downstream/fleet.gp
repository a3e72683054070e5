# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
# Draws what bench/downstream/fleet.c wrote: gnuplot -e "directory='...'" fleet.gp

file(run) = sprintf("%s/downstream-fleet-%s.dat", directory, run)
set border 3 linecolor rgb "#666666"
set tics nomirror out
set grid ytics linecolor rgb "#dddddd"
set key outside right center samplen 1.5
set yrange [0:*]
do for [kind in "png svg"] {
    if (kind eq "png") {
        if (strstrt(GPVAL_TERMINALS, "pngcairo") > 0) {
            set terminal pngcairo size 1200,700 font "sans,10" background "white"
        } else {
            set terminal png size 1200,700
        }
    } else {
        set terminal svg size 1200,700 font "sans,10" background "white"
    }
    set output sprintf("%s/downstream-fleet.%s", directory, kind)
    set multiplot layout 2,1 title "processes before one PostgreSQL"
    set ylabel "sum in flight"
    set xlabel ""
    plot for [run in "8-on 8-off 32-on 32-off"] file(run) using 1:2 with lines title "drain: " . run
    set ylabel "greatest and least limit"
    set xlabel "seconds"
    plot for [run in "8-on 32-on"] file(run) using 1:4 with lines title "greatest: " . run, \
         for [run in "8-on 32-on"] file(run) using 1:3 with lines title "least: " . run
    unset multiplot
}
