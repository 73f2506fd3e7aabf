#pragma D depends_on library three.d
