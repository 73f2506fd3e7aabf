/* %% takes neither width nor flags. */
BEGIN { printf("%5%"); }
