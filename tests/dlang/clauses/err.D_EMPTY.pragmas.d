/* Options are no program. */
#pragma D option quiet
