#pragma D depends_on library two.d
