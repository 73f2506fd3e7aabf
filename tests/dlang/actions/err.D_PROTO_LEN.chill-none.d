/* chill() wants nanoseconds. */
BEGIN { chill(); }
