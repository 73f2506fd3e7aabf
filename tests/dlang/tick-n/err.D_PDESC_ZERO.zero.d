/* 0 is never. */
tick-0 { trace(1); }
