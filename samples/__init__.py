"""What kinst-samples copies: a kernel for each machine with its source, D programs, a provider, a tour."""
