/* Frames and size are all. */
BEGIN { ustack(5, 6, 7); }
