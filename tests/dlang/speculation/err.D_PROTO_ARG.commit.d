/* A speculation is a number. */
BEGIN { commit("1"); }
