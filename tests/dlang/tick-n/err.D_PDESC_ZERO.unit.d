/* With a unit that there is. */
tick-1fortnight { trace(1); }
