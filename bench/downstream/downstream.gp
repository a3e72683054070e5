# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
# Draws what bench/downstream/downstream wrote: gnuplot -e "directory='...'; part='...'; duration=...; best=...;
# starts='...'; names='...'; pools='...'" downstream.gp. Columns of the data files are named in their first lines.

file(pool) = sprintf("%s/downstream-%s-%s.dat", directory, part, pool)
title_of(pool) = pool eq "best" ? sprintf("best: %d threads", best) : strstrt("0123456789", pool[1:1]) > 0 ? pool . " threads" : pool
width_of(pool) = pool eq "vegas2" || pool eq "best" ? 2 : 1

set style line 9 linecolor rgb "#999999" linewidth 0.8 dashtype 2
set border 3 linecolor rgb "#666666"
set tics nomirror out
set grid ytics linecolor rgb "#dddddd"
set key outside right center samplen 1.5 spacing 1.2 width -2
set xrange [-0.08 * duration:duration]
do for [i = 1:words(starts)] {
    start = real(word(starts, i))
    set arrow i from first start, graph 0 to first start, graph 1 nohead linestyle 9
}

do for [kind in "png svg"] {
    if (kind eq "png") {
        if (strstrt(GPVAL_TERMINALS, "pngcairo") > 0) {
            set terminal pngcairo size 1300,1000 noenhanced font "sans,10" background "white"
        } else {
            set terminal png size 1300,1000 noenhanced
        }
    } else {
        set terminal svg size 1300,1000 noenhanced font "sans,10" background "white"
    }
    set output sprintf("%s/downstream-%s.%s", directory, part, kind)
    set multiplot layout 3,1 title part margins 0.07,0.86,0.06,0.93 spacing 0.05
    set format x ""
    set xlabel ""
    do for [i = 1:words(starts)] {
        set label i word(names, i) at first real(word(starts, i)) + 0.005 * duration, graph 1.05 font ",9"
    }
    set logscale y
    set ylabel "in flight"
    set yrange [1:*]
    plot for [pool in pools] file(pool) using 1:($3 > 0 ? $3 : NaN) with lines linewidth width_of(pool) title title_of(pool)
    do for [i = 1:words(starts)] {
        unset label i
    }
    set ylabel "RTT p99, ms"
    set yrange [*:*]
    plot for [pool in pools] file(pool) using 1:($9 > 0 ? $9 : NaN) with lines linewidth width_of(pool) title title_of(pool)
    unset logscale y
    set format x "%g"
    set xlabel "seconds"
    set ylabel "completed per s"
    set yrange [0:*]
    plot for [pool in pools] file(pool) using 1:5 with lines linewidth width_of(pool) title title_of(pool)
    unset multiplot
}
