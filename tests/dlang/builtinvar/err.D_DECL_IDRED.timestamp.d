/* A builtin variable is not declared again. */
int timestamp; BEGIN { trace(1); }
