/* copyout() wants source, target and size. */
BEGIN { copyout(alloca(1), 0); }
