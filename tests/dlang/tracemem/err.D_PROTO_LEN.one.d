/* tracemem() wants a size. */
BEGIN { tracemem(alloca(8)); }
