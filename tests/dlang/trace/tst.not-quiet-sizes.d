/* Without quiet, numbers have the columns of their size. */
BEGIN { trace((char)1); trace((short)2); trace(3); trace(4L); trace("five"); exit(0); }
