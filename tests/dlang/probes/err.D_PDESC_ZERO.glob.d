/* A glob matches nothing. */
dtrace:::Z* { trace(1); }
