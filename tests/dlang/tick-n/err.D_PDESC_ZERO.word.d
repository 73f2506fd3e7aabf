/* A rate is a number. */
tick-fast { trace(1); }
