/* No provider has this name. */
nosuch:::entry { trace(1); }
