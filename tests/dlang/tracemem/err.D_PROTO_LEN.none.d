/* tracemem() wants an address and a size. */
BEGIN { tracemem(); }
