/* Nothing comes more than 5000 times a second. */
tick-199us { trace(1); }
