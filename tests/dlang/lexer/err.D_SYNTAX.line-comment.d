/* Comments of C++ are none of D. */
BEGIN { exit(0); } // not here
