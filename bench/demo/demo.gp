# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# gnuplot -e "starts='0 8'; names='\"one\" \"two\"'; duration=45; load=600; fixed=64" -c demo.gp OUT.png ADAPTIVE FIXED
# The columns of the two data files are named in their first lines.

png = ARG1
adaptive = ARG2
other = ARG3
other_name = sprintf("fixed %d", fixed)

if (strstrt(GPVAL_TERMINALS, "pngcairo") > 0) {
    set terminal pngcairo size 1200,1100 font "sans,11" linewidth 1.5 background "white"
} else {
    set terminal png size 1200,1100
}
set output png

set style line 1 linecolor rgb "#0060ad" linewidth 1.6
set style line 2 linecolor rgb "#d95319" linewidth 1.6
set style line 3 linecolor rgb "#7fb2dc" linewidth 1.0
set style line 9 linecolor rgb "#999999" linewidth 0.8 dashtype 2

set border 3 linecolor rgb "#666666"
set tics nomirror out
set grid ytics linecolor rgb "#dddddd"
set key outside right center samplen 1.5 spacing 1.3 width -2
set xrange [0:duration]
do for [i = 2:words(starts)] {
    start = real(word(starts, i))
    set arrow i from first start, graph 0 to first start, graph 1 nohead linestyle 9
}

title = sprintf("%g requests/s through an adaptive pool and through a fixed one of %d threads", load, fixed)
set multiplot layout 4,1 title title font ",13" margins 0.08,0.84,0.06,0.92 spacing 0.05
set format x ""

do for [i = 1:words(starts)] {
    set label i word(names, i) at first real(word(starts, i)) + 0.01 * duration, graph 1.08 font ",11"
}
set ylabel "requests"
set yrange [0:fixed * 1.1 < *]
plot adaptive using 1:2 with steps linestyle 1 title "adaptive: limit", \
     adaptive using 1:3 with lines linestyle 3 title "in flight", \
     other using 1:3 with lines linestyle 2 title other_name . ": in flight"
do for [i = 1:words(starts)] {
    unset label i
}

set ylabel "RTT p99, ms"
set yrange [0:1 < *]
plot adaptive using 1:($8 > 0 ? $8 : NaN) with lines linestyle 1 title "adaptive", \
     other using 1:($8 > 0 ? $8 : NaN) with lines linestyle 2 title other_name

set ylabel "completed per s"
set yrange [0:load * 1.3]
set arrow 99 from graph 0, first load to graph 1, first load nohead linestyle 9
set label 99 "load" at graph 0.005, first load offset 0,0.6 textcolor rgb "#777777"
plot adaptive using 1:5 with lines linestyle 1 title "adaptive", \
     other using 1:5 with lines linestyle 2 title other_name
unset arrow 99
unset label 99

set format x "%g"
set xlabel "seconds"
set ylabel "waiting in the pool"
set yrange [0:1 < *]
plot adaptive using 1:4 with lines linestyle 1 title "adaptive", \
     other using 1:4 with lines linestyle 2 title other_name

unset multiplot
