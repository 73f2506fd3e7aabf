/* A description has four fields. */
dtrace:a:b:c:BEGIN { trace(1); }
