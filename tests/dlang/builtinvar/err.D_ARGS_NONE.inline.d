/* args[] belongs to a probe. */
inline int first = args[0];
BEGIN { trace(first); }
