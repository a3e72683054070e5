# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
# Draws what bench/peers/peers wrote: gnuplot -e "directory='...'; peers='...'" peers.gp

file(name) = sprintf("%s/peers-%s.dat", directory, name)
count = words(peers)
set grid
set logscale x 2

do for [kind in "png svg"] {
    if (kind eq "png") { set terminal pngcairo size 1000,600 } else { set terminal svg size 1000,600 }
    set key outside right top
    set xlabel "threads"
    set output sprintf("%s/peers-throughput.%s", directory, kind)
    set title "No-op jobs, one producer"
    set ylabel "jobs per second"
    set logscale y
    plot for [i=1:count] file("width") using 1:(column(2*i)) with linespoints lw (i > count-2 ? 3 : 1) title word(peers, i)
    set output sprintf("%s/peers-cpu.%s", directory, kind)
    set ylabel "CPU time per job, ns"
    plot for [i=1:count] file("width") using 1:(column(2*i+1)) with linespoints lw (i > count-2 ? 3 : 1) title word(peers, i)
    set output sprintf("%s/peers-scale.%s", directory, kind)
    set title "How weir's cost grows"
    set xlabel "number"
    set ylabel "time per job, ns"
    plot for [d in "workers producers queued pools"] \
        file("scale") using (strcol(1) eq d ? $2 : NaN):3 with linespoints lw 2 title d
    unset logscale x
    set output sprintf("%s/peers-latency.%s", directory, kind)
    set title "Submit and wait: p10 to p90 (box), p99 (line), median (cross)"
    set xlabel "" 
    set ylabel "microseconds"
    set boxwidth 0.09
    set xrange [-0.5:5.5]
    set xtics ("hot, 1" 0, "hot, 4" 1, "hot, 64" 2, "idle, 1" 3, "idle, 4" 4, "idle, 64" 5)
    names = peers . " raw"
    plot for [i=1:count+1] file("latency") \
        using (strcol(2) eq word(names, i) ? $3 + (i - (count + 2) / 2.0) * 0.1 : NaN):5:5:7:6 with candlesticks \
        fs solid 0.4 title word(names, i), \
        for [i=1:count+1] file("latency") \
        using (strcol(2) eq word(names, i) ? $3 + (i - (count + 2) / 2.0) * 0.1 : NaN):4 with points pt 2 ps 0.5 lc black notitle
    set logscale x 2
    unset xrange
    set xtics auto
}
