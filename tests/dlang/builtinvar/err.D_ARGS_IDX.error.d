/* ERROR's arguments have no types. */
ERROR { trace(args[99]); }
