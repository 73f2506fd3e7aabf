/* 20 steps a magnitude: from 10 on, each is a twentieth of 10 times the magnitude. */
#pragma D option quiet
BEGIN { @l = llquantize(14, 10, 1, 3, 20); @l = llquantize(15, 10, 1, 3, 20); exit(0); }
