/* Nothing is recorded after commit(). */
BEGIN { commit(1); exit(0); }
