#pragma D depends_on library one.d
